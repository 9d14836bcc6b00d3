"""What is said of one step of a script whose operations were repeated."""

import shlex
from collections.abc import Iterator

from detaudit.model.number import count
from detaudit.model.operations import LeftOut, LeftOutCalls, OpScan, ScriptStep
from detaudit.report.messages import problems
from detaudit.report.messages.wording import both, shortened

_FEW = 6

_LEFT_OUT = {
    LeftOut.VIEW: "views, which compute nothing",
    LeftOut.UNINITIALIZED: "uninitialized memory",
    LeftOut.COLLECTIVE: "collectives, which need other processes",
    LeftOut.CUSTOM: "operations that do not come with torch",
    LeftOut.HIGHER_ORDER: "operations on functions or kernels",
    LeftOut.GENERATOR: "random numbers from a generator of their own",
    LeftOut.ARGUMENT: "arguments that cannot be saved",
    LeftOut.TOO_LARGE: "integers that are too large to save",
    LeftOut.FAILED: "saving their inputs failed",
}


def replay(found: ScriptStep, op: str) -> str:
    """Return the command that repeats one operation of a step."""
    script, *arguments = found.command
    after = ["--", *arguments] if arguments else []
    return shlex.join(["detaudit", "ops", "--script", script, "--at-step", str(found.step), "--op", op, *after])


def scanned(found: OpScan, script: ScriptStep) -> str:
    """Return which operations were repeated."""
    calls = f"{count(found.cases, 'different call')} of {script.calls:,}"
    return f"{count(found.operations, 'operation')} ({calls}) in {_step(script)}"


def inconclusive(script: ScriptStep) -> str:
    """Return why nothing was repeated."""
    if script.errors:
        return f"{problems.errors(script.errors)}; its output is in {script.log_dir}"
    if script.steps < script.step:
        did = f"did {count(script.steps, 'step')}" if script.steps else "did no step"
        return f"{script.command[0]} {did}, and step {script.step:,} was to be recorded; --at-step selects another"
    if script.calls:
        return f"no operation in {_step(script)} could be repeated"
    frameworks = f", which trains with {both(script.frameworks)}" if script.frameworks else ""
    return f"no operation of torch was recorded in {_step(script)}{frameworks}"


def others(script: ScriptStep) -> Iterator[str]:
    """Yield what a reader has to know of what was repeated."""
    if script.drawn:
        yield f"inputs too large to save: {count(script.drawn, 'different call')} repeated on random numbers"
    yield from map(_left_out, script.left_out)
    if script.compiled:
        yield f"torch.compile compiled {count(script.compiled, 'function')}: generated kernels were not repeated"
    if script.processes > 1:
        yield f"these are the calls of 1 of {count(script.processes, 'process', 'processes')} that train"


def _left_out(found: LeftOutCalls) -> str:
    names = "" if found.reason is LeftOut.VIEW else f": {shortened(found.operations, most=_FEW)}"
    return f"not repeated, {_LEFT_OUT[found.reason]} ({count(found.calls, 'call')}){names}"


def _step(script: ScriptStep) -> str:
    return f"step {script.step:,} of {script.command[0]}"
