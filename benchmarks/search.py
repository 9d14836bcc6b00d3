"""How many launches the search takes on simulated trainings, beside ddmin (picire) and one flag at a time.

``make bench-bisect`` runs it. All three ask the same oracle about the same flags in the same order, in which a needed
flag stands in front with probability 0.8, as the first difference would put it. Two runs show that a training differs,
five that it agrees. The search is asked for no more certainty than that, and proves its answer.
"""

import logging
import random
import statistics
from collections.abc import Callable, Sequence

import picire

from detaudit.auditor.bisect.minimal_set import Finding, Flags, Outcome, Search

AGREES, DIFFERS = 5, 2
GRID = [(12, 1), (12, 2), (24, 1), (24, 2), (24, 3), (40, 1), (40, 3)]
CASES = 400


class Oracle:
    """A training that agrees once all needed flags are set; it counts the launches."""

    def __init__(self, needed: set[int]) -> None:
        self.needed, self.launches = needed, 0
        self._matching: dict[Flags, int] = {}

    def agrees(self, flags: Sequence[int]) -> bool:
        """Answer as an audit of five runs would that stops at the first difference."""
        agrees = self.needed <= set(flags)
        self.launches += AGREES if agrees else DIFFERS
        return agrees

    def ask(self, flags: Flags, runs: int) -> Finding:
        """Answer with as many runs as are asked for; see search.Ask."""
        if not self.needed <= set(map(int, flags)):
            self.launches += DIFFERS
            return Finding(Outcome.DIFFERS, DIFFERS)
        self.launches += max(0, runs - self._matching.get(flags, 0))
        self._matching[flags] = max(runs, self._matching.get(flags, 0))
        return Finding(Outcome.AGREES, self._matching[flags])


def search(oracle: Oracle, order: Sequence[int]) -> set[int]:
    """Return what detaudit's search finds."""
    ranked = [str(flag) for flag in order]
    answer = Search(oracle.ask, lambda _: (ranked, 1), confirm=AGREES, error=0.95).run()
    return set(map(int, answer.needed or ()))


def ddmin(oracle: Oracle, order: Sequence[int]) -> set[int]:
    """Return what picire's ddmin finds."""
    oracle.agrees([])

    def test(config: list[int], _: object) -> picire.Outcome:
        return picire.Outcome.FAIL if oracle.agrees(config) else picire.Outcome.PASS

    return set(picire.DD(test)(list(order)))


def one_at_a_time(oracle: Oracle, order: Sequence[int]) -> set[int]:
    """Return what leaving out one flag after another finds, in the order in which reprotest tries its variations."""
    oracle.agrees([])
    kept = list(order)
    for flag in reversed(order):
        rest = [other for other in kept if other != flag]
        kept = rest if oracle.agrees(rest) else kept
    return set(kept)


METHODS: dict[str, Callable[[Oracle, Sequence[int]], set[int]]] = {
    "search": search,
    "ddmin": ddmin,
    "one at a time": one_at_a_time,
}


def main() -> None:
    """Print the median launches for each number of candidates and of needed flags."""
    logging.disable()
    print("| candidates, needed | " + " | ".join(METHODS) + " | search / ddmin |\n|---|" + "---|" * (len(METHODS) + 1))
    for candidates, count in GRID:
        launches: dict[str, list[int]] = {name: [] for name in METHODS}
        for case in range(CASES):
            draw = random.Random(case)
            needed = set(draw.sample(range(candidates), count))
            front = {flag for flag in needed if draw.random() < 0.8}
            order = sorted(range(candidates), key=lambda flag: (flag not in front, draw.random()))
            for name, method in METHODS.items():
                oracle = Oracle(needed)
                assert method(oracle, order) == needed, (name, order, needed)
                launches[name].append(oracle.launches)
        medians = [statistics.median(launches[name]) for name in METHODS]
        cells = " | ".join(f"{median:g}" for median in medians)
        print(f"| {candidates}, {count} | {cells} | {medians[0] / medians[1]:.2f} |")


if __name__ == "__main__":
    main()
