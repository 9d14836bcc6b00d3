"""Recordings of small trainings, for tests."""

from typing import Any

from detaudit.model import AppliedRecipe, FinalState, Number, Recording, RunRecord, Stage, Training, Weight, record_of

STAGES = (Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE)
RECIPE = AppliedRecipe(name="none", seed=0, flags=())


def weight(digest: str = "d0", total: Number = 1.5, *, shape: tuple[int, ...] = (2, 3)) -> Weight:
    return Weight(dtype="torch.float32", shape=shape, digest=digest, sum=total)


def trained(steps: int = 5, end: str | None = "end", change: dict[str, str] | None = None, **fields: Any) -> Training:
    """A training whose digests are the step and the stage, but for ``change``, such as ``{"update2": "x"}``."""
    changed = change or {}
    digests = {
        stage: {step: (changed.get(f"{stage}{step}", f"{step} {stage}"),) for step in range(1, steps + 1)}
        for stage in STAGES
    }
    digests[Stage.INIT] = {0: (changed.get("init0", "0 init"),)}
    state: dict[str, Any] = {"digest": end, "sum": 2.5, "loss": 1 / steps, "devices": ("cpu",)}
    state |= {name: fields.pop(name) for name in ("sum", "loss", "devices", "weights", "sampled") if name in fields}
    values: dict[str, Any] = {
        "framework": "torch",
        "steps": steps,
        "digests": digests,
        "losses": {step: 1 / step for step in range(1, steps + 1)},
        "final": FinalState(**state),
        **fields,
    }
    return Training(**values)


def outside(kind: Stage, digest: str = "x") -> Training:
    """A printed loss, or a file."""
    if kind is Stage.ARTIFACT:
        digests: dict[Stage, dict[int, tuple[str, ...]]] = {kind: {0: (f"{digest} model.bin",)}}
        return Training(framework=kind.value, digests=digests, final=FinalState(digest=digest))
    return Training(framework=kind.value, steps=1, digests={kind: {1: (digest,)}}, losses={1: 0.5})


def run_record(*parts: Training) -> RunRecord:
    return record_of(parts or (trained(),))


def recording(*parts: Training, **fields: Any) -> Recording:
    values: dict[str, Any] = {"command": ("detaudit", "run"), "recipe": RECIPE, "environment": {}, **fields}
    return Recording(run=run_record(*parts), **values)
