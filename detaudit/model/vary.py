"""What a bisection over variations adds to an audit."""

from typing import Literal

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.applicability import NotVaried
from detaudit.model.audit import Audit
from detaudit.model.enums import Cause, Stage
from detaudit.model.evidence import Evidence
from detaudit.model.explanation import Explanation
from detaudit.model.problems import RunError
from detaudit.model.sources import Source


class VaryOutcome(StrEnum):
    """The answer; inconclusive if the control is, or the bisection was interrupted."""

    ROBUST = "robust"
    SENSITIVE = "sensitive"
    CONTROL_DIFFERS = "control-differs"
    INCONCLUSIVE = "inconclusive"


class EffectExample(msgspec.Struct, frozen=True, kw_only=True):
    """A run that differs from the control: its trial, its values for people, and where it first differs.

    ``runs`` are the control's and its own. If it failed, ``errors`` say why, and ``last_line`` is its last line on
    stderr; ``step``, ``stage`` and ``explanation`` are null if it was killed, whose exit status says nothing.
    """

    trial: str
    runs: tuple[int, int]
    values: tuple[str, ...]
    rank: int = 0
    step: int | None = None
    stage: Stage | None = None
    explanation: Explanation | None = None
    errors: tuple[RunError, ...] = ()
    last_line: str = ""


class VariationEffect(msgspec.Struct, frozen=True, kw_only=True):
    """A variation that changes the training: if it is pinned, the runs match, and if it varies, they do not.

    ``example`` is from a minimal set of variations that shows it; ``together_with`` are the others in that set, empty
    if it shows alone. ``suspects`` are lines of the user's code that may be why.
    """

    variation: str
    title: str
    cause: Cause
    expected: bool
    example: EffectExample
    together_with: tuple[str, ...] = ()
    suspects: tuple[Source, ...] = ()
    fix: str = ""
    flags: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()


class VariationBisection(Audit, frozen=True, kw_only=True, tag="vary"):
    """A whole bisection over variations, as it is kept in audit.json: each group is a trial.

    The first trial is the control. In every other one, runs with different environments are compared: run 1 is the
    control's, and the others have the values in its ``varied``. ``sensitive_to`` is null if there is no answer;
    ``controls`` are the values at which everything was pinned that did not vary.
    """

    over: Literal["variations"] = "variations"
    outcome: VaryOutcome
    sensitive_to: tuple[VariationEffect, ...] | None
    no_effect: tuple[str, ...]
    controls: dict[str, str]
    not_varied: dict[str, NotVaried]
    evidence: Evidence | None
    total_runs: int
