"""What it costs to read 100 MB that a run printed, as a terminal would leave it, in CPU time.

The lines are those of a log with a date, and the same with colors; those of a progress bar that is drawn again and
again; short ones with one loss; and a text in which no two lines have the same words, which is the worst case. A run
that prints a difference in any of them is found, though only the first lines are kept. ``zlib.crc32`` of the same bytes
takes turns with it, as the least that reading them can cost.
"""

import random
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios
from detaudit.outputs.text import Recorder

BYTES = 100 * 10**6
TURNS = 3
GOAL = Goal(5.0)
_CHUNK = 65536
"""As much comes out of a pipe at once."""


def log(chance: random.Random) -> str:
    """Return a line of a log."""
    second, thousandth = chance.randrange(60), chance.randrange(1000)
    shown = f"2026-11-25 08:12:{second:02},{thousandth:03} - train - INFO - step {chance.randrange(10**5)}"
    return f"{shown} loss {chance.random():.6f} lr {chance.random() / 1000:.2e} time {chance.random():.3f}s\n"


def colored(chance: random.Random) -> str:
    """Return a line of a log with colors."""
    return f"\x1b[32m{log(chance)[:23]}\x1b[0m | \x1b[1mINFO\x1b[0m | {log(chance)[26:]}"


def bar(chance: random.Random) -> str:
    """Return a state of a progress bar; some are the last."""
    step = chance.randrange(10**4)
    shown = f"\r{step // 100:3}%|███████   | {step}/10000 [00:{step % 60:02}<00:59, {chance.random() * 99:.2f}it/s"
    return f"{shown}, loss={chance.random():.3f}]" + ("\n" if chance.random() < 0.001 else "")


def short(chance: random.Random) -> str:
    """Return a short line."""
    return f"step {chance.randrange(10**5)} loss {chance.random():.4f}\n"


def prose(chance: random.Random) -> str:
    """Return a line whose words no other line has."""
    return " ".join("".join(chance.choices("abcdefghij", k=5)) for _ in range(10)) + f" {chance.randrange(99)}\n"


KINDS: dict[str, Callable[[random.Random], str]] = {
    "of a log": log,
    "of a log with colors": colored,
    "of progress bars": bar,
    "of short lines": short,
    "of lines with different words": prose,
}


def cpu_s(action: Callable[[], object]) -> float:
    """Return the CPU time of an action."""
    started = time.process_time()
    action()
    return time.process_time() - started


def read(data: bytes) -> None:
    """Read what was printed."""
    recorder = Recorder()
    for at in range(0, len(data), _CHUNK):
        recorder.feed(data[at : at + _CHUNK])
    recorder.finish()


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for each kind of text."""
    size, chance = scale.size(BYTES, 10**6), random.Random(0)
    for name, line in KINDS.items():
        lines = "".join(line(chance) for _ in range(size // 100)).encode()
        data = lines * (size // len(lines)) + lines[: size % len(lines)]
        actions = {"read": partial(cpu_s, partial(read, data)), "crc": partial(cpu_s, partial(zlib.crc32, data))}
        found = in_turn(scale.turns(TURNS), actions)
        seconds = median(turn["read"] for turn in found) * BYTES / size
        yield Row(
            what=f"read 100 MB {name}",
            over="zlib.crc32 of them",
            ratios=ratios(found, "read", "crc"),
            also=(Figure(seconds, "s of CPU time", GOAL),),
        )
