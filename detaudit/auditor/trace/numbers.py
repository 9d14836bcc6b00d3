"""Where a number that an operation was given was made: in which variable it was, and which line introduced it."""

import math
from collections.abc import Iterable, Sequence

from detaudit.auditor.source.origins import Origin
from detaudit.auditor.trace.culprit_line import Known
from detaudit.auditor.trace.line_diff import Differing
from detaudit.auditor.trace.op_diff import OpFinding
from detaudit.model import SEEDING, Argument, Source, SourceKind

_TOLERANCE = 1e-6
"""A variable is a float64, an argument may be the same number as a float32."""

_NO_NUMBERS = (SourceKind.UNINITIALIZED, SourceKind.RACING_OPERATION, SourceKind.UNORDERED_OPERATION)
"""What lines do to tensors only."""


def argument(found: OpFinding) -> Argument | None:
    """Return the number that differs, None if the first difference is none."""
    if not found.argument or found.a is None or found.b is None:
        return None
    a, b = (op.scalars[found.argument] for op in (found.a, found.b))
    return Argument(name=found.argument, values=(a, b))


def variable_of(found: OpFinding, differing: Iterable[Differing]) -> Differing | None:
    """Return the first variable that has in both runs the number that differs, or its negative; None if none has."""
    given = argument(found)
    for one in differing if given is not None else ():
        held = [side.text if side else "" for side in (one.a, one.b)]
        if given is not None and all(_same(x, y) for x, y in zip(given.values, held, strict=True)):
            return one
    return None


def _same(a: str, b: str) -> bool:
    try:
        return a == b or math.isclose(abs(float(a)), abs(float(b)), rel_tol=_TOLERANCE)
    except ValueError:
        return False


def source_of(found: OpFinding, near: Sequence[tuple[str, int]], known: Known) -> Source | None:
    """Return the line that introduces randomness, or a value of the system, into a number that differs.

    It is the nearest from the lines ``near`` on, which assigned the number, or else from the operation on.
    """
    for file, line in (*near, (known.code.display(found.op.file), found.op.line)):
        for origin in known.code.origins(file, line):
            source = _source(file, origin, known)
            if source is None and (file, line) in near and origin.line <= line <= origin.last:
                source = known.code.suspect(file, origin)
            if source is not None:
                return source
    return None


def _source(file: str, origin: Origin, known: Known) -> Source | None:
    sources = [one for one in known.sources if one.kind not in _NO_NUMBERS]
    for one in sources:
        if one.file == file and origin.line <= one.line <= origin.last:
            return one
    for one in sources:
        if any(_draws(one, call) for call in origin.calls):
            return one
    name = origin.system_value
    return Source(file=file, line=origin.line, kind=SourceKind.SYSTEM_VALUE, call=name) if name else None


def _draws(source: Source, call: str) -> bool:
    """Whether a call draws from a global generator that a line seeded, or left without a seed."""
    seeded = source.call.removesuffix(".seed")
    modules = source.generators or ((seeded,) if seeded != source.call else ())
    module, _, name = call.rpartition(".")
    # A class, or default_rng, makes a generator of its own.
    own = name[:1].isupper() or name == "default_rng"
    return source.kind in {*SEEDING, SourceKind.UNSEEDED} and module in modules and not own
