"""Recordings of small trainings, for tests."""

from typing import Any

from detaudit.model import Number, RankRecord, Recipe, Recording, Stage, Trained, Weight

STAGES = (Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE)
RECIPE = Recipe(name="none", seed=0, flags=())


def weight(digest: str = "d0", total: Number = 1.5, *, shape: tuple[int, ...] = (2, 3)) -> Weight:
    return Weight(dtype="torch.float32", shape=shape, digest=digest, sum=total)


def trained(
    steps: int = 5, rank: int = 0, end: str | None = "end", change: dict[str, str] | None = None, **fields: Any
) -> Trained:
    """A training whose digests are the step and the stage, but for ``change``, such as ``{"update2": "x"}``."""
    changed = change or {}
    marks = {
        stage: {step: changed.get(f"{stage}{step}", f"{step} {stage}") for step in range(1, steps + 1)}
        for stage in STAGES
    }
    marks[Stage.INIT] = {0: changed.get("init0", "0 init")}
    record: dict[str, Any] = {"framework": "torch", "sum_of_weights": 2.5, "final_loss": 1 / steps, "devices": ("cpu",)}
    record |= {name: fields.pop(name) for name in tuple(fields) if name in record}
    values: dict[str, Any] = {"marks": marks, "losses": {step: 1 / step for step in range(1, steps + 1)}, **fields}
    return Trained(record=RankRecord(rank=rank, steps=steps, digest=end, **record), **values)


def outside(kind: Stage, digest: str = "x", rank: int = 1) -> Trained:
    """A printed loss, or a file."""
    marks = {kind: {0: f"{digest} model.bin"} if kind is Stage.ARTIFACT else {1: digest}}
    written = digest if kind is Stage.ARTIFACT else None
    record = RankRecord(
        rank=rank,
        framework=kind.value,
        steps=0 if written else 1,
        sum_of_weights=None,
        final_loss=None if written else 0.5,
        digest=written,
    )
    return Trained(record=record, marks=marks)


def recording(*ranks: Trained, **fields: Any) -> Recording:
    values: dict[str, Any] = {"command": ("detaudit", "run"), "recipe": RECIPE, "environment": {}, **fields}
    return Recording(ranks=ranks or (trained(),), **values)
