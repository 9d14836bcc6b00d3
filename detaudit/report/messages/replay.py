"""What an operation does by itself, as a replay of it showed."""

from collections.abc import Iterator

from detaudit.model import Condition, ModeEffect, Obstacle, Operation, Replay, ReplayedPass, ReplayVerdict, Series
from detaudit.model.fact import count

VERDICTS = {
    ReplayVerdict.RACES: "races by itself",
    ReplayVerdict.VARIES: "varies by itself, with one thread too",
    ReplayVerdict.MEMORY: "reads uninitialized memory: its result follows what memory is filled with",
    ReplayVerdict.PER_PROCESS: "matches within a process, and gives different results in different processes",
    ReplayVerdict.DETERMINISTIC: "is deterministic by itself",
    ReplayVerdict.INCONCLUSIVE: "cannot be repeated",
}

MODES = {
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


def lines(operation: Operation | None) -> Iterator[str]:
    """Yield what a replay of the operation showed, nothing if there was none."""
    if operation is not None and operation.replay is not None:
        yield from replay(operation.replay, _mode(operation.name))


def replay(outcome: Replay, mode: str) -> Iterator[str]:
    """Yield what a replay showed; ``mode`` is what turns on the framework's deterministic mode."""
    if outcome.obstacle is not None:
        detail = f" ({outcome.detail})" if outcome.detail else ""
        yield f"not replayed: {OBSTACLES[outcome.obstacle]}{detail}"
    if outcome.own is not None:
        yield from _pass(_OWN, outcome.own, mode)
    if outcome.gradient is not None:
        yield from _pass("its backward pass, replayed:", outcome.gradient, mode)
    if outcome.saved_to:
        yield f"a script that repeats it is in {outcome.saved_to}"


def _pass(subject: str, replayed_pass: ReplayedPass, mode: str) -> Iterator[str]:
    own, same = subject == _OWN, replayed_pass.verdict is ReplayVerdict.DETERMINISTIC
    yield f"{subject} {VERDICTS[replayed_pass.verdict]}{f', {UPSTREAM}' if own and same else ''}"
    for condition in CONDITIONS if own or not same else ():
        series = [one for one in replayed_pass.series if one.condition is condition]
        if series:
            yield f"  {_series(condition, series)}"
    if replayed_pass.mode is not None:
        error = next((one.error for one in replayed_pass.series if one.condition is Condition.DETERMINISTIC), "")
        yield MODES[replayed_pass.mode].format(mode=mode, error=next(iter(error.splitlines()), ""))


def _series(condition: Condition, series: list[Series]) -> str:
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


def _mode(operation: str) -> str:
    """Return the call that turns on the deterministic mode of the framework of an operation."""
    torch = operation.count(".") == 2
    return "torch.use_deterministic_algorithms(True)" if torch else "tf.config.experimental.enable_op_determinism()"
