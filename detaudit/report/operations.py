"""A scan of operations, and of one step of a script, in words."""

import shlex
from collections.abc import Iterable, Iterator

import click
import msgspec
from tabulate import tabulate

from detaudit.compat import assert_never
from detaudit.model.fact import both, brief, count, duration, encode, shortened
from detaudit.model.operations import (
    LeftOut,
    LeftOutCalls,
    OpCause,
    OpCrash,
    OpResult,
    OpScan,
    ScriptStep,
    SwitchEffect,
)
from detaudit.model.problems import errors
from detaudit.notebooks.cells import location_of
from detaudit.report.plain import line
from detaudit.report.terminal import filled

# What is said of one step of a script whose operations were repeated.


_FEW_IN_STEP = 6

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


def step_replay(step: ScriptStep, op: str) -> str:
    """Return the command that repeats one operation of a step."""
    script, *arguments = step.command
    after = ["--", *arguments] if arguments else []
    return shlex.join(["detaudit", "ops", "--script", script, "--at-step", str(step.step), "--op", op, *after])


def step_scanned(scan: OpScan, script: ScriptStep) -> str:
    """Return which operations were repeated."""
    calls = f"{count(scan.cases, 'different call')} of {script.calls:,}"
    return f"{count(scan.operations, 'operation')} ({calls}) in {_step(script)}"


def inconclusive(script: ScriptStep) -> str:
    """Return why nothing was repeated."""
    if script.errors:
        return f"{errors(script.errors)}; its output is in {script.log_dir}"
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


def _left_out(calls: LeftOutCalls) -> str:
    names = "" if calls.reason is LeftOut.VIEW else f": {shortened(calls.operations, most=_FEW_IN_STEP)}"
    return f"not repeated, {_LEFT_OUT[calls.reason]} ({count(calls.calls, 'call')}){names}"


def _step(script: ScriptStep) -> str:
    return f"step {script.step:,} of {script.command[0]}"


# A scan of operations, for a terminal or as JSON.


FORMATS = ("table", "json", "markdown")

HEADINGS = (
    *("OPERATION", "DTYPE", "SAMPLE", "DIRECTION", "RESULTS", "ELEMENTS", "MAX ABS", "MAX REL", "MAX ULP"),
    *("CAUSE", "SWITCH"),
)

STEP_HEADINGS = (*("CALLS" if one == "SAMPLE" else one for one in HEADINGS), "LINE")
"""Of the calls in one step of a script."""

_NUMERIC = ("left", "left", "right", "left", "right", "right", "right", "right", "right", "left", "left")
_FEW = 12
"""Names that are listed of those that only depend on the number of threads."""


def render(scan: OpScan, format_: str, width: int | None = None) -> str:
    """Return a scan in one of FORMATS; ``width`` is that of the terminal, if there is one."""
    if format_ == "json":
        return msgspec.json.format(encode(scan), indent=2).decode() + "\n"
    if format_ == "markdown":
        return tabulate(rows(scan.differing), [one.lower() for one in _headings(scan)], tablefmt="github") + "\n"
    return "\n".join(_lines(scan, width)) + "\n"


def rows(results: Iterable[OpResult]) -> list[list[str]]:
    """Return a row for each direction of an operation and type, and for each way in which its samples differ."""
    return [_row(one, more) for one, more in grouped(results)]


def grouped(results: Iterable[OpResult]) -> list[tuple[OpResult, int]]:
    """Return the most telling of the samples that differ in the same way, and how many others there are."""
    by_difference: dict[tuple[object, ...], list[OpResult]] = {}
    for one in results:
        by_difference.setdefault(
            (one.op, one.dtype, one.direction, one.cause, one.switch, one.file, one.line), []
        ).append(one)
    return [(_together(same), len(same) - 1) for same in by_difference.values()]


def _together(same: list[OpResult]) -> OpResult:
    """Return the most telling one, with the calls of all of them."""
    return msgspec.structs.replace(max(same, key=_weight), calls=sum(one.calls for one in same))


def _weight(one: OpResult) -> tuple[bool, float]:
    return one.difference is not None, one.distinct / max(one.repeats, 1)


def _row(one: OpResult, more: int) -> list[str]:
    apart = one.difference
    elements = f"{apart.mismatched:,} of {apart.total:,}" if apart else "-"
    figures = [brief(apart.max_abs), brief(apart.max_rel), _ulp(apart.max_ulp)] if apart else ["-", "-", "-"]
    sample = f"{one.sample} (+{more})" if more else str(one.sample)
    called = [line(location_of(one.file, one.line)) if one.file else "-"] if one.calls else []
    number = f"{one.calls:,}" if one.calls else sample
    return [
        *(one.op, one.dtype, number, one.direction.value, f"{one.distinct:,} of {one.repeats:,}", elements),
        *figures,
        *(one.cause.value if one.cause else "-", switch(one), *called),
    ]


