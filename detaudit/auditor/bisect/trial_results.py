"""What trials of sets of flags showed; pure, starts no processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from detaudit.compat import StrEnum

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

    ``runs`` match through the step ``through``, or to their ends if that is None; ``whole`` of them went to their ends,
    all if that is None. If two differ, ``runs`` is the number of those that were compared through ``step``, the first
    difference; ``place`` sorts later first differences after earlier ones. ``name`` is the name of the trial.
    """

    outcome: TrialOutcome
    runs: int = 0
    place: tuple[int, ...] = ()
    name: str = ""
    step: int = 0
    through: int | None = None
    whole: int | None = None


Ask: TypeAlias = Callable[[Flags, int], TrialResult]
"""Runs a training with flags until two runs differ or this many match, earlier ones with the same flags included."""

Rank: TypeAlias = Callable[[TrialResult], tuple[Sequence[str], int]]
"""Orders the candidates by what a trial that differs points to, and returns how many of them to try at once."""


class Questions(Protocol):
    """What a search asks about a set of flags; how far runs must go for an answer is not its concern."""

    def probe(self, flags: Flags, runs: int) -> TrialResult:
        """Return whether this many runs match as far as differences were seen; enough for a step on the way."""

    def left_out(self, flags: Flags, runs: int) -> TrialResult:
        """Return whether this many runs match without a flag that may not be needed, as far as with a probe."""

    def prove(self, flags: Flags, runs: int, error: float, without: Sequence[Flags]) -> TrialResult:
        """Return all that an answer rests on: this many runs, and what differs ``without`` each needed flag."""

    def went_through(self, flags: Flags, step: int) -> bool:
        """Whether runs went so far that a difference at a step with more flags counts for these."""


class WholeRuns:
    """Answers each question by runs that go to their ends."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._matching: dict[Flags, TrialResult] = {}

    def probe(self, flags: Flags, runs: int) -> TrialResult:
        """See Questions."""
        known = self._matching.get(flags)
        if known is not None and known.runs >= runs:
            return known
        found = self._ask(flags, runs)
        if found.outcome is TrialOutcome.MATCHES:
            self._matching[flags] = found
        return found

    def forget(self) -> None:
        """Ask again about what matched: there may be runs since that differ."""
        self._matching.clear()

    left_out = probe

    def prove(self, flags: Flags, runs: int, error: float, without: Sequence[Flags]) -> TrialResult:
        """See Questions."""
        return self.probe(flags, runs)

    def went_through(self, flags: Flags, step: int) -> bool:
        """See Questions: a difference counts for all fewer flags."""
        return True


class Facts:
    """What is known. Two runs that differ are proof, for all fewer flags too; matches count as far as runs went."""

    def __init__(self, trials: Questions) -> None:
        self._trials = trials
        self._differs: dict[Flags, TrialResult] = {}
        self._fails: dict[Flags, TrialResult] = {}
        self._matches: dict[Flags, TrialResult] = {}

    @property
    def rate(self) -> float:
        """The lowest rate at which runs were observed to differ, 1 if they did at once."""
        return min((1 / max(1, found.runs - 1) for found in self._differs.values()), default=1.0)

    @property
    def best(self) -> Flags | None:
        """The set with the fewest flags that matched, None if none did."""
        return min(self._matches, key=len, default=None)

    def ask(self, flags: Flags, question: Callable[[Flags], TrialResult], seen: bool = False) -> TrialResult:
        """Return what is known about these flags, or ask ``question`` about them.

        ``seen`` asks even if two runs with more flags differ, which counts for more than many that match by chance.
        """
        for known in (self._differs, self._fails):
            if flags in known:
                return known[flags]
        concluded = next((found for more, found in self._differs.items() if flags < more), None)
        if concluded is not None and not seen and self._trials.went_through(flags, concluded.step):
            return concluded
        found = question(flags)
        self._take(flags, found)
        return found if concluded is None or found.outcome is not TrialOutcome.MATCHES else concluded

    def _take(self, flags: Flags, found: TrialResult) -> None:
        if found.outcome is TrialOutcome.MATCHES:
            self._matches[flags] = found
            return
        self._matches.pop(flags, None)
        (self._differs if found.outcome is TrialOutcome.DIFFERS else self._fails)[flags] = found
        # A later difference may be hidden in what matched through less.
        self._matches = {
            one: match for one, match in self._matches.items() if match.through is None or match.through >= found.step
        }
