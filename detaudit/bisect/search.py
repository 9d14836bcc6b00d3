"""The search for a minimal set: grow, shrink, prove, and the same turned around; no run is started here."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from detaudit.judge.policy import NONE, Flags, TrialOutcome, TrialResult
from detaudit.judge.verdict import ERROR_RATE, PROBE_ERROR, RAREST
from detaudit.model.evidence import runs_needed

# QuickXplain: a minimal set of items that is enough, from few questions.


def minimal(items: Sequence[str], enough: Callable[[list[str]], bool]) -> list[str]:
    """Return a minimal set of items that is enough, as all of them are, by QuickXplain (Junker 2004).

    Earlier ones are preferred.
    """

    def needed(background: list[str], added: bool, rest: list[str]) -> list[str]:
        if added and enough(background):
            return []
        if len(rest) == 1:
            return rest
        first, last = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        of_last = needed([*background, *first], True, last)
        of_first = needed([*background, *of_last], bool(of_last), first)
        return [*of_first, *of_last]

    return needed([], False, list(items)) if items else []


# What trials of sets of flags showed; pure, starts no processes.


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
        result = self._ask(flags, runs)
        if result.outcome is TrialOutcome.MATCHES:
            self._matching[flags] = result
        return result

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
        return min((1 / max(1, result.runs - 1) for result in self._differs.values()), default=1.0)

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
        concluded = next((result for more, result in self._differs.items() if flags < more), None)
        if concluded is not None and not seen and self._trials.went_through(flags, concluded.step):
            return concluded
        result = question(flags)
        self._take(flags, result)
        return result if concluded is None or result.outcome is not TrialOutcome.MATCHES else concluded

    def _take(self, flags: Flags, result: TrialResult) -> None:
        if result.outcome is TrialOutcome.MATCHES:
            self._matches[flags] = result
            return
        self._matches.pop(flags, None)
        (self._differs if result.outcome is TrialOutcome.DIFFERS else self._fails)[flags] = result
        # A later difference may be hidden in what matched through less.
        self._matches = {
            one: match for one, match in self._matches.items() if match.through is None or match.through >= result.step
        }


# How flags go together: what the catalogue says, and what failing trials taught.


@dataclass(frozen=True)
class Rules:
    """What the catalogue says about the candidates: what each requires, what it conflicts with, its alternatives."""

    requires: Mapping[str, Iterable[str]] = field(default_factory=dict)
    conflicts: Mapping[str, Iterable[str]] = field(default_factory=dict)
    alternatives: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def closed(self, flags: Iterable[str]) -> Flags:
        """Return the flags and everything they require."""
        closure = set(flags)
        while more := {needed for flag in closure for needed in self.requires.get(flag, ())} - closure:
            closure |= more
        return frozenset(closure)

    def exclude(self, flag: str, others: Iterable[str]) -> bool:
        """Whether a flag conflicts with one of the others."""
        return any(other in self.conflicts.get(flag, ()) or flag in self.conflicts.get(other, ()) for other in others)

    def without(self, flags: Iterable[str], flag: str) -> Flags:
        """Return the flags and everything they require, but for one and what requires it."""
        return frozenset(one for one in self.closed(flags) if flag not in self.closed([one]))


class Failures:
    """Flags with which a training fails: ``alone``, and sets that fail only together."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.alone: dict[str, None] = {}
        self.promoted: list[str] = []
        self._together: list[Flags] = []

    def holds(self, flags: Flags) -> bool:
        """Whether these flags are known to fail: a set that fails is among them."""
        return any(together <= flags for together in self._together)

    def learn(self, chosen: Sequence[str], added: Sequence[str], fails: Callable[[list[str]], bool]) -> None:
        """Find a minimal set that fails among flags that were added to ``chosen`` and fail with them.

        The alternatives of a flag that fails alone are tried next.
        """
        core = minimal(added, lambda some: fails([*chosen, *some]))
        if chosen and not fails(core):
            core = [*minimal(chosen, lambda some: fails([*some, *core])), *core]
        if len(core) > 1:
            self._together.append(frozenset(core))
            return
        for flag in core:
            self.alone[flag] = None
            alternatives = self._rules.alternatives.get(flag, ())
            self.promoted += [other for other in alternatives if other not in self.promoted]


