"""What each stage adds to a training step, in CPU time: a process that records this stage alone against one without.

The costs of single stages do not add up to that of all: each of them pays for what they share.
"""

from collections.abc import Iterator

from benchmarks.rows import Row, Scale
from benchmarks.steps import rows
from detaudit import wire

TRAININGS = ("torch CNN with 32 batch normalizations", "GPT of 10.8 million weights")
TURNS = 8


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for each stage of a training with buffers, and of one with many weights."""
    for name in TRAININGS:
        yield from rows(scale, name, {f"stage {stage}": (stage,) for stage in wire.STAGES}, TURNS)
