"""What it costs to compare long runs: the CPU time of an audit of five recorded runs against hashing one event log.

The event logs are generated. One run differs from its middle on, one at its last step; or each differs from its first
step on. An audit takes them as what its runs recorded, in a process of its own, whose time and memory include all that
an audit does. Hashing is SHA-256 of the rows of one of the five logs.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.rows import Figure, Goal, Row, Scale, median, ratios
from detaudit import store, wire
from detaudit.audit import Auditor
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target
from detaudit.model import Audit
from detaudit.runs.log_rows import ROW, rows_of

TURNS = 2
STAGES = ("rng", "batch", "forward", "update")
RUNS = 5
LOG = "7.0.jsonl"
RATE = Goal(10_000_000, at_least=True)
MEMORY_MIB = Goal(150)
SIZE_MB = Goal(5)


def write(log: Path, steps: int, differs: int, run: int) -> None:
    """Write the event log of a training that differs from all others from step ``differs`` on; 0 for no step."""
    at = (differs - 1) * len(STAGES) if differs else steps * len(STAGES)
    digests = [np.random.default_rng(chance).bytes(16 * steps * len(STAGES)) for chance in (0, run)]
    rows = np.zeros(steps * len(STAGES), ROW)
    rows["step"], rows["training"] = np.repeat(np.arange(1, steps + 1), len(STAGES)), 1
    rows["stage"] = np.tile([wire.STAGE_NUMBERS[stage] for stage in STAGES], steps)
    rows["flags"] = np.tile([wire.HAS_VALUE * (stage == "forward") for stage in STAGES], steps)
    rows["digest"] = np.frombuffer(digests[0][: 16 * at] + digests[1][16 * at :], ROW["digest"])
    rows["value"] = rows["digest"].copy().view(np.uint64)[::2] / 2**64 * rows["flags"]
    hello = {"k": "hello", "schema": wire.SCHEMA, "pid": 7, "ppid": 1, "argv": ["python", "train.py"]}
    final = {"k": "final", "fw": "torch", "steps": steps, "digest": rows["digest"][-1].tobytes().hex()}
    lines: list[dict[str, object]] = [
        {**hello, "python": "3.11.7", "rank": None, "identity": []},
        {"k": "framework", "name": "torch", "version": "2.13.0"},
        {"k": "training", "n": 1, "fw": "torch", "lane": 0},
        {**final, "sum": "0x1.8p+1", "loss": "0x1p-1", "params": 2, "sparse": False, "devices": ["cpu"]},
        {"k": "bye", "how": "exit", "rows": len(rows)},
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    rows.tofile(rows_of(log))
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def steps_that_differ(steps: int, different: bool) -> dict[int, int]:
    """Return the step from which each run differs from the first; those that match are left out."""
    return dict.fromkeys(range(2, RUNS + 1), 1) if different else {RUNS - 1: steps // 2, RUNS: steps}


def generate(folder: Path, steps: int, different: bool) -> None:
    """Write the event log of each run."""
    for run in range(1, RUNS + 1):
        write(folder / str(run) / "logs" / LOG, steps, steps_that_differ(steps, different).get(run, 0), run)


def audited(folder: Path, runs: int) -> Audit:
    """Audit generated runs. Their results folder is ``folder``/out."""

    class Recorded:
        """Launches nothing: the runs are there."""

        def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
            spec.folder.parent.mkdir(parents=True, exist_ok=True)
            (folder / spec.folder.name).rename(spec.folder)
            return RunOutcome(0, 1.0)

    (folder / "cwd").mkdir()
    settings = Settings(
        target=Target(arguments=(), script="train.py", python="python"),
        recipes=(load_recipe("none", load_catalogue()),),
        runs=runs,
        out=folder / "out",
        mark="benchmark",
        cwd=folder / "cwd",
    )
    return Auditor(settings, Recorded()).run()


def audit(folder: Path, different: bool) -> dict[str, float]:
    """Audit the generated runs: the CPU time in seconds, the memory in MiB, and the size of audit.json in MB."""
    started = time.process_time()
    found = audited(folder, RUNS)
    taken = time.process_time() - started
    steps = found.groups[0].runs[0].steps
    differing = {run.id: run.first_difference.step for run in found.groups[0].runs if run.first_difference}
    assert differing == steps_that_differ(steps, different), differing
    return {"s": taken, "MiB": peak_mib(), "MB": (folder / "out" / store.FILE).stat().st_size / 1e6}


def peak_mib() -> float:
    """Return the greatest memory of this program; getrusage would count what the process held before it."""
    (peak,) = re.findall(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(peak) / 1024


def hashing_s(log: Path) -> float:
    """Return the CPU time of hashing the rows of an event log."""
    started = time.process_time()
    hasher = hashlib.sha256()
    with rows_of(log).open("rb") as file:
        while data := file.read(2**20):
            hasher.update(data)
    return time.process_time() - started


def turn(steps: int, different: bool) -> dict[str, float]:
    """Return the figures of one audit of newly generated logs, and the time of hashing one of them."""
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name), steps, different)
        hashing = hashing_s(Path(name) / "1" / "logs" / LOG)
        words = [sys.executable, "-m", "benchmarks.comparison", name, str(int(different))]
        child = subprocess.run(words, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(child.stdout)
    return {**found, "hashing": hashing}


def measure(scale: Scale, steps: int, different: bool) -> Iterator[Row]:
    """Yield the row of five runs of so many steps."""
    steps = scale.size(steps, 3_000)
    turns = [turn(steps, different) for _ in range(scale.turns(TURNS))]
    rows = steps * len(STAGES) * RUNS
    how = "that all differ" if different else "of which three match"
    yield Row(
        what=f"an audit of {RUNS} runs of {steps:,} steps {how}",
        over="hashing one of their event logs",
        ratios=ratios(turns, "s", "hashing"),
        also=(
            Figure(median(rows / one["s"] for one in turns), "rows per second", RATE),
            Figure(max(one["MiB"] for one in turns), "MiB", MEMORY_MIB),
            Figure(max(one["MB"] for one in turns), "MB of audit.json", SIZE_MB),
        ),
    )


if __name__ == "__main__":
    print(json.dumps(audit(Path(sys.argv[1]), sys.argv[2] == "1")))
