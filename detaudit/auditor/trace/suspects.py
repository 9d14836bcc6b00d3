"""Lines of the user's code that run an operation which may race, whether or not it was seen to."""

from collections.abc import Iterable

from detaudit.auditor.trace.culprit import Scene
from detaudit.auditor.trace.op_records import OpLine
from detaudit.model import Source
from detaudit.recipe.ops import known

_MOST = 10


def suspects(ops: Iterable[OpLine], scene: Scene) -> tuple[Source, ...]:
    """Return each line once, with why it is a suspect."""
    found: dict[tuple[str, int], Source] = {}
    for op in ops:
        place = scene.told(op.file), op.line
        what = why(op, scene)
        if what and op.file and place not in found:
            found[place] = Source(file=place[0], line=place[1], what=what, kind="candidate")
    return tuple(found.values())[:_MOST]


def why(op: OpLine, scene: Scene) -> str:
    """Return why an operation is a suspect, "" where it is none."""
    framework = "torch" if op.op.startswith("aten.") else "tensorflow"
    row = known(op.op, framework, next(iter(scene.devices), "cpu"))
    if row is not None:
        return f"runs {op.op}, which is known to race" + (f" where {row.when}" if row.when else "")
    if op.listed:
        return (
            f"runs {op.op} in whatever order it comes, unless one at a time: parallel_iterations=1, no parallel calls"
        )
    return ""
