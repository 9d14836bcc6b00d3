"""What reports say about a trace: the culprit, how two runs differ there, and what fixes it."""

from collections.abc import Iterator
from dataclasses import dataclass

from detaudit import wire
from detaudit.model import (
    VERDICTS,
    Argument,
    Boundary,
    Cause,
    Condition,
    Culprit,
    Edit,
    How,
    ModeEffect,
    Narrowed,
    Obstacle,
    Operation,
    Pass,
    RemedyTrial,
    Replay,
    ReplayedPass,
    ReplayVerdict,
    Series,
    Trace,
)
from detaudit.model.difference import tensor_type
from detaudit.model.fact import count, every
from detaudit.model.sources import REPEATED, SOME_EMPTY
from detaudit.model.stage import STAGES
from detaudit.model.trace import at_steps
from detaudit.notebooks.cells import location_of
from detaudit.report import groups

_LEVELS = {"racing": "racing ops"}
"""Levels whose names are not what they record."""


@dataclass(frozen=True)
class Answer:
    """The answer of a trace: in a word or two, and in one sentence."""

    word: str
    sentence: str


def answer(trace: Trace) -> Answer:
    """Return the answer."""
    if trace.culprit is not None:
        return Answer("culprit", _culprit(trace.culprit))
    if trace.narrowed_to is not None:
        return Answer("narrowed down", narrowed(trace.narrowed_to))
    if not trace.groups:
        return Answer("inconclusive", "no run finished")
    group = trace.groups[0]
    return Answer(VERDICTS[group.verdict].no_culprit, groups.verdict_sentence(group))


def _culprit(culprit: Culprit) -> str:
    location = location_of(culprit.file, culprit.line) if culprit.file else "outside your code"
    if culprit.operation is not None and culprit.how in (How.OUTPUT, How.RNG_STATE, How.CONCURRENT_WRITE):
        location += f" ({culprit.operation.name})"
    return f"{location} {culprit.stage.where(culprit.step)}, cause: {CAUSES[culprit.cause]}"


def lines(trace: Trace) -> Iterator[str]:
    """Yield what else is known about the culprit, or the suspects if there is none."""
    if trace.culprit is not None:
        yield from _culprit_lines(trace.culprit)
    elif trace.narrowed_to is not None:
        yield from (source.with_place() for source in trace.narrowed_to.suspects)
    if trace.observer_effect:
        runs = sum(one.runs for one in trace.passes if one.level == "ops")
        yield f"{every(runs, 'instrumented run')} match: instrumentation hides the race"


def _culprit_lines(culprit: Culprit) -> Iterator[str]:
    if culprit.code:
        yield f"> {culprit.code}"
    yield from about(culprit)
    yield from replay_lines(culprit.operation)
    tensor = culprit.operation.tensor if culprit.operation is not None else None
    if tensor is not None:
        yield f"the tensor ({tensor_type(tensor.dtype, tensor.shape)}):"
        yield from (f"  {line}" for line in tensor.difference.lines())
        if tensor.saved_to:
            yield f"  both saved in {tensor.saved_to}"
    edit = helpful_edit(culprit)
    if edit is not None:
        yield f"{edit_line(culprit)}:"
        yield from edited_lines(edit)
    yield from fixes(culprit)
    yield from suspects(culprit)


def about(culprit: Culprit) -> Iterator[str]:
    """Yield what the line does, the operation that it runs, and the two values of a variable."""
    yield culprit_sentence(culprit)
    if culprit.operation is not None:
        yield _operation(culprit)
    if culprit.repeated:
        yield REPEATED
    if culprit.values is not None:
        yield f"one run: {culprit.values[0]}; other run: {culprit.values[1]}"


def suspects(culprit: Culprit) -> Iterator[str]:
    """Yield the other lines that may differ, if there are any."""
    if culprit.suspects:
        yield "other suspects: " + ", ".join(location_of(one.file, one.line) for one in culprit.suspects)


def helpful_edit(culprit: Culprit) -> Edit | None:
    """Return the edit of a culprit if it was tried, and helps."""
    trial = culprit.edit_trial
    return culprit.suggested_edit if trial is not None and trial.helps(culprit.step, culprit.stage) else None


