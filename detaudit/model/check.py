"""What ``detaudit check`` finds: the gates of each audit that a project has named."""

from enum import StrEnum

import msgspec

from detaudit.model.audit import Audit, Difference, NextStep
from detaudit.model.compare import Change


class CheckVerdict(StrEnum):
    """What a check comes to; ``inconclusive`` where no gate failed, but one that blocks could not be judged."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


class GateName(StrEnum):
    """What is asked of a training."""

    REPEATABLE = "repeatable"
    BASELINE = "same as baseline"
    RESUME = "same after resume"


class GateStatus(StrEnum):
    """What became of a gate.

    ``incomparable``: the bits differ, and so does the environment. ``unknown``: the script failed, recorded nothing, or
    there is no baseline.
    """

    PASSED = "passed"
    FAILED = "failed"
    INCOMPARABLE = "incomparable"
    UNKNOWN = "unknown"


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate; ``blocks`` where the check fails by it, as far as the policy of its audit goes."""

    name: GateName
    status: GateStatus
    blocks: bool
    message: str
    differs: Difference | None = None
    environment: tuple[Change, ...] = ()


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A named audit, and its gates."""

    name: str
    audit: Audit
    gates: tuple[Gate, ...]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A whole check. ``updated`` says what became other in the lock file."""

    schema_version: int
    command: tuple[str, ...]
    verdict: CheckVerdict
    checked: tuple[Checked, ...]
    lock: str
    updated: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    interrupted: bool = False
