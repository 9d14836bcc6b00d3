"""Grow a set of flags until runs match, in the order that the first differences suggest; pure, starts no processes."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from detaudit.auditor.bisect.flag_rules import Failures, Rules
from detaudit.auditor.bisect.trial_results import Flags, Rank, TrialOutcome, TrialResult

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
        found = latest = base
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
            elif trial.place > found.place and len(tried) > len(chosen):
                chosen, tail, found, latest, size = tried, [], trial, trial, 0
            elif len(tail) + len(order) <= size:
                return False, tried
            else:
                tail, latest, size = tried[len(chosen) :], trial, 2 * size

    def _fails(self, flags: Sequence[str]) -> bool:
        return self._probe(flags).outcome is TrialOutcome.FAILS

    def _order(self, found: TrialResult, front: Sequence[str], without: Sequence[str]) -> tuple[list[str], int]:
        ranked, together = self._rank(found)
        order = dict.fromkeys([*front, *self._failures.promoted, *ranked])
        return [flag for flag in order if flag not in self._failures.alone and flag not in without], together

    def _beside(self, chosen: Sequence[str], more: Iterable[str]) -> list[str]:
        together = list(chosen)
        for flag in more:
            closed = self._rules.closed(together)
            if not self._rules.exclude(flag, closed) and not self._failures.holds(self._rules.closed([*closed, flag])):
                together.append(flag)
        return together
