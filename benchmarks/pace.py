"""Steps of several processes in turn: one that is recorded, one that is not, and so on.

A ratio of whole processes is too coarse for a step of a millisecond on a shared machine, and each would load its
framework again. Here each training waits until it is its turn to do a block of steps, timed in CPU time.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.rows import Turns, in_turn
from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP

PACE = """
import sys as _sys, time as _time
class _Pace:
    def __init__(self, block):
        self.block, self.steps, self.started = block, 0, 0.0
    def __call__(self):
        if self.steps % self.block == 0:
            if self.steps:
                print((_time.process_time() - self.started) / self.block, flush=True)
            if not _sys.stdin.readline():
                raise SystemExit
            self.started = _time.process_time()
        self.steps += 1
pace = _Pace({block})
"""
"""Called before each step, ``pace`` prints the CPU time of a step after each block, and waits for a line."""


@dataclass(frozen=True)
class Paced:
    """A training that does a block of steps for each line that it reads, and the file with its errors."""

    process: subprocess.Popen[str]
    errors: IO[str]

    def step_s(self) -> float:
        """Return the CPU time of a step of the next block. Raises RuntimeError if the training ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise RuntimeError(f"a training ended: {self.errors.read()[-2000:]}")
        return float(line)


@contextlib.contextmanager
def paced(code: str, env: Mapping[str, str]) -> Iterator[Paced]:
    """Start a training, and kill it at the end."""
    words, pipe = [sys.executable, "-W", "ignore", "-c", code], subprocess.PIPE
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, env={**os.environ, **env}, text=True, stdin=pipe, stdout=pipe, stderr=errors)
        try:
            yield Paced(process, errors)
        finally:
            process.kill()
            process.communicate()


def recorded(logs: Path, stages: tuple[str, ...] = wire.DEFAULT_STAGES) -> dict[str, str]:
    """Return the variables with which a process is recorded."""
    logs.mkdir()
    return {wire.ENV_LOGS: str(logs), wire.ENV_STAGES: ",".join(stages), "PYTHONPATH": _bootstrapped()}


def _bootstrapped() -> str:
    return os.pathsep.join(filter(None, [str(BOOTSTRAP), os.environ.get("PYTHONPATH")]))


def blocks(trainings: Mapping[str, tuple[str, Mapping[str, str]]], block: int, turns: int, pace: str = PACE) -> Turns:
    """Return the time of a step of each training, given by its code and variables, for each turn: ``pace`` measures it.

    The first block of each is not counted: it makes the optimizer's state, and compiles.
    """
    with contextlib.ExitStack() as stack:
        processes = {
            name: stack.enter_context(paced(pace.format(block=block) + code, env))
            for name, (code, env) in trainings.items()
        }
        for process in processes.values():
            process.step_s()
        return in_turn(turns, {name: process.step_s for name, process in processes.items()})
