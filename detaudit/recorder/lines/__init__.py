"""Record which lines of user code ran and what they assigned."""
