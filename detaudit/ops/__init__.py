"""Scans the operations of a framework: which of them differ on the same inputs."""

from detaudit.entry_points import Command

OPS = Command("Find the operations of a framework that differ on the same inputs.", "detaudit.ops.command:command")
