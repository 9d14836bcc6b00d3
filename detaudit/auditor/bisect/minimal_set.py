"""Finds a smallest set of flags that mends a training, from as few trials as it can; it knows no processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from detaudit.auditor.bisect.quickxplain import smallest
from detaudit.auditor.judge.confidence import ERROR_RATE, PROBE_ERROR, RAREST, runs_needed

Flags: TypeAlias = frozenset[str]
NONE: Flags = frozenset()
MOST_ROUNDS = 20
"""How often a proof may be contradicted before the search gives up."""


class Outcome(StrEnum):
    """What came of a trial."""

    AGREES = "agrees"
    DIFFERS = "differs"
    FAILS = "fails"


@dataclass(frozen=True)
class Finding:
    """The outcome of a trial of ``runs`` runs.

    ``place`` sorts later first differences behind earlier ones; ``name`` is whatever the trial is called.
    """

    outcome: Outcome
    runs: int = 0
    place: tuple[int, ...] = ()
    name: str = ""


Ask: TypeAlias = Callable[[Flags, int], Finding]
"""Runs a training under flags. It agrees if so many runs match, earlier ones of the same flags included."""

Rank: TypeAlias = Callable[[Finding], tuple[Sequence[str], int]]
"""Orders the candidates by what a trial that differs points to, and says how many of them to try at once."""


@dataclass(frozen=True)
class Rules:
    """What the catalogue says of the candidates: what goes with each, what excludes it, what may stand in for it."""

    requires: Mapping[str, Iterable[str]] = field(default_factory=dict)
    conflicts: Mapping[str, Iterable[str]] = field(default_factory=dict)
    instead: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def closed(self, flags: Iterable[str]) -> Flags:
        """Return the flags with all that they require."""
        found = set(flags)
        while more := {needed for flag in found for needed in self.requires.get(flag, ())} - found:
            found |= more
        return frozenset(found)

    def exclude(self, flag: str, others: Iterable[str]) -> bool:
        """Whether a flag cannot stand beside the others."""
        return any(other in self.conflicts.get(flag, ()) or flag in self.conflicts.get(other, ()) for other in others)


@dataclass(frozen=True)
class Answer:
    """What a search found. ``needed`` is None where nothing mends it, and empty where nothing is broken.

    ``matching`` runs agree under the needed flags; ``without`` holds what was found when each alone was left out;
    ``failing`` are flags under which the training fails; ``proven`` says that nothing contradicts the answer, and
    ``differed`` that the training as it stands was seen to differ.
    """

    needed: tuple[str, ...] | None
    matching: int = 0
    without: Mapping[str, Finding] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    proven: bool = False
    differed: bool = True


class Facts:
    """What has been asked. Two runs that differ are a fact, for all fewer flags too; agreement is a number of runs."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._differs: dict[Flags, Finding] = {}
        self._fails: dict[Flags, Finding] = {}
        self.matching: dict[Flags, int] = {}

    @property
    def rate(self) -> float:
        """The lowest rate at which runs were seen to deviate, 1 where they did at once."""
        return min((1 / max(1, found.runs - 1) for found in self._differs.values()), default=1.0)

    def ask(self, flags: Flags, runs: int, seen: bool = False) -> Finding:
        """Return what is known of these flags, else ask.

        ``seen`` asks also where two runs with more flags differ, which counts for more than many that match by chance.
        """
        for known in (self._differs, self._fails):
            if flags in known:
                return known[flags]
        concluded = next((found for more, found in self._differs.items() if flags < more), None)
        if concluded is not None and not seen:
            return concluded
        found = Finding(Outcome.AGREES, self.matching.get(flags, 0))
        if found.runs < runs:
            found = self._ask(flags, runs)
            self._take(flags, found)
        return found if concluded is None or found.outcome is not Outcome.AGREES else concluded

    def _take(self, flags: Flags, found: Finding) -> None:
        if found.outcome is Outcome.AGREES:
            self.matching[flags] = found.runs
            return
        self.matching.pop(flags, None)
        (self._differs if found.outcome is Outcome.DIFFERS else self._fails)[flags] = found


