"""Planted bugs, and what detaudit fix makes of them: ``make test-fixes``."""
