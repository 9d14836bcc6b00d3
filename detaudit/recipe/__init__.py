"""What is held still during a run: the catalogue of flags, and recipes, which are named sets of them."""
