"""The best answer if no operation can be named: between which two events a difference enters."""

from collections.abc import Sequence

from detaudit.auditor.trace.instrumented import RunPair
from detaudit.auditor.trace.op_diff import OpFinding
from detaudit.model import UNHOOKED, Boundary, Divergence, How, Narrowed, Source, Stage


def between_modules(found: OpFinding, pair: RunPair, suspects: tuple[Source, ...]) -> Narrowed:
    """Return the answer for the first call of a module that differs."""
    op = found.op
    side = "output" if found.how is How.OUTPUT else "input"
    after = Boundary(module=op.module, side="input") if side == "output" else Boundary()
    before = Boundary(module=op.module, side=side)
    return Narrowed(step=op.step or pair.differs.step, after=after, before=before, suspects=suspects)


def between_stages(found: Divergence, recorded: Sequence[Stage], suspects: tuple[Source, ...]) -> Narrowed:
    """Return the answer for the first stage that differs."""
    earlier = [stage for stage in recorded if stage.place < found.stage.place and stage not in UNHOOKED]
    after = Boundary(stage=earlier[-1]) if earlier else Boundary()
    return Narrowed(step=found.step, after=after, before=Boundary(stage=found.stage), suspects=suspects)
