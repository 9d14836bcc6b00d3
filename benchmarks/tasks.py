"""Tasks on a device, kept one by one as they finish, so that a command that ran out of time goes on when called again.

A result counts for one commit, device and torch. All are written to one JSON and one Markdown file.
"""

import argparse
import fnmatch
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import torch
from tabulate import tabulate

from benchmarks.results import commit

OUT = Path("build/gpu")

SECONDS = 500.0
"""What one command may take, unless it is told otherwise."""


class NoDeviceError(Exception):
    """There is no such device here."""


class Found(msgspec.Struct, frozen=True):
    """What a task found: whether it is as expected (None: nothing was expected), in a line, and in figures."""

    passed: bool | None
    text: str
    figures: dict[str, float] = {}


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is done."""

    task: str
    what: str
    found: Found
    took_s: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks of one commit on one device; ``left`` are those for which there was no time."""

    title: str
    commit: str
    device: str
    gpu: bool
    torch: str
    python: str
    done: tuple[Kept, ...]
    left: tuple[str, ...]

    @property
    def failed(self) -> list[str]:
        """The names of the tasks that did not find what was expected."""
        return [one.task for one in self.done if one.found.passed is False]


@dataclass(frozen=True)
class Device:
    """Where tasks run: ``cpu`` or ``cuda``. ``ends`` is when the command must be over, on the monotonic clock."""

    kind: str
    ends: float = float("inf")

    @property
    def is_gpu(self) -> bool:
        """Whether figures from here are figures of a GPU."""
        return self.kind != "cpu"

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self.ends - time.monotonic()

    @property
    def name(self) -> str:
        """The model of the device."""
        return torch.cuda.get_device_name() if self.is_gpu else f"CPU, {platform.machine()}"


@dataclass(frozen=True)
class Task:
    """A name, what it shows, and what does it; ``needs_s`` is what it takes on a GPU, about."""

    name: str
    what: str
    do: Callable[[Device], Found]
    needs_s: float = 30.0


def device(kind: str, seconds: float) -> Device:
    """Return a device that is there. Raises NoDeviceError."""
    if kind != "cpu" and not torch.cuda.is_available():
        raise NoDeviceError(
            f"torch {torch.__version__} finds no GPU here\n"
            "  hint: DEVICE=cpu runs every script without one, and says nothing about GPUs."
        )
    return Device(kind, time.monotonic() + seconds)


def carry_out(title: str, tasks: Sequence[Task], where: Device, out: Path, at_once: int = 1) -> Report:
    """Do the tasks that are not done, several at once, while there is time; write and return the report."""
    now = commit()
    folder = out / f"{now.replace(' ', '-')}-{where.kind}-{torch.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    todo = [task for task in tasks if not (folder / f"{task.name}.json").exists()]
    with ThreadPoolExecutor(at_once) as pool:
        running: dict[Future[None], Task] = {}
        for task in todo:
            while len(running) >= at_once:
                _taken(running)
            if where.left_s > task.needs_s:
                running[pool.submit(partial(_done, task, where, folder))] = task
        while running:
            _taken(running)
    report = Report(
        title=title,
        commit=now,
        device=where.name,
        gpu=where.is_gpu,
        torch=str(torch.__version__),
        python=platform.python_version(),
        done=tuple(_kept(folder, tasks)),
        left=tuple(task.name for task in tasks if not (folder / f"{task.name}.json").exists()),
    )
    stem = title.lower().replace(" ", "-")
    (out / f"{stem}.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    (out / f"{stem}.md").write_text(markdown(report))
    return report


def _taken(running: dict[Future[None], Task]) -> None:
    """Wait until a task has ended."""
    for future in wait(running, return_when="FIRST_COMPLETED").done:
        running.pop(future)
        future.result()


def _done(task: Task, where: Device, folder: Path) -> None:
    """Do a task and keep what it found; one that raises has failed, and is tried again the next time."""
    started = time.monotonic()
    try:
        found = task.do(where)
    except Exception as error:  # noqa: BLE001 - whatever fails, the others are done
        print(f"{task.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return
    kept = Kept(task=task.name, what=task.what, found=found, took_s=round(time.monotonic() - started, 1))
    (folder / f"{task.name}.json").write_bytes(msgspec.json.encode(kept))
    print(f"{task.name}: {_state(found)}, {found.text} ({kept.took_s:.0f} s)", file=sys.stderr, flush=True)


def _kept(folder: Path, tasks: Sequence[Task]) -> Iterator[Kept]:
    for task in tasks:
        path = folder / f"{task.name}.json"
        if path.exists():
            yield msgspec.json.decode(path.read_bytes(), type=Kept)


def _state(found: Found) -> str:
    return {True: "as expected", False: "NOT as expected", None: "no expectation"}[found.passed]


def markdown(report: Report) -> str:
    """Return the report for people."""
    rows = [[one.what, one.found.text, _state(one.found), f"{one.took_s:.0f} s"] for one in report.done]
    lines = [
        f"# {report.title}",
        "",
        *([] if report.gpu else ["A dry run: it shows that everything runs, and says nothing about GPUs.", ""]),
        f"{report.device}; torch {report.torch}, Python {report.python}; commit {report.commit}.",
        "",
        tabulate(rows, ["what", "found", "", "took"], "github"),
        "",
    ]
    if report.left:
        lines += [f"Not done, because of an error or for lack of time: {', '.join(report.left)}.", ""]
    return "\n".join(lines)


def command(prog: str, about: str, title: str, tasks: Sequence[Task], at_once: int = 1) -> int:
    """Do what the command line asks for. Return 1 if a task is not as expected or left over, 2 without the device."""
    parser = argparse.ArgumentParser(prog=prog, description=about)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tasks, as patterns; default: all")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="begin no task that would take longer")
    parser.add_argument("--at-once", type=int, default=at_once, metavar="N", help="tasks that run beside each other")
    asked = parser.parse_args()
    try:
        where = device(asked.device, asked.seconds)
    except NoDeviceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    patterns = asked.names or ["*"]
    chosen = [task for task in tasks if any(fnmatch.fnmatchcase(task.name, pattern) for pattern in patterns)]
    report = carry_out(title, chosen, where, asked.out, asked.at_once)
    print(markdown(report))
    return int(bool(report.failed or report.left))