def _ulp(ulp: int | None) -> str:
    return "-" if ulp is None else f"{ulp:,}"


def switch(one: OpResult) -> str:
    """Return what the deterministic switch does for an operation."""
    match one.switch:
        case SwitchEffect.FIXES:
            return "fixes it"
        case SwitchEffect.RAISES:
            return "raises"
        case SwitchEffect.NO_EFFECT:
            return "no effect"
        case SwitchEffect.UNTRIED:
            return "not tried"
        case _:
            assert_never(one.switch)


def replay(scan: OpScan, one: OpResult) -> str:
    """Return the command that repeats one sample of an operation, or an operation of a script."""
    if scan.script is not None:
        return step_replay(scan.script, one.op)
    words = ["detaudit", "ops", "--framework", scan.framework, "--op", one.op, "--dtype", one.dtype]
    device = ["--device", scan.device] if scan.device != "cpu" else []
    return shlex.join([*words, *device, "--sample", str(one.sample)])


def _lines(scan: OpScan, width: int | None) -> Iterator[str]:
    differing = grouped(scan.differing)
    if differing:
        align = _NUMERIC if scan.script is None else (*_NUMERIC, "left")
        yield tabulate(rows(scan.differing), _headings(scan), colalign=align, disable_numparse=True)
        yield ""
    yield from _answer(scan, width)
    yield from _others(scan, width)
    if differing:
        yield ""
        yield click.style("Repeat one of them:", bold=True)
        yield from (f"  {command}" for command in dict.fromkeys(replay(scan, one) for one, _ in differing))


def _headings(scan: OpScan) -> tuple[str, ...]:
    return HEADINGS if scan.script is None else STEP_HEADINGS


def _answer(scan: OpScan, width: int | None) -> Iterator[str]:
    script = scan.script
    if script is not None and not scan.cases and not scan.interrupted:
        yield filled(line(f"inconclusive: {inconclusive(script)}"), width, "", "  ")
        return
    where = f"{scan.framework} {scan.version} on {scan.device}, {count(scan.threads, 'thread')}"
    cases = f"{count(scan.operations, 'operation')} ({count(scan.cases, 'case')}) of"
    scanned = f"{step_scanned(scan, script)} with {where}" if script is not None else f"{cases} {where}"
    took = f"in {duration(scan.wall_s)}"
    names = {one.op for one in scan.differing}
    verb = "differs" if len(names) == 1 else "differ"
    answer = f"{len(names):,} of {scanned} {verb} on the same inputs" if names else f"{scanned} match"
    yield filled(line(f"{answer}; repeated {took}"), width, "", "")
    causes = {one.cause for one in scan.differing}
    if OpCause.RACE in causes:
        yield filled("race: the results match with one thread", width, "", "  ")
    if OpCause.MEMORY in causes:
        yield filled("memory: the results follow what memory was filled with, so it is uninitialized", width, "", "  ")
    if OpCause.UNEXPLAINED in causes:
        yield filled("unexplained: the results differ with one thread too, and the same filling", width, "", "  ")


def _others(scan: OpScan, width: int | None) -> Iterator[str]:
    if scan.script is not None:
        yield from (filled(line(text), width, "", "  ") for text in others(scan.script))
    refused = dict.fromkeys(one.op for one in scan.refused)
    if refused:
        yield filled(line(f"match, but the switch raises: {', '.join(refused)}"), width, "", "  ")
    if scan.thread_dependent:
        names = shortened(scan.thread_dependent, most=_FEW)
        text = f"different results with one thread ({count(len(scan.thread_dependent), 'operation')}): {names}"
        yield filled(line(text), width, "", "  ")
    for one in scan.crashed:
        yield filled(line(f"{one.op} ({one.dtype}) {_ended(one)}"), width, "", "  ")
    if scan.skipped:
        names = shortened(dict.fromkeys(one.op for one in scan.skipped), most=_FEW)
        yield filled(line(f"not repeated ({count(len(scan.skipped), 'sample set')}): {names}"), width, "", "  ")
    if scan.interrupted:
        yield "interrupted: this is what had been repeated"


def _ended(one: OpCrash) -> str:
    if one.exit_code is None:
        return "did not end in time"
    if one.exit_code < 0:
        return f"ended its process by signal {-one.exit_code}"
    return f"ended its process with exit status {one.exit_code}"
