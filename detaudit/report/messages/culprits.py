"""What the culprit of a trace does, and between which events a difference enters if there is no culprit."""

from detaudit import wire
from detaudit.model import Argument, Boundary, Cause, Culprit, How, Narrowed
from detaudit.model.sources import SOME_EMPTY
from detaudit.model.stage import STAGES

HOW = {
    How.OUTPUT: "identical inputs, different output",
    How.RNG_STATE: "draws from a generator in a different state",
    How.UNINITIALIZED: "reads uninitialized memory",
    How.REORDERED: "takes the same tensors in a different order",
    How.INPUT: "the data given to the framework already differs",
    How.ARGUMENT: "a number given to the operation differs",
    How.CONCURRENT_WRITE: "another thread or process wrote to its input concurrently",
    How.CONTROL_FLOW: "the two runs took different code paths",
    How.VARIABLE: "a variable has a different value after this line",
    How.SOURCE: "this line introduces the difference",
    How.LEFTOVER_FILE: "this line reads a file that an earlier run wrote",
}


def sentence(culprit: Culprit) -> str:
    """Return what the line does."""
    if culprit.source is not None:
        return culprit.source.text()
    match culprit.how:
        case How.OUTPUT if culprit.operation is not None and culprit.operation.collective:
            return "a collective: its result also depends on the other ranks"
        case How.UNINITIALIZED:
            return SOME_EMPTY
        case How.CONCURRENT_WRITE:
            return "writes to memory that another thread or process writes concurrently"
        case How.CONTROL_FLOW:
            return "the two runs took different code paths here"
        case How.VARIABLE if culprit.name and culprit.cause is Cause.ORDER:
            return f"{culprit.name} has the same elements in a different order"
        case How.VARIABLE if culprit.name:
            return f"{culprit.name} has a different value"
        case How.LEFTOVER_FILE if culprit.name:
            return f"reads {culprit.name}, which an earlier run wrote"
        case _:
            return entered(culprit)


def entered(culprit: Culprit) -> str:
    """Return how the difference entered the operation."""
    differing_argument = culprit.operation.argument if culprit.operation is not None else None
    return argument(differing_argument) if differing_argument is not None else HOW[culprit.how]


def argument(differing_argument: Argument) -> str:
    """Return which number differs, in as few digits as show it."""
    a, b = differing_argument.values
    short = [f"{float(value):.6g}" if _is_number(value) else value for value in (a, b)]
    shown = short if short[0] != short[1] else [a, b]
    if differing_argument.name.startswith(wire.START):
        start = differing_argument.name.removeprefix(wire.START)
        return f"input {start} starts at elements {shown[0]} and {shown[1]} of its memory"
    return f"argument {differing_argument.name} differs: {shown[0]} and {shown[1]}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def narrowed(bounds: Narrowed) -> str:
    """Return between which events the difference enters."""
    if bounds.after == Boundary() and bounds.before.module:
        return f"step {bounds.step:,}, before {boundary(bounds.before)}"
    return f"step {bounds.step:,}, between {boundary(bounds.after)} and {boundary(bounds.before)}"


def boundary(event: Boundary) -> str:
    """Return an event of a step."""
    if event.stage is not None:
        return STAGES[event.stage].event
    if event.module:
        return f"the {event.side} of {event.module}" if event.side else event.module
    return "the start of the step"
