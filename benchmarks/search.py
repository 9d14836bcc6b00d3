"""Count the runs that a search for flags takes on simulated trainings, for bisect, ddmin (picire) and one at a time.

``make bench-bisect`` runs it. All three query the same oracle about the same flags in the same order. A needed flag is
among the first with probability 0.8, as it would be from the first difference. Two runs show that a training differs,
and five count as a match. The search of bisect has to reach no more certainty than that, and checks its answer.
"""

import logging
import random
import statistics
from collections.abc import Callable, Sequence

import picire

from detaudit.auditor.bisect.minimal_set import Search
from detaudit.auditor.bisect.trial_results import Flags, TrialOutcome, TrialResult, WholeRuns

MATCHES, DIFFERS = 5, 2
GRID = [(12, 1), (12, 2), (24, 1), (24, 2), (24, 3), (40, 1), (40, 3)]
CASES = 400


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

    def test(config: list[int], _: object) -> picire.TrialOutcome:
        return picire.TrialOutcome.FAIL if oracle.matches(config) else picire.TrialOutcome.PASS

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


def main() -> None:
    """Print the median number of runs for each number of candidates and of needed flags."""
    logging.disable()
    print("| candidates, needed | " + " | ".join(METHODS) + " | search / ddmin |\n|---|" + "---|" * (len(METHODS) + 1))
    for candidates, count in GRID:
        runs: dict[str, list[int]] = {name: [] for name in METHODS}
        for case in range(CASES):
            draw = random.Random(case)
            needed = set(draw.sample(range(candidates), count))
            front = {flag for flag in needed if draw.random() < 0.8}
            order = sorted(range(candidates), key=lambda flag: (flag not in front, draw.random()))
            for name, method in METHODS.items():
                oracle = Oracle(needed)
                assert method(oracle, order) == needed, (name, order, needed)
                runs[name].append(oracle.runs)
        medians = [statistics.median(runs[name]) for name in METHODS]
        cells = " | ".join(f"{median:g}" for median in medians)
        print(f"| {candidates}, {count} | {cells} | {medians[0] / medians[1]:.2f} |")


if __name__ == "__main__":
    main()
