"""The best bounded answer: between which two events a difference enters, where no operation could be named."""

from collections.abc import Sequence

from detaudit.auditor.trace import op_diff
from detaudit.auditor.trace.culprit import Scene
from detaudit.auditor.trace.instrumented import Pair, Watched, Window
from detaudit.auditor.trace.suspects import suspects
from detaudit.model import Bounded, Divergence, Source, Stage

_NAMES = {
    Stage.INIT: "the first weights",
    Stage.RNG: "the states of the generators",
    Stage.BATCH: "the model's inputs",
    Stage.FORWARD: "the loss",
    Stage.BACKWARD: "the gradients",
    Stage.UPDATE: "the updated weights",
    Stage.STEPS: "the number of steps",
}


def bounded(
    watched: Watched, window: Window, divergence: Divergence | None, stages: Sequence[Stage], scene: Scene
) -> Bounded | None:
    """Watch calls of modules alone, and say between which two the difference enters; else between which two stages.

    The lines that run an operation which is known to race go with it.
    """
    pair = watched.pair("modules", window)
    may_race = suspects((op for level in ("ops", "modules") for op in watched.operations(level)), scene)
    found = pair.first_operation() if pair else None
    if found is not None and pair is not None:
        return _of_modules(found, pair, may_race)
    if divergence is None:
        return None
    before = [stage for stage in stages if stage.place < divergence.stage.place and stage in _NAMES]
    after = _NAMES[before[-1]] if before else "the start of the step"
    before_ = _NAMES.get(divergence.stage, str(divergence.stage))
    return Bounded(step=divergence.step, after=after, before=before_, suspects=may_race)


def _of_modules(found: op_diff.Finding, pair: Pair, may_race: tuple[Source, ...]) -> Bounded:
    op = found.op
    side = "the output" if found.kind is op_diff.Kind.OUTPUT else "the input"
    after = f"the input of {op.module}" if side == "the output" else "what came before it"
    step = op.step or pair.differs.step
    return Bounded(step=step, after=after, before=f"{side} of {op.module}", suspects=may_race)
