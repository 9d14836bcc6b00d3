"""Scans the operations of a framework: which of them differ on the same inputs."""
