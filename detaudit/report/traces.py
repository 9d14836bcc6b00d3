"""What reports say about a trace: the culprit, how two runs differ there, and what fixes it."""

from collections.abc import Iterator
from dataclasses import dataclass

from detaudit.model import ALL_STEPS, VERDICTS, Culprit, Edit, FlagTrial, How, Pass, Trace
from detaudit.model.difference import tensor_type
from detaudit.model.fact import count
from detaudit.model.sources import REPEATED
from detaudit.model.wording import every
from detaudit.report import groups
from detaudit.report.messages import by_hand, causes, culprits, replay

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
        return Answer("narrowed down", culprits.narrowed(trace.narrowed_to))
    if not trace.groups:
        return Answer("inconclusive", "no run finished")
    group = trace.groups[0]
    return Answer(VERDICTS[group.verdict].no_culprit, groups.verdict_sentence(group))


def _culprit(culprit: Culprit) -> str:
    location = f"{culprit.file}:{culprit.line}" if culprit.file else "outside your code"
    if culprit.operation is not None and culprit.how in (How.OUTPUT, How.RNG_STATE, How.CONCURRENT_WRITE):
        location += f" ({culprit.operation.name})"
    return f"{location} {culprit.stage.where(culprit.step)}, cause: {causes.NAMES[culprit.cause]}"


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
    yield from replay.lines(culprit.operation)
    tensor = culprit.operation.tensor if culprit.operation is not None else None
    if tensor is not None:
        yield f"the tensor ({tensor_type(tensor.dtype, tensor.shape)}):"
        yield from (f"  {line}" for line in tensor.difference.lines())
        if tensor.saved_to:
            yield f"  both saved in {tensor.saved_to}"
    edit = culprit.suggested_edit
    if edit is not None:
        yield f"{edit_line(edit)}:"
        yield from by_hand.edited(edit)
    yield from fixes(culprit)
    yield from suspects(culprit)


def about(culprit: Culprit) -> Iterator[str]:
    """Yield what the line does, the operation that it runs, and the two values of a variable."""
    yield culprits.sentence(culprit)
    if culprit.operation is not None:
        yield _operation(culprit)
    if culprit.repeated:
        yield REPEATED
    if culprit.values is not None:
        yield f"one run: {culprit.values[0]}; other run: {culprit.values[1]}"


def suspects(culprit: Culprit) -> Iterator[str]:
    """Yield the other lines that may differ, if there are any."""
    if culprit.suspects:
        yield "other suspects: " + ", ".join(f"{one.file}:{one.line}" for one in culprit.suspects)


def edit_line(edit: Edit) -> str:
    """Return where an edit fixes it."""
    return f"suggested edit, {edit.file}:{edit.line}"


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
    how = culprits.entered(culprit)
    entered = "" if culprits.sentence(culprit) == how else f": {how}"
    return f"operation: {', '.join([ran.name, *filter(None, parts)])}{entered}"


def fixes(culprit: Culprit) -> Iterator[str]:
    """Yield the flags that fix it, or may, and what came of the one that was tried."""
    for fix in culprit.flags:
        if fix.trial is None or fix.trial.matched or _is_later(fix.trial, culprit):
            first, *more = [*by_hand.lines(fix), ""]
            yield f"fix with --flag {fix.flag}" + (f", or {first}" if first else "")
            yield from more[:-1]
        if fix.trial is not None:
            yield f"with --flag {fix.flag}, {_trial(fix.trial, culprit)}"


def _trial(trial: FlagTrial, culprit: Culprit) -> str:
    first = trial.first_difference
    if trial.failed:
        return "a run failed"
    if first is None:
        through = f" through step {trial.through:,}" if trial.through is not None else ""
        return f"{count(trial.runs, 'run')} match{through}"
    later = ", but later:" if _is_later(trial, culprit) else ""
    return f"{count(trial.runs, 'run')} still differ{later} {first.stage.where(first.step)}"


def _is_later(trial: FlagTrial, culprit: Culprit) -> bool:
    """Whether runs with a flag differ only after the culprit, so that there is another difference behind it."""
    first = trial.first_difference
    return first is not None and (first.step, first.stage.position) > (culprit.step, culprit.stage.position)


def notes(trace: Trace) -> list[str]:
    """Return what was recorded, and how many runs that took."""
    return [*map(_pass, trace.passes), f"{count(trace.total_runs, 'run')} in total"]


def _pass(pass_: Pass) -> str:
    if pass_.last_step >= ALL_STEPS:
        steps = f"from step {pass_.first_step:,} on" if pass_.first_step > 1 else "at all steps"
    elif pass_.first_step == pass_.last_step:
        steps = f"at step {pass_.first_step:,}"
    else:
        steps = f"at steps {pass_.first_step:,} to {pass_.last_step:,}"
    first = pass_.first_difference
    match = f"first difference {first.stage.where(first.step, call=first.call)}" if first else "all match"
    recorded = _LEVELS.get(pass_.level, pass_.level)
    return f"recorded {recorded} {steps} in {count(pass_.runs, 'run')}: {match}"
