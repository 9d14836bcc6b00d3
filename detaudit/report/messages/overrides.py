"""How a script undid a flag."""

from detaudit.compat import assert_never
from detaudit.model import Override, ScriptCall, SourceKind


def sentence(found: Override) -> str:
    """Return what the script set instead of the flag."""
    match found.at:
        case "start":
            value = f"was {found.value}" if found.value else "had no value"
            return f"{found.name} {value} when the process started"
        case "end":
            by = f": {_call(found.call, found.call.value)}" if found.call else ""
            return f"{found.name} was {found.value} at the end{by}"
        case "seed":
            return _seed(found.call, found.differs) if found.call else "the script sets a seed of its own"
        case _:
            assert_never(found.at)


def _seed(call: ScriptCall, differs: SourceKind | None) -> str:
    if not call.value:
        return f"{_call(call)} without a seed"
    match differs:
        case None:
            return _call(call, call.value)
        case SourceKind.CLOCK:
            return f"{_call(call)} with a seed from the clock"
        case SourceKind.PROCESS_ID:
            return f"{_call(call)} with a seed from the process ID"
        case _:
            return f"{_call(call)} with a seed that differs between runs"


def _call(call: ScriptCall, value: str = "") -> str:
    return f"{call.file}:{call.line} calls {call.call}({value})"