# Grow a set of flags until runs match, in the order that the first differences suggest; pure, starts no processes.


MOST_CLIMBS = 32
"""How often a set is grown with other flags in front, if flags that exclude each other led into a dead end."""


class Growth:
    """Grows sets of flags. ``probe`` runs as many runs as a step on the way needs."""

    def __init__(
        self, probe: Callable[[Iterable[str]], TrialResult], rank: Rank, rules: Rules, failures: Failures
    ) -> None:
        self._probe, self._rank, self._rules, self._failures = probe, rank, rules, failures

    def grow(self, base: TrialResult) -> list[str] | None:
        """Return flags that fix a training whose runs without flags are ``base``, None if no flags do.

        If a largest set that can run does not fix it, every set that does holds a flag outside of it.
        """
        fronts: deque[tuple[str, ...]] = deque([()])
        seen: set[Flags] = set()
        for _ in range(MOST_CLIMBS):
            if not fronts:
                return None
            front = fronts.popleft()
            fixes, tried = self._climb(base, front)
            if fixes:
                return tried
            outside, _together = self._order(base, (), tried)
            for flag in outside:
                if frozenset((flag, *front)) not in seen:
                    seen.add(frozenset((flag, *front)))
                    fronts.append((flag, *front))
        return None

    def _climb(self, base: TrialResult, front: Sequence[str]) -> tuple[bool, list[str]]:
        """Try prefixes of the order, each twice as long; return whether one fixes it, and the last one.

        What moves the first difference to a later place is kept. Each trial that differs is a new clue: the order is
        computed again after it.
        """
        chosen: list[str] = []
        tail: list[str] = []
        furthest = latest = base
        size = 0
        while True:
            order, together = self._order(latest, front, [*chosen, *tail])
            size = max(size, len(tail) + together)
            tried = self._beside(chosen, [*tail, *order[: size - len(tail)]])
            trial = self._probe(tried)
            if trial.outcome is TrialOutcome.MATCHES:
                return True, tried
            if trial.outcome is TrialOutcome.FAILS:
                self._failures.learn(chosen, tried[len(chosen) :], self._fails)
                tail = [flag for flag in tail if flag not in self._failures.alone]
            elif trial.position > furthest.position and len(tried) > len(chosen):
                chosen, tail, furthest, latest, size = tried, [], trial, trial, 0
            elif len(tail) + len(order) <= size:
                return False, tried
            else:
                tail, latest, size = tried[len(chosen) :], trial, 2 * size

    def _fails(self, flags: Sequence[str]) -> bool:
        return self._probe(flags).outcome is TrialOutcome.FAILS

    def _order(self, result: TrialResult, front: Sequence[str], without: Sequence[str]) -> tuple[list[str], int]:
        ranked, together = self._rank(result)
        order = dict.fromkeys([*front, *self._failures.promoted, *ranked])
        return [flag for flag in order if flag not in self._failures.alone and flag not in without], together

    def _beside(self, chosen: Sequence[str], more: Iterable[str]) -> list[str]:
        together = list(chosen)
        for flag in more:
            closed = self._rules.closed(together)
            if not self._rules.exclude(flag, closed) and not self._failures.holds(self._rules.closed([*closed, flag])):
                together.append(flag)
        return together


# Find a minimal set of flags that fixes a training in as few trials as possible; pure, starts no processes.


MOST_ROUNDS = 20
"""How often a proof may be contradicted before the search gives up."""


@dataclass(frozen=True)
class Answer:
    """The answer of a search. ``needed`` is None if nothing fixes it, and empty if nothing needs a fix.

    ``matching`` runs match with the needed flags through the step ``through``, ``complete`` of them to their ends; both
    are None if all did. ``without`` has the result of leaving each alone out; ``failing`` are flags with which the
    training fails; ``proven`` says that nothing contradicts the answer, and ``differed`` that runs without flags were
    observed to differ.
    """

    needed: tuple[str, ...] | None
    matching: int = 0
    without: Mapping[str, TrialResult] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    proven: bool = False
    differed: bool = True
    through: int | None = None
    complete: int | None = None


