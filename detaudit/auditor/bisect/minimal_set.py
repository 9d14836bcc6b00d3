"""Find a minimal set of flags that fixes a training in as few trials as possible; pure, starts no processes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from detaudit.auditor.bisect.flag_rules import Failures, Rules
from detaudit.auditor.bisect.growth import Growth
from detaudit.auditor.bisect.quickxplain import minimal
from detaudit.auditor.bisect.trial_results import Facts, Flags, Questions, Rank, TrialOutcome, TrialResult
from detaudit.auditor.judge.confidence import ERROR_RATE, PROBE_ERROR, RAREST
from detaudit.model.evidence import runs_needed

MOST_ROUNDS = 20
"""How often a proof may be contradicted before the search gives up."""


@dataclass(frozen=True)
class Answer:
    """The answer of a search. ``needed`` is None if nothing fixes it, and empty if nothing needs a fix.

    ``matching`` runs match with the needed flags through the step ``through``, ``whole`` of them to their ends; both
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
    whole: int | None = None


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
            return Answer((), base.runs, proven=True, differed=False, through=base.through, whole=base.whole)
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
        found = self._proven(flags, [self._rules.without(flags, flag) for flag in without])
        if found.outcome is not TrialOutcome.MATCHES:
            return None
        unproven = any(finding.outcome is TrialOutcome.FAILS for finding in without.values())
        return Answer(
            tuple(flags),
            found.runs,
            without,
            tuple(self._failures.alone),
            proven=not unproven,
            through=found.through,
            whole=found.whole,
        )
