"""Where to end runs early: after a step, or after a time."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Until:
    """Where to end each run: after a ``step``, or after the one that the first run does in so many ``seconds``.

    They count from the start of the run, or, ``in_training``, from its first step on; then it does two at least.
    """

    step: int | None = None
    seconds: float | None = None
    in_training: bool = False

    def __str__(self) -> str:
        return f"{self.seconds:g}s" if self.step is None else str(self.step)

    @classmethod
    def parse(cls, text: str) -> "Until":
        """Return what ``400``, ``90s``, ``15m`` or ``2h`` means. Raises ValueError for anything else."""
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text.strip())
        if found is None or float(found[1]) <= 0 or (not found[2] and "." in found[1]):
            raise ValueError(f"{text!r} is neither a step, such as 400, nor a time, such as 90s, 15m or 2h")
        if not found[2]:
            return cls(step=int(found[1]))
        return cls(seconds=float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]])