class Search:
    """One search. After an interruption, ``best`` is the set with the fewest flags that matched so far."""

    def __init__(
        self, trials: Questions, rank: Rank, rules: Rules | None = None, *, confirm: int = 5, error: float = ERROR_RATE
    ) -> None:
        self._trials, self._facts, self._rules = trials, Facts(trials), rules or Rules()
        self._confirm, self._error = confirm, error
        self._failures = Failures(self._rules)
        self._growth = Growth(self._probe, rank, self._rules, self._failures)

    @property
    def best(self) -> Flags | None:
        """The set with the fewest flags that matched, None if none did."""
        return self._facts.best

    def run(self) -> Answer:
        """Search, and return a minimal set that runs confirm."""
        base = self._proven((), ())
        if base.outcome is TrialOutcome.MATCHES:
            return Answer((), base.runs, proven=True, differed=False, through=base.through, complete=base.complete)
        if base.outcome is TrialOutcome.FAILS:
            return Answer(None, base.runs, differed=False)
        for _ in range(MOST_ROUNDS):
            fixing = self._growth.grow(base)
            if fixing is None:
                return Answer(None, failing=tuple(self._failures.alone))
            answer = self._proof(minimal(self._without_requiring(fixing), self._matches))
            if answer is not None:
                return answer
        return Answer(None, failing=tuple(self._failures.alone))

    def _without_requiring(self, fixing: Sequence[str]) -> list[str]:
        """Return flags that fix it without those that require others, if the others are enough."""
        for flag in [flag for flag in fixing if self._rules.requires.get(flag)]:
            rest = self._ordered(self._rules.without(fixing, flag), fixing)
            if flag in fixing and rest and self._matches(rest):
                fixing = rest
        return list(fixing)

    def _ordered(self, flags: Flags, order: Sequence[str]) -> list[str]:
        """Return flags in this order, others by name in front: they are required."""
        return sorted(flags, key=lambda flag: (order.index(flag) + 1 if flag in order else 0, flag))

    def _matches(self, flags: Iterable[str]) -> bool:
        return self._probe(flags).outcome is TrialOutcome.MATCHES

    def _share(self, flags: int) -> float:
        """Return the error that each match may have on which an answer with this number of flags rests.

        The error is shared: by the runs without flags, by a wrong set that might pass, by each flag left out.
        """
        return self._error / (max(1, flags) + 2)

    def _enough(self, flags: int) -> int:
        """Return how many runs must match for an answer with this number of flags."""
        rate = min(RAREST, self._facts.rate)
        return max(self._confirm, runs_needed(self._share(flags), rate))

    def _probe(self, flags: Iterable[str]) -> TrialResult:
        """Run as many trials as a step on the way needs."""
        closed = self._rules.closed(flags)
        if self._failures.holds(closed):
            return TrialResult(TrialOutcome.FAILS)
        runs = runs_needed(PROBE_ERROR, self._facts.rate)
        return self._facts.ask(closed, lambda asked: self._trials.probe(asked, runs))

    def _proven(self, flags: Sequence[str], without: Sequence[Flags]) -> TrialResult:
        runs, error = self._enough(len(flags)), self._share(len(flags))
        return self._facts.ask(self._rules.closed(flags), lambda asked: self._trials.prove(asked, runs, error, without))

    def _proof(self, flags: Sequence[str]) -> Answer | None:
        """Return the answer, None if more runs contradict it; a flag that turns out not to be needed is dropped.

        A flag is needed if the others and all that it requires are not enough.
        """
        flags = [f for f in flags if f not in self._rules.closed(other for other in flags if other != f)] or list(flags)
        enough = self._enough(len(flags))
        without = {}
        for flag in reversed(flags):
            rest = self._rules.without(flags, flag)
            left_out = self._facts.ask(rest, lambda asked: self._trials.left_out(asked, enough), seen=True)
            if left_out.outcome is TrialOutcome.MATCHES:
                return self._proof(self._ordered(rest, flags))
            without[flag] = left_out
        result = self._proven(flags, [self._rules.without(flags, flag) for flag in without])
        if result.outcome is not TrialOutcome.MATCHES:
            return None
        unproven = any(finding.outcome is TrialOutcome.FAILS for finding in without.values())
        return Answer(
            tuple(flags),
            result.runs,
            without,
            tuple(self._failures.alone),
            proven=not unproven,
            through=result.through,
            complete=result.complete,
        )


