"""A launcher that starts no process: each run's event log is written by the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from detaudit import wire
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target
from tests.logs import hexed, row, write_log

Script = Callable[[RunSpec], RunOutcome]


def hello(**changed: Any) -> dict[str, Any]:
    line = {
        "k": "hello",
        "schema": wire.SCHEMA,
        "pid": 7,
        "ppid": 1,
        "argv": ["python", "train.py"],
        "python": "3.11.7",
        "rank": None,
        "identity": [],
    }
    return {**line, **changed}


def training(update: str = "same", *, steps: int = 2, whole: bool = True) -> list[dict[str, Any]]:
    """Return the event log of a small training whose last weights are ``update``."""
    lines: list[dict[str, Any]] = [
        hello(),
        {"k": "framework", "name": "torch", "version": "2.13.0"},
    ]
    for step in range(1, steps + 1):
        end = update if step == steps else f"w{step}"
        lines += [row(step, "forward", "l", 0.5), row(step, "update", end)]
    if whole:
        final = {
            "k": "final",
            "fw": "torch",
            "steps": steps,
            "digest": hexed(update),
            "sum": "0x1.8p+1",
            "loss": "0x1p-1",
            "params": 2,
            "sparse": False,
            "devices": ["cpu"],
        }
        lines += [final, {"k": "bye", "how": "exit"}]
    return lines


def run(lines: list[dict[str, Any]], exit_code: int = 0, stderr: str = "", **outcome: Any) -> Script:
    """Return a run that records these lines and ends like this."""

    def launched(spec: RunSpec) -> RunOutcome:
        (spec.folder / "logs").mkdir(parents=True)
        (spec.folder / "stderr.log").write_text(stderr)
        if lines:  # without the recorder there is no event log
            write_log(spec.folder / "logs" / "7.0.jsonl", lines)
        return RunOutcome(exit_code, 1.5, **outcome)

    return launched


class FakeLauncher:
    """Plays the given runs one after another."""

    def __init__(self, *scripts: Script) -> None:
        self.specs: list[RunSpec] = []
        self._scripts: Iterator[Script] = iter(scripts)

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        self.specs.append(spec)
        tick()
        return next(self._scripts)(spec)


def settings(folder: Path, *recipes: str, runs: int = 3, **options: Any) -> Settings:
    catalogue = load_catalogue()
    cwd = folder / "cwd"
    cwd.mkdir(exist_ok=True)
    return Settings(
        target=Target(arguments=(), script="train.py", python="python"),
        recipes=tuple(load_recipe(name, catalogue) for name in recipes or ("none",)),
        runs=runs,
        out=folder / "out",
        mark="m",
        cwd=cwd,
        command=("detaudit", "run", "train.py"),
        **options,
    )
