"""What the reporters for people say of a trace: the culprit, how the two runs differ there, and what mends it."""

from collections.abc import Iterator

from detaudit.model import ALL_STEPS, Bounded, Culprit, Difference, How, Trace, Verdict
from detaudit.report import tensors, words

_HOW: dict[How, str] = {
    "output": "its inputs are equal to the bit, and its output differs",
    "random": "it draws from a generator that is in another state",
    "fresh": "memory was read before it was written",
    "other-tensor": "both runs have both tensors, and take them in another order",
    "outside": "what the framework was given differs",
    "written-between": "somebody else wrote to the memory of its input",
    "fork": "the two programs went different ways",
    "value": "a variable differs after this line",
    "source": "this line brings it",
}


def sentence(trace: Trace) -> str:
    """Return the answer in one sentence."""
    if trace.culprit is not None:
        found = trace.culprit
        return f"step {found.step}, {found.stage}: {_place(found)} ({found.cause})"
    if trace.bounded is not None:
        return f"step {trace.bounded.step}: between {trace.bounded.after} and {trace.bounded.before}"
    if trace.verdict is Verdict.DETERMINISTIC:
        return f"{words.sentence(trace.groups[0])}: there is nothing to trace"
    return words.sentence(trace.groups[0])


def _place(found: Culprit) -> str:
    where = f"{found.file}:{found.line}" if found.file else "no line of your code"
    return f"{where}, {found.op}" if found.op and found.how in ("output", "random", "written-between") else where


def why(found: Culprit) -> str:
    """Return the line, and what is wrong with it."""
    return f"{found.code}: {found.words or _HOW[found.how]}"


def lines(trace: Trace) -> Iterator[str]:
    """Yield what else is known of the culprit."""
    found = trace.culprit
    if found is None:
        yield from _bounded(trace.bounded)
        yield from _hidden(trace)
        return
    yield from filter(None, [found.code and f"> {found.code}"])
    yield found.words or _HOW[found.how]
    yield from filter(None, [_operation(found)])
    if found.values is not None:
        yield f"in one run: {found.values[0]}; in the other: {found.values[1]}"
    if found.tensor is not None:
        yield f"the tensor ({tensors.kind(found.tensor.dtype, found.tensor.shape)}):"
        yield from (f"  {line}" for line in tensors.lines(found.tensor.difference))
        if found.tensor.kept:
            yield f"  both are in {found.tensor.kept}"
    yield from _mends(found)
    if found.also:
        yield "other lines that may differ: " + ", ".join(f"{one.file}:{one.line}" for one in found.also)
    yield from _hidden(trace)


def _operation(found: Culprit) -> str:
    """Return the operation, where it ran, and on which line of its own."""
    if found.op is None:
        return ""
    parts = [
        f"backward pass, {found.node}" if found.backward and found.node else found.node or "",
        f"module {found.module}" if found.module else "",
        f"thread {found.thread}" if found.thread else "",
        f"rank {found.rank}" if found.rank else "",
        f"seen at {found.at}" if found.at else "",
    ]
    how = f": {_HOW[found.how]}" if found.words else ""
    return f"operation: {', '.join([found.op, *filter(None, parts)])}{how}"


def _mends(found: Culprit) -> Iterator[str]:
    if found.edit is not None:
        yield f"an edit mends it, {found.edit.file}:{found.edit.first}:"
        yield from (f"  - {line.strip()}" for line in found.edit.old)
        yield from (f"  + {line.strip()}" for line in (*found.edit.needs, *found.edit.new))
    for cure in found.cures:
        yield f"flag {cure.flag}: in the script, {cure.where}: {cure.in_script}"


def _bounded(found: Bounded | None) -> Iterator[str]:
    for one in found.suspects if found else ():
        yield f"{one.file}:{one.line}: {one.what}"


def _hidden(trace: Trace) -> Iterator[str]:
    if trace.observer_effect:
        runs = sum(one.runs for one in trace.passes if one.level == "ops")
        yield f"the {runs} runs whose operations were watched agree: watching hides the race"


def foot(trace: Trace) -> Iterator[str]:
    """Yield how the runs were watched."""
    for one in trace.passes:
        differ = f", two differ first at {_where(one.differs)}" if one.differs else ", all agree"
        steps = f"steps {one.first} to {one.last}" if one.last < ALL_STEPS else "all steps"
        yield f"watched: {one.level} of {steps}, {one.runs} runs{differ}"
    yield f"{trace.launches} runs in all"


def _where(found: Difference) -> str:
    return f"step {found.step}, {found.stage}"
