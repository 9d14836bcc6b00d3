"""Find a minimal set of flags that fixes a training in as few trials as possible; pure, starts no processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from detaudit.auditor.bisect.quickxplain import minimal
from detaudit.auditor.judge.confidence import ERROR_RATE, PROBE_ERROR, RAREST
from detaudit.model.evidence import runs_needed

Flags: TypeAlias = frozenset[str]
NONE: Flags = frozenset()
MOST_ROUNDS = 20
"""How often a proof may be contradicted before the search gives up."""


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


@dataclass(frozen=True)
class Rules:
    """What the catalogue says about the candidates: what each requires, what it conflicts with, its alternatives."""

    requires: Mapping[str, Iterable[str]] = field(default_factory=dict)
    conflicts: Mapping[str, Iterable[str]] = field(default_factory=dict)
    alternatives: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def closed(self, flags: Iterable[str]) -> Flags:
        """Return the flags and everything they require."""
        found = set(flags)
        while more := {needed for flag in found for needed in self.requires.get(flag, ())} - found:
            found |= more
        return frozenset(found)

    def exclude(self, flag: str, others: Iterable[str]) -> bool:
        """Whether a flag conflicts with one of the others."""
        return any(other in self.conflicts.get(flag, ()) or flag in self.conflicts.get(other, ()) for other in others)


@dataclass(frozen=True)
class Answer:
    """The answer of a search. ``needed`` is None if nothing fixes it, and empty if nothing needs a fix.

    ``matching`` runs match with the needed flags; ``without`` has the result of leaving each alone out; ``failing`` are
    flags with which the training fails; ``proven`` says that nothing contradicts the answer, and ``differed`` that runs
    without flags were observed to differ.
    """

    needed: tuple[str, ...] | None
    matching: int = 0
    without: Mapping[str, TrialResult] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    proven: bool = False
    differed: bool = True


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


class Search:
    """One search. After an interruption, ``best`` is the set with the fewest flags that matched so far."""

    def __init__(
        self, ask: Ask, rank: Rank, rules: Rules | None = None, *, confirm: int = 5, error: float = ERROR_RATE
    ) -> None:
        self._facts, self._rank, self._rules = Facts(ask), rank, rules or Rules()
        self._confirm, self._error = confirm, error
        self._failing: dict[str, None] = {}
        self._promoted: list[str] = []

    @property
    def best(self) -> Flags | None:
        """The set with the fewest flags that matched, None if none did."""
        return min(self._facts.matching, key=len, default=None)

    def run(self) -> Answer:
        """Search, and return a minimal set that runs confirm."""
        base = self._facts.ask(NONE, self._enough(1))
        if base.outcome is not TrialOutcome.DIFFERS:
            deterministic = base.outcome is TrialOutcome.MATCHES
            return Answer(() if deterministic else None, base.runs, proven=deterministic, differed=False)
        for _ in range(MOST_ROUNDS):
            fixing = self._grow(base)
            if fixing is None:
                return Answer(None, failing=tuple(self._failing))
            answer = self._proof(minimal(fixing, lambda flags: self._probe(flags).outcome is TrialOutcome.MATCHES))
            if answer is not None:
                return answer
        return Answer(None, failing=tuple(self._failing))

    def _enough(self, flags: int) -> int:
        """Return how many runs must match for an answer with this number of flags.

        The error is shared: by the runs without flags, by a wrong set that might pass, by each flag left out.
        """
        rate = min(RAREST, self._facts.rate)
        return max(self._confirm, runs_needed(self._error / (flags + 2), rate))

    def _probe(self, flags: Iterable[str]) -> TrialResult:
        """Run as many trials as a step on the way needs."""
        return self._facts.ask(self._rules.closed(flags), runs_needed(PROBE_ERROR, self._facts.rate))

    def _grow(self, base: TrialResult) -> list[str] | None:
        """Return flags that fix it: prefixes of the order, each twice as long; None if all of them do not.

        What moves the first difference to a later place is kept. Each trial that differs is a new clue: the order is
        computed again after it.
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
            if trial.outcome is TrialOutcome.MATCHES:
                return tried
            if trial.outcome is TrialOutcome.FAILS:
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

    def _order(self, found: TrialResult, without: Sequence[str]) -> tuple[list[str], int]:
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
        """Find which of the added flags make the training fail, and try their alternatives next."""
        if len(added) > 1:
            half = len(added) // 2
            for part in (added[:half], added[half:]):
                if self._probe([*chosen, *part]).outcome is TrialOutcome.FAILS:
                    self._exclude(chosen, part)
                    return
        for flag in added or chosen:  # they fail only together: none of them is tried again
            self._failing[flag] = None
            self._promoted += [other for other in self._rules.alternatives.get(flag, ()) if other not in self._promoted]

    def _proof(self, flags: Sequence[str]) -> Answer | None:
        """Return the answer, None if more runs contradict it; a flag that turns out not to be needed is dropped."""
        flags = [f for f in flags if f not in self._rules.closed(other for other in flags if other != f)] or list(flags)
        enough = self._enough(len(flags))
        found = self._facts.ask(self._rules.closed(flags), enough)
        if found.outcome is not TrialOutcome.MATCHES:
            return None
        without = {}
        for flag in reversed(flags):
            rest = [other for other in flags if other != flag]
            left_out = self._facts.ask(self._rules.closed(rest), enough, seen=True)
            if left_out.outcome is TrialOutcome.MATCHES:
                return self._proof(rest)
            without[flag] = left_out
        matching = self._facts.matching[self._rules.closed(flags)]
        unproven = any(finding.outcome is TrialOutcome.FAILS for finding in without.values())
        return Answer(tuple(flags), matching, without, tuple(self._failing), proven=not unproven)
