"""What a bisection adds to an audit."""

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.applicability import Inapplicable
from detaudit.model.audit import Audit
from detaudit.model.by_hand import HandLine, LineToFix
from detaudit.model.enums import Stage
from detaudit.model.evidence import Evidence
from detaudit.model.problems import RunError


class BisectOutcome(StrEnum):
    """The answer of a bisection; inconclusive if nothing could be judged, or it was interrupted."""

    FIXED = "fixed"
    NOT_FIXED = "not-fixed"
    ALREADY_DETERMINISTIC = "already-deterministic"
    INCONCLUSIVE = "inconclusive"


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs of a trial without one flag, with at least the others set, and where they first differ.

    ``site`` names what differs, as in a difference.
    """

    trial: str
    runs: tuple[int, int]
    rank: int
    step: int
    stage: Stage
    site: str | None = None


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """A flag in place of a needed one.

    ``matching`` runs matched with it, through the step ``through`` or to their ends; 0 if it was not tried. ``cost``,
    ``cost_range`` and ``cost_runs`` are as of a needed flag.
    """

    flag: str
    title: str
    matching: int = 0
    cost: float | None = None
    through: int | None = None
    cost_runs: tuple[int, int] | None = None
    cost_range: tuple[float, float] | None = None


class NeededFlag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag of the minimal set. ``left_out`` is null if the training fails without it.

    ``requires`` are the flags that it needs. ``cost`` is the time of a step with it over that of a step without it, or
    of whole runs if too few steps were seen: the median over pairs of runs that were next to each other, null for fewer
    than three pairs. ``cost_range`` says between which ratios it is, ``cost_runs`` how many runs with it and without it
    were timed; both are null in reports of older versions, whose runs did not take turns. ``alternatives`` are other
    flags that may do the same, the cheapest first.
    ``by_hand`` is the line that does it without detaudit, ``by_hand_when`` where it belongs; both are empty if that is
    no line to paste. ``by_hand_first`` are the lines without which it does not work. ``in_place`` is a line of the
    user's that has it already, and so is not enough. ``acts_on`` are lines of the user's on which it acts, as runs
    without it showed.
    """

    flag: str
    title: str
    left_out: LeftOut | None
    cost: float | None
    requires: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    by_hand: str = ""
    by_hand_when: str = ""
    cost_runs: tuple[int, int] | None = None
    cost_range: tuple[float, float] | None = None
    by_hand_first: tuple[HandLine, ...] = ()
    in_place: str = ""
    acts_on: tuple[LineToFix, ...] = ()


class FailingFlag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag with which the training fails: its last line on stderr, or why the run is not compared."""

    flag: str
    message: str
    errors: tuple[RunError, ...] = ()


class Bisection(Audit, frozen=True, kw_only=True, tag="bisect"):
    """A whole bisection, as it is kept in audit.json: each group is a trial.

    ``needed`` is null if no set was found. ``not_applicable`` says of each flag that was not tried why. ``differed_in``
    is the results folder of an earlier audit of the same command whose runs differed, if all runs match now.
    """

    outcome: BisectOutcome
    needed: tuple[NeededFlag, ...] | None
    not_needed: tuple[str, ...]
    failing_flags: tuple[FailingFlag, ...]
    not_applicable: dict[str, Inapplicable]
    evidence: Evidence | None
    total_runs: int
    recipe_file: str | None = None
    best_so_far: tuple[str, ...] | None = None
    differed_in: str | None = None
