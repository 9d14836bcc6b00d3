"""Simulated long trainings: each cause of nondeterminism begins at a step, and its flag fixes it."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from detaudit.bisect.search import Answer, Search, WholeRuns
from detaudit.judge.policy import END, START, Flags, Horizon, Length, OneRun, TrialOutcome, TrialResult

START_UP_S, FIRST_S = 5.0, 10.0
NEVER = END


@dataclass(frozen=True)
class Cause:
    """Shows in a run with probability ``rate``: at a step, or with a hazard at each step from that one on.

    If it ``drifts``, each set of flags has a first step of its own, from 0.01 to 3.2 times the length of the training.
    """

    step: int = 1
    hazard: float | None = None
    rate: float = 1.0
    drifts: bool = False

    def begins(self, flags: Flags, steps: int, seed: int) -> int:
        """Return the step at which it may show first."""
        if not self.drifts:
            return self.step
        return max(1, int(steps * 10 ** random.Random(f"{seed} {sorted(flags)}").uniform(-2, 0.5)))

    def shows(self, begins: int, draw: random.Random) -> int:
        """Return the step at which it shows in a run, NEVER if it does not."""
        if draw.random() >= self.rate:
            return NEVER
        if self.hazard is None:
            return begins
        return begins + int(math.log(1 - draw.random()) / math.log1p(-self.hazard))


@dataclass
class SimulatedTraining:
    """A training of ``steps`` steps; ``cost`` is the time of all its runs, over that of a whole one.

    A run differs from another from the step on at which a cause shows in either of them. The first run of a set shows
    none, so that the rate of a cause is about that of runs that differ from the first.
    """

    causes: Mapping[str, Cause]
    seed: int = 0
    steps: int = 3600
    step_s: float = 1.0
    length: Length | None = None
    cost: float = 0.0
    whole_runs: list[Flags] = field(default_factory=list)
    kept: dict[Flags, list[OneRun]] = field(default_factory=dict)
    asked: list[tuple[Flags, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._names = list(self.causes)
        self._references: dict[Flags, list[tuple[int, tuple[int, int]]]] = {}

    @property
    def seconds(self) -> float:
        """The time of a whole run."""
        return START_UP_S + self.steps * self.step_s

    def runs(self, flags: Flags) -> Sequence[OneRun]:
        """See Trainings."""
        return self.kept.get(flags, [])

    def run(self, flags: Flags, through: int, more: int = 0) -> None:
        """See Trainings."""
        self.asked.append((flags, through))
        runs = self.kept.setdefault(flags, [])
        wanted = max(2, math.ceil(FIRST_S / self.step_s)) if through == START else through
        until = END if wanted >= self.steps else wanted
        shown = self._shown(flags) if runs else (NEVER, 0)
        furthest, reference = max(self._references.get(flags, []), default=(-1, (NEVER, 0)), key=lambda one: one[0])
        compared = min(until, furthest)
        differs, place = min(shown, reference)
        if differs <= min(compared, self.steps):
            self._spend(differs)
            runs.append(OneRun(TrialOutcome.DIFFERS, differs, compared, (differs, place), self._names[place]))
            return
        self._spend(until)
        if until == END:
            self.whole_runs.append(flags)
            self.length = Length(self.steps, self.seconds)
        runs.append(OneRun(TrialOutcome.MATCHES, until, compared))
        self._references.setdefault(flags, []).append((until, shown))

    def whole(self, flags: Flags, runs: int) -> TrialResult:
        """Return what whole runs show: an Ask."""
        while len(self.runs(flags)) < runs and not self._contradicted(flags):
            self.run(flags, END)
        kept = self.runs(flags)
        if self._contradicted(flags):
            return TrialResult(TrialOutcome.DIFFERS, len(kept), kept[-1].position, kept[-1].name)
        return TrialResult(TrialOutcome.MATCHES, len(kept))

    def _contradicted(self, flags: Flags) -> bool:
        return any(run.outcome is not TrialOutcome.MATCHES for run in self.runs(flags))

    def _shown(self, flags: Flags) -> tuple[int, int]:
        """Return the step at which a cause shows first in one more run, and the number of the cause."""
        return min(
            (
                (cause.shows(cause.begins(flags, self.steps, self.seed), self._random), number)
                for number, (name, cause) in enumerate(self.causes.items())
                if name not in flags
            ),
            default=(NEVER, 0),
        )

    def _spend(self, through: int) -> None:
        self.cost += (START_UP_S + min(through, self.steps) * self.step_s) / self.seconds


@dataclass(frozen=True)
class Case:
    """A training with its candidates: the flag of the cause that shows is the first in the order 4 times of 5."""

    training: SimulatedTraining
    needed: frozenset[str]
    order: tuple[str, ...]
    hinted: frozenset[str]

    def rank(self, found: TrialResult) -> tuple[Sequence[str], int]:
        """See Rank."""
        return sorted(self.order, key=lambda flag: not (flag == found.name and flag in self.hinted)), 1

    def is_right(self, answer: Answer) -> bool:
        """Whether the answer is what is needed; of causes that drift, whether none is left that shows clearly."""
        if answer.needed is None:
            return False
        training, found = self.training, frozenset(answer.needed)
        if not any(cause.drifts for cause in training.causes.values()):
            return found == self.needed
        clearly = training.steps - 50
        left = (cause for name, cause in training.causes.items() if name not in found)
        return not any(cause.begins(found, training.steps, training.seed) <= clearly for cause in left)

    def bisect(self, full: int | None = None) -> Answer:
        """Return the answer of runs that go no further than they must."""
        return Search(Horizon(self.training, full), self.rank).run()

    def bisect_whole(self) -> Answer:
        """Return the answer of whole runs."""
        return Search(WholeRuns(self.training.whole), self.rank).run()


def case(
    causes: Sequence[Cause], seed: int, steps: int = 3600, step_s: float = 1.0, candidates: int = 24, good: float = 0.8
) -> Case:
    """Return a training whose causes are fixed by candidates drawn at random."""
    draw = random.Random(seed)
    flags = [f"f{number:02}" for number in range(candidates)]
    needed = draw.sample(flags, len(causes))
    hinted = frozenset(flag for flag in needed if draw.random() < good)
    draw.shuffle(flags)
    training = SimulatedTraining(dict(zip(needed, causes, strict=True)), seed + 10**6, steps, step_s)
    return Case(training, frozenset(needed), tuple(flags), hinted)
