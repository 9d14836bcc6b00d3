"""The words of an audit: how a run ended, what a group shows, where a step differs."""

from enum import StrEnum


class Status(StrEnum):
    """How one run ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NO_RECORD = "no-record"
    STOPPED = "stopped"


class Verdict(StrEnum):
    """What a group of runs, or the whole audit, shows."""

    DETERMINISTIC = "deterministic"
    NONDETERMINISTIC = "nondeterministic"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """The ladder of stages within a step, then what was seen without a hook: printed losses, files, returned values.

    ``STEPS`` means that one run had no such step.
    """

    INIT = "init"
    RNG = "rng"
    BATCH = "batch"
    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"
    STDOUT = "stdout"
    ARTIFACT = "artifact"
    RETURNED = "returned"
    STEPS = "steps"

    @property
    def place(self) -> int:
        """Its place on the ladder; ``STEPS`` comes last."""
        return list(Stage).index(self)


UNHOOKED = (Stage.STDOUT, Stage.ARTIFACT, Stage.RETURNED)
"""What a run shows without a hook. Printed losses have steps of their own; files and what a test returned have none."""

NAMED = (Stage.ARTIFACT, Stage.RETURNED)
"""The stages whose digests are each followed by a space and the name of what it is of."""
