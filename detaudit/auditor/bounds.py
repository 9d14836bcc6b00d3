"""The best bounded answer: between which two events a difference enters, where no operation could be named."""

from collections.abc import Sequence

from detaudit.auditor import opdiff
from detaudit.auditor.culprit import Scene
from detaudit.auditor.oplines import OpLine
from detaudit.auditor.watched import Pair, Watched, Window
from detaudit.model import Bounded, Divergence, Source, Stage
from detaudit.recipe.ops import known

_NAMES = {
    Stage.INIT: "the first weights",
    Stage.RNG: "the states of the generators",
    Stage.BATCH: "the model's inputs",
    Stage.FORWARD: "the loss",
    Stage.BACKWARD: "the gradients",
    Stage.UPDATE: "the updated weights",
    Stage.STEPS: "the number of steps",
}
_MOST_SUSPECTS = 10


def bounded(
    watched: Watched, window: Window, divergence: Divergence | None, stages: Sequence[Stage], scene: Scene
) -> Bounded | None:
    """Watch calls of modules alone, and say between which two the difference enters; else between which two stages.

    The lines that run an operation which is known to race go with it.
    """
    pair = watched.pair("modules", window)
    suspects = _suspects(watched, scene)
    found = pair.first_operation() if pair else None
    if found is not None and pair is not None:
        return _of_modules(found, pair, suspects)
    if divergence is None:
        return None
    before = [stage for stage in stages if stage.place < divergence.stage.place and stage in _NAMES]
    after = _NAMES[before[-1]] if before else "the start of the step"
    before_ = _NAMES.get(divergence.stage, str(divergence.stage))
    return Bounded(step=divergence.step, after=after, before=before_, suspects=suspects)


def _of_modules(found: opdiff.Finding, pair: Pair, suspects: tuple[Source, ...]) -> Bounded:
    op = found.op
    side = "the output" if found.kind is opdiff.Kind.OUTPUT else "the input"
    after = f"the input of {op.module}" if side == "the output" else "what came before it"
    step = op.step or pair.differs.step
    return Bounded(step=step, after=after, before=f"{side} of {op.module}", suspects=suspects)


def _suspects(watched: Watched, scene: Scene) -> tuple[Source, ...]:
    """Return the lines of the user's code that run an operation which may race."""
    found: dict[tuple[str, int], Source] = {}
    for level in ("ops", "modules"):  # of TensorFlow, the latter lists nothing but what may race
        for op in watched.operations(level):
            place = scene.told(op.file), op.line
            what = _why(op, scene, listed=level == "modules")
            if what and op.file and place not in found:
                found[place] = Source(file=place[0], line=place[1], what=what, kind="candidate")
    return tuple(found.values())[:_MOST_SUSPECTS]


def _why(op: OpLine, scene: Scene, *, listed: bool) -> str:
    """Return why an operation is a suspect, "" where it is none."""
    framework = "torch" if op.op.startswith("aten.") else "tensorflow"
    row = known(op.op, framework, next(iter(scene.devices), "cpu"))
    if row is not None:
        return f"runs {op.op}, which is known to race" + (f" where {row.when}" if row.when else "")
    if listed and op.op != "module":
        return (
            f"runs {op.op} in parallel, in whatever order it comes; one at a time (parallel_iterations=1) it keeps one"
        )
    return ""
