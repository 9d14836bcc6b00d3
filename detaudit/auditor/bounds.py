"""The best bounded answer: between which two events a difference enters, where no operation could be named."""

from collections.abc import Sequence

from detaudit.auditor import opdiff
from detaudit.auditor.culprit import Scene
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
    suspects = _suspects(watched, scene)
    pair = watched.pair("modules", window)
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
    """Return the lines of the user's code that ran an operation which is known to race."""
    framework = "tensorflow" if "tensorflow" in scene.frameworks else "torch"
    found: dict[tuple[str, int], Source] = {}
    for op in watched.operations():
        row = known(op.op, framework, next(iter(scene.devices), "cpu"))
        place = scene.told(op.file), op.line
        if row is not None and op.file and place not in found:
            what = f"runs {op.op}, which is known to race" + (f" where {row.when}" if row.when else "")
            found[place] = Source(file=place[0], line=place[1], what=what, kind="candidate")
    return tuple(found.values())[:_MOST_SUSPECTS]
