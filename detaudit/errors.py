"""Every failure is a class that knows its exit code and says the cure."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit status of detaudit means; see docs/architecture.md."""

    DETERMINISTIC = 0
    NONDETERMINISTIC = 1
    USAGE = 2
    INCONCLUSIVE = 125
    INTERRUPTED = 130


class DetauditError(Exception):
    """A failure with an exit code and, after the message, what to do about it."""

    exit_code = ExitCode.INCONCLUSIVE

    def __init__(self, message: str, cure: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure


class UsageError(DetauditError):
    """The command line cannot be obeyed as it stands."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A flag or recipe file is broken; the message holds file, line and column."""


class UnknownNameError(UsageError):
    """A flag, recipe or file was named that does not exist."""


class WorkspaceError(DetauditError):
    """A working copy or a results folder could not be made."""

    exit_code = ExitCode.USAGE


class StorageError(DetauditError):
    """Results could not be written: disk full, no permission."""


class AuditNotFoundError(UsageError):
    """No audit.json where one was expected, one that cannot be read, or one whose traces are gone."""


class NothingToCompareError(DetauditError):
    """One of two that were to be compared recorded nothing that can be found to match."""
