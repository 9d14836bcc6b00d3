"""Compare the working tree with another commit: both sides run at one path, with the same interpreter and data."""
