"""Notebooks: read as one script, run cell by cell, and written back. Standard library only, Python 3.9."""
