"""The user's source code, read and fixed."""
