"""Lines of the user's code that run an operation which may race, whether or not it was observed to."""

from collections.abc import Iterable

from detaudit.auditor.trace.op_records import OpLine
from detaudit.auditor.trace.user_code import UserCode
from detaudit.model import Source, SourceKind
from detaudit.recipe.ops import known

_MOST = 10


def suspects(ops: Iterable[OpLine], code: UserCode, device: str) -> tuple[Source, ...]:
    """Return each line once, with the operation that makes it a suspect; ``device`` is where the weights live."""
    found: dict[tuple[str, int], Source] = {}
    for op in ops:
        place = code.display(op.file), op.line
        if op.file and place not in found and (suspect := _suspect(op, place, device)) is not None:
            found[place] = suspect
    return tuple(found.values())[:_MOST]


def _suspect(op: OpLine, place: tuple[str, int], device: str) -> Source | None:
    row = known(op.op, "torch" if op.op.startswith("aten.") else "tensorflow", device)
    if row is None and not op.listed:
        return None
    return Source(
        file=place[0],
        line=place[1],
        kind=SourceKind.RACING_OPERATION if row is not None else SourceKind.UNORDERED_OPERATION,
        call=op.op,
        suspect=True,
        condition=row.when if row is not None else "",
    )