# Find which variations change a training, by the search for flags turned around; pure, starts no processes.


@dataclass(frozen=True)
class Effect:
    """A variation that changes the training, and a trial that shows it: a run in it differs from the control's.

    ``together_with`` are those that vary with it in that trial, none of which can be left out.
    """

    variation: str
    result: TrialResult
    together_with: tuple[str, ...] = ()

    @property
    def varied(self) -> Flags:
        """All that varies in the trial that shows it."""
        return frozenset({self.variation, *self.together_with})


@dataclass(frozen=True)
class Sensitivity:
    """The answer. ``effects`` is None if there is none, and empty if no variation changes the training.

    ``control`` is the result of the runs at control values; ``matching`` runs, one of them the control's, match if the
    variations with an effect are pinned and the rest varies.
    """

    control: TrialResult
    effects: tuple[Effect, ...] | None
    matching: int = 0


class SensitivitySearch:
    """Searches for a minimal set of variations that must be pinned.

    ``ask`` runs a training with a set of variations, and compares it with the control, in which none varies. A
    variation that changes the training is like a flag that is needed: if it varies together with those that have no
    effect, a run differs. So the search for flags, with its proof, finds what must be pinned.
    """

    def __init__(
        self, ask: Ask, candidates: Sequence[str], rank: Rank, *, confirm: int = 5, error: float = ERROR_RATE
    ) -> None:
        self._ask, self._all, self._confirm, self._error = ask, frozenset(candidates), confirm, error
        self._candidates = tuple(candidates)
        self._rate = 1.0
        self._control: TrialResult
        self._search = Search(WholeRuns(self._pinned), rank, confirm=confirm, error=error)

    def run(self) -> Sensitivity:
        """Return what changes the training, proven as far as runs can prove it; the control comes first."""
        if self._asked(NONE, self._confirm).outcome is not TrialOutcome.MATCHES:
            return Sensitivity(self._control, None)
        answer = self._search.run()
        if answer.needed:
            self._asked(NONE, self._sure())
        if answer.needed is None or self._control.outcome is not TrialOutcome.MATCHES:
            return Sensitivity(self._control, None)
        harmless = [one for one in self._candidates if one not in answer.needed]
        effects = tuple(self._effect(one, harmless, answer.without[one]) for one in answer.needed)
        return Sensitivity(self._control, effects, answer.matching)

    def _sure(self) -> int:
        """Return how many runs of the control must match, so that no variation is blamed for a training by itself."""
        return max(self._confirm, runs_needed(self._error, min(RAREST, self._rate)))

    def _pinned(self, pinned: Flags, runs: int) -> TrialResult:
        return self._asked(self._all - pinned, runs)

    def _asked(self, varied: Flags, runs: int) -> TrialResult:
        result = self._ask(varied, runs)
        if not varied:
            self._control = result
        if result.outcome is TrialOutcome.DIFFERS:
            self._rate = min(self._rate, 1 / max(1, result.runs - 1))
        return result

    def _effect(self, variation: str, harmless: Sequence[str], seen: TrialResult) -> Effect:
        """Return a minimal set of variations that shows this one."""
        shown = {frozenset({variation, *harmless}): seen}

        def shows(together_with: list[str]) -> bool:
            varied = frozenset({variation, *together_with})
            if varied not in shown:
                result = self._asked(varied, runs_needed(PROBE_ERROR, self._rate))
                if result.outcome is not TrialOutcome.DIFFERS:
                    return False
                shown[varied] = result
            return True

        together_with = () if shows([]) else tuple(minimal(harmless, shows))
        return Effect(variation, shown[frozenset({variation, *together_with})], together_with)
