"""How a difference spreads: in how many operations of each step two runs differ."""

from collections import Counter
from collections.abc import Mapping

from detaudit.model import Number, StepSpread

MOST_STEPS = 32
"""Steps that are reported, from the first one on in which an operation differs."""


class Spread:
    """Counts the operations that two runs have in common, by step."""

    def __init__(self) -> None:
        self._operations: Counter[int] = Counter()
        self._differing: Counter[int] = Counter()
        self._absorbing: Counter[int] = Counter()

    def add(self, step: int, *, takes: bool, returns: bool) -> None:
        """Add an operation, and whether what it ``takes`` and what it ``returns`` differs."""
        self._operations[step] += 1
        self._differing[step] += returns
        self._absorbing[step] += takes and not returns

    def steps(self, a: Mapping[int, Number], b: Mapping[int, Number]) -> tuple[StepSpread, ...]:
        """Return the steps from the first difference on, with the losses of both runs; none if nothing differs."""
        first = min((step for step, number in self._differing.items() if number), default=None)
        if first is None:
            return ()
        return tuple(
            StepSpread(
                step=step,
                operations=self._operations[step],
                differing=self._differing[step],
                absorbing=self._absorbing[step],
                losses=(a[step], b[step]) if step in a and step in b else None,
            )
            for step in sorted(step for step in self._operations if step >= first)[:MOST_STEPS]
        )
