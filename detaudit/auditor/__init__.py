"""Read what the runs recorded, compare it, and decide what it shows."""
