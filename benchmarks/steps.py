"""What recording adds to a training step, in CPU time: a recorded process against one that is not.

A step of less than a few milliseconds is mostly Python of the framework, and what recording adds to it has a budget in
milliseconds. *Default stages* are all but `backward`, which has the gradients.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pace import blocks, recorded
from benchmarks.rows import Figure, Goal, Row, Scale, median, ratios
from benchmarks.trainings import MLP, TRAININGS
from detaudit import wire

TURNS = 10
GOALS = {"default stages": Goal(1.05), "all stages": Goal(1.25)}
STAGES = {"default stages": wire.DEFAULT_STAGES, "all stages": wire.STAGES}
BUDGETS_MS = {
    MLP: 0.15,
    "Keras CNN of 0.55 million weights": 0.6,
    "Keras MLP, train_on_batch": 0.5,
    "MLP in a tf.function": 0.25,
}
PLAIN = "unrecorded"


def rows(scale: Scale, name: str, kinds: dict[str, tuple[str, ...]], turns: int) -> Iterator[Row]:
    """Yield a row for each choice of stages of one training."""
    training = TRAININGS[name]
    with tempfile.TemporaryDirectory() as logs:
        processes: dict[str, tuple[str, dict[str, str]]] = {PLAIN: (training.code, {})}
        for kind, stages in kinds.items():
            processes[kind] = training.code, recorded(Path(logs) / kind, stages)
        found = blocks(processes, scale.size(training.block, 1), scale.turns(turns))
    for kind in kinds:
        budget = BUDGETS_MS.get(name)
        plain_ms = median(turn[PLAIN] for turn in found) * 1e3
        added_ms = median(turn[kind] - turn[PLAIN] for turn in found) * 1e3
        limit = Goal(budget) if budget and kind == "default stages" else None
        yield Row(
            what=f"{name}, {kind}",
            over="an unrecorded step",
            ratios=ratios(found, kind, PLAIN),
            goal=None if budget else GOALS.get(kind),
            also=(Figure(plain_ms, "ms a step"), Figure(added_ms, "ms more", limit)),
        )


def measure(scale: Scale) -> Iterator[Row]:
    """Yield the rows of all trainings."""
    for name in TRAININGS:
        # Small steps are noisier, and take no time.
        yield from rows(scale, name, STAGES, 4 * TURNS if name in BUDGETS_MS else TURNS)
