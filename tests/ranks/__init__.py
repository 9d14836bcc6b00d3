"""Distributed trainings with a fault in one rank, audited by the real command line."""
