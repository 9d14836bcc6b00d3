"""What trials of sets of flags showed; pure, starts no processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
    """The result of a trial of ``runs`` runs.

    ``place`` sorts later first differences after earlier ones; ``name`` is the name of the trial.
    """

    outcome: TrialOutcome
    runs: int = 0
    place: tuple[int, ...] = ()
    name: str = ""


Ask: TypeAlias = Callable[[Flags, int], TrialResult]
"""Runs a training with flags until two runs differ or this many match, earlier ones with the same flags included."""

Rank: TypeAlias = Callable[[TrialResult], tuple[Sequence[str], int]]
"""Orders the candidates by what a trial that differs points to, and returns how many of them to try at once."""


class Facts:
    """What is known. Two runs that differ are proof, for all fewer flags too; matching runs are a number that grows."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._differs: dict[Flags, TrialResult] = {}
        self._fails: dict[Flags, TrialResult] = {}
        self.matching: dict[Flags, int] = {}

    @property
    def rate(self) -> float:
        """The lowest rate at which runs were observed to differ, 1 if they did at once."""
        return min((1 / max(1, found.runs - 1) for found in self._differs.values()), default=1.0)

    def ask(self, flags: Flags, runs: int, seen: bool = False) -> TrialResult:
        """Return what is known about these flags, or run a trial.

        ``seen`` runs it even if two runs with more flags differ, which counts for more than many that match by chance.
        """
        for known in (self._differs, self._fails):
            if flags in known:
                return known[flags]
        concluded = next((found for more, found in self._differs.items() if flags < more), None)
        if concluded is not None and not seen:
            return concluded
        found = TrialResult(TrialOutcome.MATCHES, self.matching.get(flags, 0))
        if found.runs < runs:
            found = self._ask(flags, runs)
            self._take(flags, found)
        return found if concluded is None or found.outcome is not TrialOutcome.MATCHES else concluded

    def _take(self, flags: Flags, found: TrialResult) -> None:
        if found.outcome is TrialOutcome.MATCHES:
            self.matching[flags] = found.runs
            return
        self.matching.pop(flags, None)
        (self._differs if found.outcome is TrialOutcome.DIFFERS else self._fails)[flags] = found
