"""What is flipped: one bit of one tensor of one run, and where the report must name it.

This module imports nothing of detaudit, because trainings import it too.
"""

import random
from typing import NamedTuple

STEPS = 6

STAGES = ("init", "batch", "forward", "update", "state", "output", "saved")
"""The stages that a training notes itself, in the order of a step; see Values in noted.py."""

END = STEPS + 1
"""Where a training notes what it holds at its end: after its last step."""


class Plant(NamedTuple):
    """A bit to flip: ``place`` is one of those that strike() of noted.py is called with.

    ``tensor``, ``element`` and ``bit`` are reduced modulo what there is.
    """

    place: str
    step: int
    rank: int
    tensor: int
    element: int
    bit: int


class Named(NamedTuple):
    """What a report names first: the rank, the step and the stage, or the name of a saved file."""

    rank: int
    step: int
    stage: str
    file: str = ""


class Training(NamedTuple):
    """A kind of training that is run, the number of its ranks, and the places where a bit can be flipped."""

    name: str
    world: int
    places: tuple[str, ...]


INITIAL, BATCH, LOSS = "initial weight", "batch", "loss"
IN_UPDATE, AFTER_UPDATE = "weight in its update", "weight after its update"
IN_STEP, AFTER_STEP = "buffer before the update", "buffer after the update"
EVALUATION, FILE = "batch of the last evaluation", "saved file"

_WITH_OPTIMIZER = (INITIAL, BATCH, LOSS, IN_UPDATE, AFTER_UPDATE, IN_STEP, AFTER_STEP, EVALUATION)
_BY_HAND = (INITIAL, BATCH, LOSS, IN_UPDATE, AFTER_UPDATE, EVALUATION)

TRAININGS = (
    Training("adam", 1, _WITH_OPTIMIZER),
    Training("convolution", 1, _WITH_OPTIMIZER),
    Training("by-hand", 1, _BY_HAND),
    Training("saving", 1, (FILE,)),
    Training("record", 1, (INITIAL, LOSS, IN_UPDATE, AFTER_UPDATE)),
    Training("children", 2, _WITH_OPTIMIZER),
    Training("gloo", 2, _WITH_OPTIMIZER),
    Training("gloo", 4, _WITH_OPTIMIZER),
)

TAPE = Training("tape", 1, (INITIAL, IN_UPDATE, AFTER_UPDATE, AFTER_STEP))
"""The one that needs TensorFlow, which takes seconds to load."""

KNOWN = {
    INITIAL: "init",
    BATCH: "batch",
    LOSS: "forward",
    IN_UPDATE: "update",
    IN_STEP: "state",
    EVALUATION: "output",
    FILE: "saved",
}
"""The stage at which a flip in one of these places shows at once, if it shows at all."""

_ONCE = {INITIAL: 1, EVALUATION: STEPS}
"""The places that a training has only once, with the step that they belong to."""


def draw(training: Training, number: int, count: int) -> list[Plant]:
    """Return ``count`` random plants for the audit with this number, the same each time."""
    source = random.Random(f"{training.name} {training.world} {number}")
    drawn = [
        Plant(
            place=source.choice(training.places),
            step=source.randint(1, STEPS),
            rank=source.randrange(training.world),
            tensor=source.randrange(2**20),
            element=source.randrange(2**20),
            bit=source.randrange(2**20),
        )
        for _ in range(count)
    ]
    return [plant._replace(step=_ONCE.get(plant.place, plant.step)) for plant in drawn]


Noted = dict[str, str]
"""What one process of a training noted: digests by ``<rank> <step> <stage>``."""


def expected(reference: Noted, found: Noted) -> Named | None:
    """Return the first value that differs, None if no result does.

    A batch is no result: if the losses, the weights and all else match, so do the runs. Files come last.
    """
    differing = [key.split(" ", 3) for key in reference.keys() | found.keys() if reference.get(key) != found.get(key)]
    files = sorted(file for one in differing for file in one[3:])
    values = sorted((int(step), STAGES.index(stage), int(rank)) for rank, step, stage, *file in differing if not file)
    if any(STAGES[stage] != "batch" for _, stage, _ in values):
        step, stage, rank = values[0]
        return Named(rank, min(step, STEPS), STAGES[stage])
    return Named(0, 0, "saved", files[0]) if files else None
