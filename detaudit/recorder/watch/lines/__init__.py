"""Record which lines of the user's code ran and what they assigned."""