def edit_line(culprit: Culprit) -> str:
    """Return where an edit fixes it, and what came of it; ``""`` if none helps."""
    edit, trial = helpful_edit(culprit), culprit.edit_trial
    if edit is None or trial is None:
        return ""
    return f"suggested edit, {location_of(edit.file, edit.line)}, with which {_trial(trial, culprit)}"


def _operation(culprit: Culprit) -> str:
    """Return the operation, where it ran, and how the difference entered if the line does not say so."""
    ran = culprit.operation
    if ran is None:
        return ""
    node = ran.graph_node or ""
    parts = [
        f"backward pass, {node}" if ran.backward and node else node,
        f"module {ran.module}" if ran.module else "",
        f"thread {culprit.thread}" if culprit.thread else "",
        f"rank {culprit.rank}" if culprit.rank else "",
        f"at {ran.op_location}" if ran.op_location else "",
    ]
    how = entered(culprit)
    is_new = culprit_sentence(culprit) != how
    return f"operation: {', '.join([ran.name, *filter(None, parts)])}{f': {how}' * is_new}"


def fixes(culprit: Culprit) -> Iterator[str]:
    """Yield the flags that fix it, and what came of all that were tried."""
    if culprit.edit_trial is not None and helpful_edit(culprit) is None:
        yield f"with an edit of this line, {_trial(culprit.edit_trial, culprit)}"
    for fix in culprit.flags:
        if fix.trial is not None:
            if fix.trial.helps(culprit.step, culprit.stage):
                yield f"fix with --flag {fix.flag}"
            yield f"with --flag {fix.flag}, {_trial(fix.trial, culprit)}"


def _trial(trial: RemedyTrial, culprit: Culprit) -> str:
    first = trial.first_difference
    if trial.failed:
        return "a run failed"
    if trial.repeats:
        return "batches are equal that were not: it would do harm"
    if first is None:
        through = f" through step {trial.through:,}" if trial.through is not None else ""
        return f"{count(trial.runs, 'run')} match{through}"
    later = ", but later:" if trial.helps(culprit.step, culprit.stage) else ""
    return f"{count(trial.runs, 'run')} still differ{later} {first.stage.where(first.step)}"


def notes(trace: Trace) -> list[str]:
    """Return what was recorded, and how many runs that took."""
    return [*map(_pass, trace.passes), f"{count(trace.total_runs, 'run')} in total"]


def _pass(pass_: Pass) -> str:
    first = pass_.first_difference
    match = f"first difference {first.stage.where(first.step, call=first.call)}" if first else "all match"
    recorded = _LEVELS.get(pass_.level, pass_.level)
    return f"recorded {recorded} {at_steps(pass_.first_step, pass_.last_step)} in {count(pass_.runs, 'run')}: {match}"


CAUSES = {
    Cause.SEED: "seed",
    Cause.DATA: "input data",
    Cause.KERNEL: "nondeterministic kernel",
    Cause.MEMORY: "uninitialized memory",
    Cause.THREADS: "thread timing",
    Cause.HASH: "string hash seed",
    Cause.ORDER: "ordering",
    Cause.ADDRESS: "memory address",
    Cause.HYPERPARAMETER: "a hyperparameter",
}


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


def culprit_sentence(culprit: Culprit) -> str:
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
    return argument_sentence(differing_argument) if differing_argument is not None else HOW[culprit.how]


def argument_sentence(differing_argument: Argument) -> str:
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


REPLAY_VERDICTS = {
    ReplayVerdict.RACES: "races by itself",
    ReplayVerdict.VARIES: "varies by itself, with one thread too",
    ReplayVerdict.MEMORY: "reads uninitialized memory: its result follows what memory is filled with",
    ReplayVerdict.PER_PROCESS: "matches within a process, and gives different results in different processes",
    ReplayVerdict.DETERMINISTIC: "is deterministic by itself",
    ReplayVerdict.INCONCLUSIVE: "cannot be repeated",
}

REPLAY_MODES = {
    ModeEffect.FIXES: "{mode} fixes it",
    ModeEffect.RAISES: "{mode} raises an error: {error}",
    ModeEffect.NO_EFFECT: "{mode} does not fix it",
}

