"""Plan the passes of a scan: processes that differ in their threads, their load, their memory and the switch."""

from dataclasses import dataclass

USUAL, ONE_THREAD, MANY_THREADS, SWITCH = "usual", "one-thread", "many-threads", "switch"
"""Phases: as the framework is set up, with one thread, with twice as many threads as usual, with its switch."""

FILLS = (85, 170)
"""Bytes that the C library fills memory with when it is handed out and given back, different in each bit."""

MORE = 5
"""How many times as often an operation is repeated that differs."""


@dataclass(frozen=True)
class Phase:
    """Repetitions with ``threads`` (0: as many as usual), with the switch or without, at most so many seconds."""

    name: str
    repeats: int
    seconds: float
    threads: int = 0
    switch: bool = False


@dataclass(frozen=True)
class Pass:
    """A process that goes through all operations, or only through those that differed in earlier passes (``again``).

    ``fill`` is one of FILLS, ``load`` the number of busy processes beside it, ``env`` what is set for it besides.
    """

    name: str
    phases: tuple[Phase, ...]
    fill: int
    load: int = 0
    again: bool = False
    env: tuple[tuple[str, str], ...] = ()


def passes(framework: str, device: str, threads: int, cpus: int, repeats: int) -> tuple[Pass, ...]:
    """Return the passes over a framework's operations.

    torch can change its threads and its switch within a process; on a GPU the switch needs a variable before the
    process starts, and TensorFlow needs a process for each.
    """
    usual = Phase(USUAL, repeats, 0.06)
    one, many = Phase(ONE_THREAD, 2, 0.01, threads=1), Phase(MANY_THREADS, 2, 0.01, threads=2 * threads)
    switch = Phase(SWITCH, 2, 0.01, switch=True)
    more = Phase(USUAL, MORE * repeats, 0.5)
    more_switch = Phase(SWITCH, MORE * repeats, 0.5, switch=True)
    workspace = (("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),) if device != "cpu" else ()
    first, second = FILLS
    if framework == "torch" and device == "cpu":
        return (
            Pass("first", (usual, one, switch), first),
            Pass("loaded", (usual, one, many, switch), second, load=cpus),
            Pass("again", (more, more_switch, Phase(ONE_THREAD, 3, 0.2, threads=1)), first, again=True),
        )
    return (
        Pass("first", (usual,), first),
        Pass("loaded", (usual,), second, load=cpus),
        Pass("one-thread", (one,), first),
        Pass("one-thread-other-memory", (one,), second),
        Pass("switch", (switch,), first, env=workspace),
        Pass("switch-other-memory", (switch,), second, env=workspace),
        Pass("again", (more,), first, again=True),
        Pass("switch-again", (more_switch,), first, again=True, env=workspace),
    )