class Search:
    """One search. After an interruption, ``best`` is the smallest set that agreed so far."""

    def __init__(
        self, ask: Ask, rank: Rank, rules: Rules | None = None, *, confirm: int = 5, error: float = ERROR_RATE
    ) -> None:
        self._facts, self._rank, self._rules = Facts(ask), rank, rules or Rules()
        self._confirm, self._error = confirm, error
        self._failing: dict[str, None] = {}
        self._promoted: list[str] = []

    @property
    def best(self) -> Flags | None:
        """The smallest set that agreed, None where none did."""
        return min(self._facts.matching, key=len, default=None)

    def run(self) -> Answer:
        """Return a set that is proven, as far as runs can prove one."""
        base = self._facts.ask(NONE, self._enough(1))
        if base.outcome is not Outcome.DIFFERS:
            deterministic = base.outcome is Outcome.AGREES
            return Answer(() if deterministic else None, base.runs, proven=deterministic, differed=False)
        for _ in range(MOST_ROUNDS):
            mended = self._grow(base)
            if mended is None:
                return Answer(None, failing=tuple(self._failing))
            answer = self._proof(smallest(mended, lambda flags: self._probe(flags).outcome is Outcome.AGREES))
            if answer is not None:
                return answer
        return Answer(None, failing=tuple(self._failing))

    def _enough(self, flags: int) -> int:
        """Return how many runs must match where an answer of so many flags rests on it.

        The error is shared: by the script as it stands, by a wrong set that might pass, by each flag left out.
        """
        rate = min(RAREST, self._facts.rate)
        return max(self._confirm, runs_needed(self._error / (flags + 2), rate))

    def _probe(self, flags: Iterable[str]) -> Finding:
        """Ask for as much agreement as a step on the way needs."""
        return self._facts.ask(self._rules.closed(flags), runs_needed(PROBE_ERROR, self._facts.rate))

    def _grow(self, base: Finding) -> list[str] | None:
        """Return flags that mend it: prefixes of the order, each twice as long; None where all of them do not.

        What moves the first difference further on is kept. Each trial that differs tells more: the order is asked
        for again after it.
        """
        chosen: list[str] = []
        tail: list[str] = []
        found = latest = base
        size = 0
        while True:
            order, together = self._order(latest, [*chosen, *tail])
            size = max(size, len(tail) + together)
            tried = self._beside(chosen, [*tail, *order[: size - len(tail)]])
            trial = self._probe(tried)
            if trial.outcome is Outcome.AGREES:
                return tried
            if trial.outcome is Outcome.FAILS:
                self._exclude(chosen, tried[len(chosen) :])
                tail = [flag for flag in tail if flag not in self._failing]
            elif trial.place > found.place and len(tried) > len(chosen):
                chosen, tail, found, latest, size = tried, [], trial, trial, 0
            elif len(tail) + len(order) <= size:
                shut_out = [flag for flag in order if flag not in tried and flag not in self._promoted]
                if not shut_out:
                    return None
                self._promoted, tail, size = [*shut_out, *self._promoted], [], 0
            else:
                tail, latest, size = tried[len(chosen) :], trial, 2 * size

    def _order(self, found: Finding, without: Sequence[str]) -> tuple[list[str], int]:
        ranked, together = self._rank(found)
        order = dict.fromkeys([*self._promoted, *ranked])
        return [flag for flag in order if flag not in self._failing and flag not in without], together

    def _beside(self, chosen: Sequence[str], more: Iterable[str]) -> list[str]:
        together = list(chosen)
        for flag in more:
            if not self._rules.exclude(flag, self._rules.closed(together)):
                together.append(flag)
        return together

    def _exclude(self, chosen: Sequence[str], added: Sequence[str]) -> None:
        """Find which of the added flags make the training fail, and put what may stand in for them in their place."""
        if len(added) > 1:
            half = len(added) // 2
            for part in (added[:half], added[half:]):
                if self._probe([*chosen, *part]).outcome is Outcome.FAILS:
                    self._exclude(chosen, part)
                    return
        for flag in added or chosen:  # only together do they fail: none of them is tried again
            self._failing[flag] = None
            self._promoted += [other for other in self._rules.instead.get(flag, ()) if other not in self._promoted]

    def _proof(self, flags: Sequence[str]) -> Answer | None:
        """Return the answer, None where more runs contradict it; a flag that was not needed after all is dropped."""
        flags = [f for f in flags if f not in self._rules.closed(other for other in flags if other != f)] or list(flags)
        enough = self._enough(len(flags))
        found = self._facts.ask(self._rules.closed(flags), enough)
        if found.outcome is not Outcome.AGREES:
            return None
        without = {}
        for flag in reversed(flags):
            rest = [other for other in flags if other != flag]
            left_out = self._facts.ask(self._rules.closed(rest), enough, seen=True)
            if left_out.outcome is Outcome.AGREES:
                return self._proof(rest)
            without[flag] = left_out
        matching = self._facts.matching[self._rules.closed(flags)]
        unproven = any(finding.outcome is Outcome.FAILS for finding in without.values())
        return Answer(tuple(flags), matching, without, tuple(self._failing), proven=not unproven)
