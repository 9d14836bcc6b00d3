"""The runs that a search for flags takes on simulated trainings: bisect against ddmin (picire) and one at a time.

All three query the same oracle about the same flags in the same order. A needed flag is among the first with
probability 0.8, as it would be from the first difference. Two runs show that a training differs, and five count as a
match. The search of bisect has to reach no more certainty than that, and checks its answer. The runs include the script
without flags and a proof of five runs. Each simulated training is a turn.
"""

import logging
import random
import warnings
from collections.abc import Callable, Iterator, Sequence

import picire

from benchmarks.rows import Figure, Goal, Row, Scale, median, ratios
from detaudit.bisect.search import Search, WholeRuns
from detaudit.judge.policy import Flags, TrialOutcome, TrialResult

MATCHES, DIFFERS = 5, 2
GRID = [(12, 1), (12, 2), (24, 1), (24, 2), (24, 3), (40, 1), (40, 3)]
CASES = 400
GOAL = Goal(1)
NAMES = {"search": "runs", "ddmin": "runs of ddmin", "one at a time": "runs, one flag at a time"}


class Oracle:
    """A training whose runs match if all needed flags are set. It counts the runs."""

    def __init__(self, needed: set[int]) -> None:
        self.needed, self.runs = needed, 0
        self._matching: dict[Flags, int] = {}

    def matches(self, flags: Sequence[int]) -> bool:
        """Return the result of an audit of five runs that stops at the first difference."""
        matches = self.needed <= set(flags)
        self.runs += MATCHES if matches else DIFFERS
        return matches

    def ask(self, flags: Flags, runs: int) -> TrialResult:
        """Return the result of this number of runs; see Ask in minimal_set.py."""
        if not self.needed <= set(map(int, flags)):
            self.runs += DIFFERS
            return TrialResult(TrialOutcome.DIFFERS, DIFFERS)
        self.runs += max(0, runs - self._matching.get(flags, 0))
        self._matching[flags] = max(runs, self._matching.get(flags, 0))
        return TrialResult(TrialOutcome.MATCHES, self._matching[flags])


def search(oracle: Oracle, order: Sequence[int]) -> set[int]:
    """Return the set that detaudit's search finds."""
    ranked = [str(flag) for flag in order]
    answer = Search(WholeRuns(oracle.ask), lambda _: (ranked, 1), confirm=MATCHES, error=0.95).run()
    return set(map(int, answer.needed or ()))


def ddmin(oracle: Oracle, order: Sequence[int]) -> set[int]:
    """Return the set that picire's ddmin finds."""
    oracle.matches([])

    def test(config: list[int], _: object) -> picire.Outcome:
        return picire.Outcome.FAIL if oracle.matches(config) else picire.Outcome.PASS

    return set(picire.DD(test)(list(order)))


def one_at_a_time(oracle: Oracle, order: Sequence[int]) -> set[int]:
    """Return the set found by leaving out one flag after another, in the order in which reprotest tries variations."""
    oracle.matches([])
    kept = list(order)
    for flag in reversed(order):
        rest = [other for other in kept if other != flag]
        kept = rest if oracle.matches(rest) else kept
    return set(kept)


METHODS: dict[str, Callable[[Oracle, Sequence[int]], set[int]]] = {
    "search": search,
    "ddmin": ddmin,
    "one at a time": one_at_a_time,
}


def runs(seed: int, candidates: int, count: int) -> dict[str, float]:
    """Return the number of runs of each method for one simulated training."""
    draw = random.Random(seed)
    needed = set(draw.sample(range(candidates), count))
    front = {flag for flag in needed if draw.random() < 0.8}
    order = sorted(range(candidates), key=lambda flag: (flag not in front, draw.random()))
    taken: dict[str, float] = {}
    for name, method in METHODS.items():
        oracle = Oracle(needed)
        assert method(oracle, order) == needed, (name, order, needed)
        taken[name] = oracle.runs
    return taken


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for each number of candidates and of needed flags."""
    logging.disable()
    warnings.filterwarnings("ignore", module="picire")
    for candidates, count in GRID:
        cases = [runs(seed, candidates, count) for seed in range(scale.repeats or scale.size(CASES, 5))]
        yield Row(
            what=f"bisect, {count} of {candidates} flags needed",
            over="ddmin",
            ratios=ratios(cases, "search", "ddmin"),
            goal=GOAL,
            also=tuple(Figure(median(case[name] for case in cases), text) for name, text in NAMES.items()),
        )
