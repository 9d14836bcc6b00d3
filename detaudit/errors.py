"""Error classes, each with an exit code and a hint."""

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit status of detaudit means; see docs/architecture.md."""

    DETERMINISTIC = 0
    NONDETERMINISTIC = 1
    USAGE = 2
    INTERNAL = 70
    INCONCLUSIVE = 125
    INTERRUPTED = 130


class DetauditError(Exception):
    """A failure with an exit code, a message and a hint.

    ``message`` starts in lower case and has no period. ``hint`` is a sentence that says what to do, or ``""``.
    """

    exit_code = ExitCode.INCONCLUSIVE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(DetauditError):
    """Invalid command line or configuration."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """Invalid file of flags, recipes, variations, operations, audits or baselines; the message says where."""


class UnknownNameError(UsageError):
    """A flag, recipe, file, program or other named thing that does not exist or cannot be read."""


class NothingToAuditError(DetauditError):
    """No audits are configured. Inconclusive, so that ``git bisect run`` skips commits that have none."""


class WorkspaceError(DetauditError):
    """A working copy cannot be made."""

    exit_code = ExitCode.USAGE


class StorageError(DetauditError):
    """Results cannot be written, for example because the disk is full, or cannot be read where they are stored."""

    @classmethod
    def of(cls, doing: str, error: OSError, instead: str = "another --out") -> "StorageError":
        """Return the error of ``doing`` something, such as "write x": what the system says, with a hint.

        ``instead`` is what else the user could choose.
        """
        return cls(f"cannot {doing}: {error.strerror or error}", f"{_HINTS.get(error.errno or 0, 'C')}hoose {instead}.")


class StorageUnreachableError(StorageError):
    """The storage of results cannot be reached now. The same request may succeed later."""


class ExportError(DetauditError):
    """A report cannot be sent: its destination cannot be reached, or refuses it."""


class ScanError(DetauditError):
    """Operations cannot be repeated: their framework does not load, or a process of the scan failed."""


class EngineError(DetauditError):
    """Runs cannot be done on other machines: an engine failed, or one of them refuses."""


_HINTS = {
    errno.ENOSPC: "Free disk space, or c",
    errno.EDQUOT: "Free disk space, or c",
    errno.EACCES: "Make it writable, or c",
    errno.EPERM: "Make it writable, or c",
    errno.EROFS: "Mount it writable, or c",
    errno.ENOENT: "Keep that folder while an audit runs, or c",
}


class AuditNotFoundError(UsageError):
    """No audit in a folder, an audit.json that cannot be read, or one whose event logs are missing."""


class NothingToCompareError(DetauditError):
    """A recording is empty, or two recordings have nothing in common; ``facts`` say why, and follow the message."""

    def __init__(self, message: str, hint: str = "", facts: tuple[object, ...] = ()) -> None:
        super().__init__(message, hint)
        self.facts = facts
