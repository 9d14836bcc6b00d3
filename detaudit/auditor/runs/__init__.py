"""Start runs from the same state, follow them, and read what they recorded."""
