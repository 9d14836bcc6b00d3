"""What a bisection over variations adds to an audit."""

from typing import Literal, TypeAlias

import msgspec

from detaudit.model.audit import Audit
from detaudit.model.bisect import Verified

VaryOutcome: TypeAlias = Literal["nothing-matters", "some-matter", "control-differs", "unresolved"]
"""What it came to; ``unresolved`` where the control could not be judged, or it was interrupted."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is not as the control: its trial, its values in words, and where it first differs.

    ``runs`` are the control's and its own; ``step`` and ``stage`` are null where it failed, with ``failed``, its last
    words.
    """

    trial: str
    runs: tuple[int, int]
    values: tuple[str, ...]
    rank: int = 0
    step: int | None = None
    stage: str | None = None
    cause: str = ""
    failed: str = ""


class Matters(msgspec.Struct, frozen=True, kw_only=True):
    """A variation that matters: where it is held still, the runs match, and where it is not, they do not.

    ``seen`` is from the smallest set of variations that shows it; ``beside`` are the others in that set, empty where
    it matters alone. ``lines`` of the user's code are those that may be why.
    """

    variation: str
    title: str
    cause: str
    legitimate: bool
    seen: Seen
    beside: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    cure: str = ""
    flags: tuple[str, ...] = ()
    in_script: tuple[str, ...] = ()


class VariationBisection(Audit, frozen=True, kw_only=True):
    """A whole bisection over variations, as it is kept in audit.json: each group is a trial.

    The first trial is the control. In every other one, runs of unlike environments are compared: run 1 is the
    control's, and the others have the values that its ``varied`` tells. ``matters`` is null where it could not be
    told; ``controls`` are the values at which all was held that did not vary.
    """

    over: Literal["variations"] = "variations"
    answer: VaryOutcome
    matters: tuple[Matters, ...] | None
    no_matter: tuple[str, ...]
    controls: dict[str, str]
    left_out: dict[str, str]
    verified: Verified | None
    launches: int
