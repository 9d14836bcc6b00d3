"""Pairs of commits, and what detaudit compare --against says of them: ``make test-against``."""