OBSTACLES = {
    Obstacle.NOT_RECORDED: "no instrumented run recorded its inputs",
    Obstacle.TOO_LARGE: "its inputs do not fit into memory",
    Obstacle.ARGUMENT: "an argument cannot be saved",
    Obstacle.RANDOM: "it draws random numbers",
    Obstacle.LIBRARY: "it comes from the script, or from a library that cannot be imported without it",
    Obstacle.VARIABLE: "the value of a variable that it uses is unknown",
    Obstacle.FAILED: "the process that was to repeat it failed",
}

UPSTREAM = "so the cause is upstream of it, or another thread"
"""What follows if an operation is deterministic by itself."""

CONDITIONS = {
    Condition.AS_RECORDED: "as recorded",
    Condition.LOADED: "under load",
    Condition.FILLED: "with filled memory",
    Condition.ONE_THREAD: "with one thread",
    Condition.DETERMINISTIC: "in deterministic mode",
}

_OWN = "replayed: it"


def replay_lines(operation: Operation | None) -> Iterator[str]:
    """Yield what a replay of the operation showed, nothing if there was none."""
    if operation is not None and operation.replay is not None:
        yield from replayed(operation.replay, _deterministic_mode(operation.name))


def replayed(outcome: Replay, mode: str) -> Iterator[str]:
    """Yield what a replay showed; ``mode`` is what turns on the framework's deterministic mode."""
    if outcome.obstacle is not None:
        detail = f" ({outcome.detail})" if outcome.detail else ""
        yield f"not replayed: {OBSTACLES[outcome.obstacle]}{detail}"
    if outcome.own is not None:
        yield from _replayed_pass(_OWN, outcome.own, mode)
    if outcome.gradient is not None:
        yield from _replayed_pass("its backward pass, replayed:", outcome.gradient, mode)
    if outcome.saved_to:
        yield f"a script that repeats it is in {outcome.saved_to}"


def _replayed_pass(subject: str, replayed_pass: ReplayedPass, mode: str) -> Iterator[str]:
    own, same = subject == _OWN, replayed_pass.verdict is ReplayVerdict.DETERMINISTIC
    yield f"{subject} {REPLAY_VERDICTS[replayed_pass.verdict]}{f', {UPSTREAM}' if own and same else ''}"
    for condition in CONDITIONS if own or not same else ():
        series = [one for one in replayed_pass.series if one.condition is condition]
        if series:
            yield f"  {_replayed_series(condition, series)}"
    if replayed_pass.mode is not None:
        error = next((one.error for one in replayed_pass.series if one.condition is Condition.DETERMINISTIC), "")
        yield REPLAY_MODES[replayed_pass.mode].format(mode=mode, error=next(iter(error.splitlines()), ""))


def _replayed_series(condition: Condition, series: list[Series]) -> str:
    """Return the results under one condition; if memory was filled, there is a series for each byte."""
    first, repeats = series[0], sum(one.repeats for one in series)
    threads = "" if condition is Condition.ONE_THREAD or not first.threads else f", {count(first.threads, 'thread')}"
    start = f"{CONDITIONS[condition]}{threads}"
    if first.error:
        return f"{start}: it raises an error"
    each = " with the same filling" if len(series) > 1 else ""
    if all(one.distinct == 1 for one in series):
        return f"{start}: all {count(repeats, 'repeat')}{each} match"
    most = max(series, key=lambda one: one.distinct)
    differing = f"{start}: {most.differing:,} of {count(most.repeats, 'repeat')}{each} differ"
    if most.counts[0] == 1:
        return f"{differing}, no two results match"
    return f"{differing}, {most.distinct:,} different results, the most frequent one {count(most.counts[0], 'time')}"


def _deterministic_mode(operation: str) -> str:
    """Return the call that turns on the deterministic mode of the framework of an operation."""
    torch = operation.count(".") == 2
    return "torch.use_deterministic_algorithms(True)" if torch else "tf.config.experimental.enable_op_determinism()"


def edited_lines(edit: Edit) -> Iterator[str]:
    """Yield the lines that an edit replaces, and what replaces them."""
    yield from (f"  {sign} {line.strip()}" for sign, line in edit.changed_lines())
