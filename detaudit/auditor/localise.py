"""Where the first difference enters, and what kind of cause that points to, in words."""

from collections.abc import Sequence

from detaudit.model import Difference, Divergence, Run, Stage

CAUSES = {
    Stage.INIT: "the weights differ before the first step: seeds, or the order of initialisation",
    Stage.RNG: "a random generator is in another state: it was seeded or used differently",
    Stage.BATCH: "the model's inputs differ: the data pipeline",
    Stage.FORWARD: "the loss differs while weights and generators agree: the data, a forward kernel, or unset memory",
    Stage.BACKWARD: "the gradients differ while the loss agrees: a backward kernel",
    Stage.UPDATE: "the loss agrees and the updated weights differ: a backward kernel, the optimizer, or a race",
    Stage.STEPS: "the runs trained for a different number of steps: control flow depends on time or data",
}


def divergence(runs: Sequence[Run]) -> Divergence | None:
    """Return the earliest difference of any run from the group's first finished run."""
    base = next((run for run in runs if run.ranks), None)
    found = [(run, run.differs) for run in runs if run.differs is not None]
    if base is None or not found:
        return None
    run, first = min(found, key=lambda pair: (pair[1].step, list(Stage).index(pair[1].stage)))
    return Divergence(
        runs=(base.id, run.id),
        rank=first.rank,
        step=first.step,
        stage=first.stage,
        site=None,
        cause=CAUSES[first.stage],
    )


def words(difference: Difference | Divergence) -> str:
    """Return a place in a training as text."""
    return f"step {difference.step}, {difference.stage}"
