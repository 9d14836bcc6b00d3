"""What a bisection adds to an audit."""

from typing import Literal, TypeAlias

import msgspec

from detaudit.model.audit import Audit, Confidence

BisectOutcome: TypeAlias = Literal["mended", "not-mended", "already-deterministic", "unresolved"]
"""What a bisection came to; ``unresolved`` where nothing could be judged, or it was interrupted."""


class Without(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs of a trial without one flag, in which at least the others were set, and where they first differ."""

    trial: str
    runs: tuple[int, int]
    rank: int
    step: int
    stage: str


class Needed(msgspec.Struct, frozen=True, kw_only=True):
    """A flag that is needed. ``without`` is null where the training fails when it is left out.

    ``goes_with`` are flags that it requires. ``cost`` is the time of a run with it over that of one without it, null
    where no two whole runs can be compared; ``instead`` are flags that may do the same, the cheaper first.
    """

    flag: str
    title: str
    without: Without | None
    cost: float | None
    goes_with: tuple[str, ...] = ()
    instead: tuple["Alternative", ...] = ()
    in_script: str = ""
    where: str = ""


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """A flag in the place of a needed one. ``matching`` runs agreed with it, 0 where it was not tried."""

    flag: str
    title: str
    matching: int = 0
    cost: float | None = None


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """A flag under which the training fails, and what it says."""

    flag: str
    message: str


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer rests on: so many matching runs; ``overlooked`` is how likely they hide a rate of ``rate``."""

    runs: int
    confidence: Confidence | None
    rate: float
    overlooked: float


class Bisection(Audit, frozen=True, kw_only=True):
    """A whole bisection, as it is kept in audit.json: each group is a trial.

    ``needed`` is null where no set was found. ``not_applicable`` says of each flag that was not tried why.
    """

    outcome: BisectOutcome
    needed: tuple[Needed, ...] | None
    not_needed: tuple[str, ...]
    failing: tuple[Failing, ...]
    not_applicable: dict[str, str]
    verified: Verified | None
    launches: int
    recipe_file: str | None = None
    best: tuple[str, ...] | None = None
