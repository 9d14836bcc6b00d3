"""How far the next run goes, from what is known so far; no clock and no file is read."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from detaudit.compat import StrEnum
from detaudit.config.options import Until
from detaudit.model import Run

Flags: TypeAlias = frozenset[str]
NONE: Flags = frozenset()


class TrialOutcome(StrEnum):
    """The outcome of a trial."""

    MATCHES = "matches"
    DIFFERS = "differs"
    FAILS = "fails"


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial.

    ``runs`` match through the step ``through``, or to their ends if that is None; ``complete`` of them went to their
    ends, all if that is None. If two differ, ``runs`` is the number of those that were compared through ``step``, the
    first difference; ``position`` sorts later first differences after earlier ones. ``name`` is the name of the trial.
    """

    outcome: TrialOutcome
    runs: int = 0
    position: tuple[int, ...] = ()
    name: str = ""
    step: int = 0
    through: int | None = None
    complete: int | None = None


# How far the runs of a bisection go: no further than the question asks; pure, starts no processes.
#
# On the way, runs go a little beyond the latest first difference seen. An answer rests on many runs through a sixteenth
# of the training, which notice what shows in one run of four by then, and on a few whole runs, which notice what begins
# later and shows in nearly every run. docs/bisecting.md has the reasons.


START = 0
"""Where the first run of all is ended: after 10 s of training, and after 2 steps at least."""

END = sys.maxsize
"""The step through which a run counts that went to its end."""

SHARE = 16
"""Many runs go through one part in 16 of the training."""

WHOLE_S = 600.0
"""For so many seconds, more than two runs go to their ends."""

_BEYOND = 1.25  # probes go this much further than the latest difference
_LEAP = 16  # a run goes this much further than the furthest with the same flags: what is left early shows cheaply
_CLIMB = 4  # while the length of the training is unknown
_FIRST_CLIMBS = 16
_LATE_PROBES = 3
_MOST_AGAIN = 6


