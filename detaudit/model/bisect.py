"""What a bisection adds to an audit, over flags and over variations."""

import difflib
from collections.abc import Iterator
from typing import Literal

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.audit import Audit
from detaudit.model.evidence import Evidence
from detaudit.model.problems import AnyRunError
from detaudit.model.sources import AnyInapplicable, AnyNotVaried, Source
from detaudit.model.stage import Cause, Explanation, Stage

# What to change in code.


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that fixes it: replace the lines ``old`` of a file, from ``line`` on, with ``new``.

    ``needs`` are the imports that the new lines need, and ``rule`` says why it fixes the line.
    """

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()
    rule: str = ""

    def changed_lines(self) -> Iterator[tuple[str, str]]:
        """Yield each line that it takes away, with ``-``, and each that it adds, with ``+``; not those that stay."""
        yield from (("+", line) for line in self.needs)
        matcher = difflib.SequenceMatcher(None, self.old, self.new, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind != "equal":
                yield from (("-", line) for line in self.old[a:b])
                yield from (("+", line) for line in self.new[c:d] if line.strip())


# What a bisection adds to an audit.


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
    were timed; both are null without ``cost``. ``alternatives`` are other
    flags that may do the same, the cheapest first.
    ``acts_on`` are lines of the user's on which it acts, as runs without it showed.
    """

    flag: str
    title: str
    left_out: LeftOut | None
    cost: float | None
    requires: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    cost_runs: tuple[int, int] | None = None
    cost_range: tuple[float, float] | None = None
    acts_on: tuple[Source, ...] = ()


class FailingFlag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag with which the training fails: its last line on stderr, or why the run is not compared."""

    flag: str
    message: str
    errors: tuple[AnyRunError, ...] = ()


class Bisection(Audit, frozen=True, kw_only=True, tag="bisect"):
    """A whole bisection, as it is kept in audit.json: each group is a trial.

    ``needed`` is null if no set was found. ``not_applicable`` says of each flag that was not tried why. ``differed_in``
    is the results folder of an earlier audit of the same command whose runs differed, if all runs match now.
    """

    outcome: BisectOutcome
    needed: tuple[NeededFlag, ...] | None
    not_needed: tuple[str, ...]
    failing_flags: tuple[FailingFlag, ...]
    not_applicable: dict[str, AnyInapplicable]
    evidence: Evidence | None
    total_runs: int
    recipe_file: str | None = None
    best_so_far: tuple[str, ...] | None = None
    differed_in: str | None = None


# What a bisection over variations adds to an audit.


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
    errors: tuple[AnyRunError, ...] = ()
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
    not_varied: dict[str, AnyNotVaried]
    evidence: Evidence | None
    total_runs: int