@dataclass(frozen=True)
class OneRun:
    """One run with a set of flags.

    If it matches, it counts through the step ``through`` and was compared through ``compared``, -1 for the first one;
    END stands for its end. If it differs, ``through`` is the step of the first difference, END if only the ends differ.
    """

    outcome: TrialOutcome
    through: int = 0
    compared: int = -1
    position: tuple[int, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Length:
    """How long the training is, from a run that went to its end."""

    steps: int
    seconds: float


class Trainings(Protocol):
    """Runs a training with flags; keeps the runs."""

    @property
    def length(self) -> Length | None:
        """How long the training is, None until a run went to its end."""

    def runs(self, flags: Flags) -> Sequence[OneRun]:
        """Return all runs with these flags, in their order."""

    def run(self, flags: Flags, through: int, more: int = 0) -> None:
        """Run once more, through a step at least or until it differs from the furthest run that matches.

        So many ``more`` go as far if this one matches: they may be under way at the same time.
        """


Announce: TypeAlias = Callable[[int, int, int], None]
"""Takes how many more runs go through which step, and how many more to the end."""


class Horizon:
    """Answers the questions of a search by runs that go no further than they must.

    ``full`` is how many runs of an answer go to the end, None to choose by how long that takes. ``announce`` is called
    with the runs that an answer still needs, once the length of the training is known.
    """

    def __init__(self, trainings: Trainings, full: int | None = None, announce: Announce | None = None) -> None:
        self._trainings, self._full, self._announce = trainings, full, announce
        self._latest = 0

    def probe(self, flags: Flags, runs: int) -> TrialResult:
        """See Questions."""
        runs = max(runs, _LATE_PROBES) if self._probed > self._first else runs
        return self._through(flags, runs, self._probed)

    def left_out(self, flags: Flags, runs: int) -> TrialResult:
        """See Questions."""
        return self._through(flags, runs, self._probed)

    def prove(self, flags: Flags, runs: int, error: float, without: Sequence[Flags]) -> TrialResult:
        """See Questions. The cheap comes first, and any difference ends it."""
        if not self._trainings.runs(NONE):
            self._trainings.run(NONE, START)
        for rest in without:
            self._see_again(rest)
        for required, step in self._stages(flags, runs, error, without):
            result = self._through(flags, required, step)
            if result.outcome is not TrialOutcome.MATCHES:
                return result
        return self._matching(flags, self._share)

    def went_through(self, flags: Flags, step: int) -> bool:
        """See Questions: a late difference may be one that fewer flags do not have."""
        return step <= self._first or self._count(flags, step) >= 2

    def _stages(self, flags: Flags, runs: int, error: float, without: Sequence[Flags]) -> Iterator[tuple[int, int]]:
        """Yield how many runs must match through which step, one after the other."""
        yield 2, self._probed
        while self._trainings.length is None:
            further = _CLIMB * self._furthest(flags)
            yield 1, END if flags and further > _FIRST_CLIMBS * self._first else further
        shorter = self._share
        complete = self.complete_runs(runs) if shorter < END else max(runs, self.complete_runs(runs))
        longer = max(0, complete - self._count(flags, END))
        if self._announce is not None:
            self._announce(max(0, runs - longer - self._count(flags, shorter)), shorter, longer)
        yield runs - longer, shorter
        late = max((step for rest in without for step in self._differing(rest)), default=0)
        if late > self._share:
            yield min(runs, self._outlasting(without, error) or runs), late
        yield complete, END

    def complete_runs(self, runs: int) -> int:
        """Return how many of the runs of an answer go to the end, 2 at least."""
        length = self._trainings.length
        most = int(WHOLE_S / length.seconds) if length and length.seconds else runs
        return self._full or max(2, min(runs, most))

    def _outlasting(self, without: Sequence[Flags], error: float) -> int | None:
        """Return how many runs must match so that a cause that was seen is gone, whatever its hazard.

        If m runs without a flag differed, all that were compared there, and it did nothing, n - 1 runs with it would
        outlast them with probability 1 / C(m + n - 1, m). None if some agreed: then the cause shows at a rate.
        """
        fewest = _MOST_AGAIN
        for rest in without:
            steps = self._differing(rest)
            if not steps or any(run.compared >= max(steps) for run in self._agreeing(rest)):
                return None
            fewest = min(fewest, len(steps))
        return next(n for n in range(2, sys.maxsize) if math.comb(fewest + n - 1, fewest) * error >= 1)

    def _see_again(self, flags: Flags) -> None:
        """Run flags that differ until two runs did, or three if that is late: once alone may be chance."""
        while steps := self._differing(flags):
            early = max(steps) <= max(self._share, 4 * self._first)
            runs = self._trainings.runs(flags)
            again = len(runs) - 1 - [run.outcome for run in runs].index(TrialOutcome.DIFFERS)
            if len(steps) >= (2 if early else 3) or again >= _MOST_AGAIN:
                return
            furthest = self._furthest(flags)
            self._trainings.run(flags, self._clipped(min(furthest, max(self._first, 4 * max(steps)))))
            if self._trainings.runs(flags)[-1].outcome is TrialOutcome.FAILS:
                return

    def _through(self, flags: Flags, runs: int, step: int) -> TrialResult:
        """Run until this many runs match through a step; a fresh set goes there in leaps."""
        while True:
            contradiction = self._contradiction(flags)
            if contradiction is not None:
                return contradiction
            missing = runs - self._count(flags, self._clipped(step))
            if missing <= 0:
                return self._matching(flags, self._clipped(step))
            furthest = self._furthest(flags)
            unknown = step == END and self._trainings.length is None
            until = step if unknown else min(step, max(self._first, _LEAP * furthest))
            until, through = self._clipped(until), self._clipped(step)
            self._trainings.run(flags, until, missing - 1 if until == through else 0)

    def _contradiction(self, flags: Flags) -> TrialResult | None:
        """Return the first run that differs or fails, None if all match."""
        runs = self._trainings.runs(flags)
        for run in runs:
            if run.outcome is TrialOutcome.FAILS:
                return TrialResult(TrialOutcome.FAILS, len(runs), name=run.name)
            if run.outcome is TrialOutcome.DIFFERS:
                self._latest = max(self._latest, *self._differing(flags))
                compared = sum(other.compared >= run.through for other in self._agreeing(flags))
                return TrialResult(TrialOutcome.DIFFERS, 2 + compared, run.position, run.name, run.through)
        return None

    def _matching(self, flags: Flags, step: int) -> TrialResult:
        runs, complete = self._count(flags, step), self._count(flags, END)
        all_complete = runs == complete
        return TrialResult(
            TrialOutcome.MATCHES,
            runs,
            name=self._trainings.runs(flags)[0].name,
            through=None if all_complete else step,
            complete=None if all_complete else complete,
        )

    def _agreeing(self, flags: Flags) -> list[OneRun]:
        return [run for run in self._trainings.runs(flags) if run.outcome is TrialOutcome.MATCHES]

    def _differing(self, flags: Flags) -> list[int]:
        """Return the steps of the first differences of all runs that differ."""
        return [run.through for run in self._trainings.runs(flags) if run.outcome is TrialOutcome.DIFFERS]

    def _count(self, flags: Flags, step: int) -> int:
        return sum(run.through >= step for run in self._agreeing(flags))

    def _furthest(self, flags: Flags) -> int:
        return max((run.through for run in self._agreeing(flags)), default=0)

    def _clipped(self, step: int) -> int:
        """Return a step, or the end if the training is no longer than that."""
        length = self._trainings.length
        return END if length is not None and step >= length.steps else min(step, END)

    @property
    def _first(self) -> int:
        """The step that the first run of all reached: in 10 s of training."""
        return max(2, next((run.through for run in self._trainings.runs(NONE)), 0))

    @property
    def _probed(self) -> int:
        """The step through which probes go."""
        return self._clipped(max(self._first, math.ceil(_BEYOND * self._latest)))

    @property
    def _share(self) -> int:
        """The step through which most runs of an answer go, once the length is known."""
        length = self._trainings.length
        return self._clipped(max(self._first, math.ceil(length.steps / SHARE) if length is not None else 0))


# First verdict first: a short run, then one that goes further, before any goes to its end.
#
# A short run of 5 s tells what differs at once. While the length is not known, no second one is cheap: a training that
# is hardly longer pays a fifth of five runs for it. Without one, a difference from the second minute on is known only
# after a whole run, though that takes a day. So there is one, of about five minutes: trainings of 6 to 18 minutes cost
# 1.06 to 1.2 of five runs, all others from half a minute on less. Once the length is known, no run goes beyond T/16
# before the whole ones, and all cost 1.05 at most. tests/judge/test_policy.py has the table by which this was chosen.


FIRST_S = 5.0
"""The first run is ended after so many seconds of training; one that is over before goes to its end."""

FURTHER = 64
"""How many times as far the next one goes."""


class NextRun(NamedTuple):
    """The next run: ``until`` is where it is ended, None if at its end.

    There are ``total`` runs with it and those before and after, at ``least`` so many if others may go further.
    ``follows`` says whether it should be compared while it goes on.
    """

    total: int
    until: Until | None = None
    least: bool = False
    follows: bool = True


def next_run(runs: Sequence[Run], asked: int, *, climbs: bool, steps: int | None = None) -> NextRun | None:
    """Return how far the run after ``runs`` goes, None if enough went equally far.

    Unless it ``climbs``, each goes to its end. Once two differ, the others go as far as those two were compared.
    ``steps`` is how many a whole run is expected to do, None if nobody knows.
    """
    if not climbs or asked < 2:
        return NextRun(asked) if len(runs) < asked else None
    first = next((index for index, run in enumerate(runs) if (run.result or 1) > 1), len(runs))
    matching = [run.through or END for run in runs[:first] if run.finished]
    furthest = max(matching, default=0)
    climbing = first == len(runs) and furthest < END
    total = asked + (len(matching) if climbing else sum(through < furthest for through in matching))
    if len(runs) >= total:
        return None
    if climbing and not matching:
        return NextRun(total, Until(seconds=FIRST_S, in_training=True), least=True)
    ended = [through for through in matching if through < END]
    # One that was ended for a difference that is none must not be ended there again.
    follows = not ended or ended.count(max(ended)) == 1
    further = _further(furthest, ended[0], steps) if climbing else furthest
    return NextRun(total, Until(step=further) if 0 < further < END else None, climbing and further < END, follows)


def _further(through: int, first: int, steps: int | None) -> int:
    """Return how far a run goes after one that matches through a step, the ``first`` of all runs through another."""
    if steps is None:
        return FURTHER * through if through == first else END
    share = math.ceil(steps / SHARE)
    return min(FURTHER * through, share) if share >= 2 * through else END
