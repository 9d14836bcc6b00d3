"""Measure what it costs to compare long runs: events per second of CPU time, memory, the size of audit.json.

The event logs of five runs are generated: one differs from its middle on, one at its last step. With --different each
differs from its first step on, so that nothing is recognized. An audit takes them as
what its runs recorded. It runs in a process of its own, whose time and memory include all that an audit does beside.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

STEPS = 1_000_000
STAGES = ("rng", "batch", "forward", "update")
RUNS = 5
FASTEST = 1_000_000
MOST_MIB = 150
MOST_MB = 5


def lines(steps: int, differs: int, run: int) -> Iterator[str]:
    """Yield the event log of a training that differs from all others from step ``differs`` on."""
    hello = {"k": "hello", "schema": 1, "pid": 7, "ppid": 1, "argv": ["python", "train.py"], "python": "3.11.7"}
    yield json.dumps({**hello, "rank": None, "identity": []}) + "\n"
    yield json.dumps({"k": "framework", "name": "torch", "version": "2.13.0"}) + "\n"
    digest, chance = "", random.Random(0)
    for step in range(1, steps + 1):
        chance = random.Random(run) if step == differs else chance
        for stage in STAGES:
            digest = chance.randbytes(16).hex()
            value = f'"{chance.random().hex()}"' if stage == "forward" else "null"
            yield (
                f'{{"k":"event","fw":"torch","step":{step},"stage":"{stage}","digest":"{digest}","value":{value}}}\n'
            )
    final = {"k": "final", "fw": "torch", "steps": steps, "digest": digest, "sum": "0x1.8p+1", "loss": "0x1p-1"}
    yield json.dumps({**final, "params": 2, "sparse": False, "devices": ["cpu"]}) + "\n"
    yield json.dumps({"k": "bye", "how": "exit"}) + "\n"


def steps_that_differ(steps: int, different: bool) -> dict[int, int]:
    """Return the step from which each run differs from the first; those that match are left out."""
    return dict.fromkeys(range(2, RUNS + 1), 1) if different else {RUNS - 1: steps // 2, RUNS: steps}


def generate(folder: Path, steps: int, different: bool) -> None:
    """Write the event log of each run."""
    for run in range(1, RUNS + 1):
        logs = folder / str(run) / "logs"
        logs.mkdir(parents=True)
        first = folder / "1" / "logs" / "7.0.jsonl"
        differs = steps_that_differ(steps, different).get(run, 0)
        if run > 1 and not differs:
            os.link(first, logs / first.name)
            continue
        with (logs / first.name).open("w") as file:
            file.writelines(lines(steps, differs, run))


def audit(folder: Path, different: bool) -> dict[str, float]:
    """Audit the generated runs: the CPU time in seconds, the memory in MiB, and the size of audit.json in MB."""
    from detaudit.auditor import store
    from detaudit.auditor.audit import Auditor
    from detaudit.launch import RunOutcome, RunSpec
    from detaudit.launch.plan import Settings
    from detaudit.launch.target import Target
    from detaudit.recipe.flags import load_catalogue
    from detaudit.recipe.recipes import load_recipe

    class Recorded:
        """Launches nothing: the runs are there."""

        def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
            spec.folder.parent.mkdir(parents=True, exist_ok=True)
            (folder / spec.folder.name).rename(spec.folder)
            return RunOutcome(0, 1.0)

    out = folder / "out"
    (folder / "cwd").mkdir()
    settings = Settings(
        target=Target(arguments=(), script="train.py", python="python"),
        recipes=(load_recipe("none", load_catalogue()),),
        runs=RUNS,
        out=out,
        mark="benchmark",
        cwd=folder / "cwd",
    )
    started = time.process_time()
    found = Auditor(settings, Recorded()).run()
    taken = time.process_time() - started
    steps = found.groups[0].runs[0].steps
    differing = {run.id: run.first_difference.step for run in found.groups[0].runs if run.first_difference}
    assert differing == steps_that_differ(steps, different), differing
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"s": taken, "MiB": peak, "MB": (out / store.FILE).stat().st_size / 1e6}


def main() -> int:
    """Print the figures, and return the exit status: 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--different", action="store_true")
    parser.add_argument("--folder", type=Path, help="audit the runs in this folder, and print the figures as JSON")
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(audit(options.folder, options.different)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name), options.steps, options.different)
        again = [sys.executable, __file__, *sys.argv[1:], "--folder", name]
        child = subprocess.run(again, check=True, stdout=subprocess.PIPE)
        found = json.loads(child.stdout)
    rate = options.steps * len(STAGES) * RUNS / found["s"]
    runs = f"{RUNS} runs of {options.steps:,} steps with {len(STAGES)} events each"
    print(f"{runs}: {rate:,.0f} events per second of CPU time (limit {FASTEST:,})")
    print(f"peak memory of the auditor {found['MiB']:.0f} MiB (limit {MOST_MIB} MiB)", end="; ")
    print(f"audit.json {found['MB']:.3f} MB (limit {MOST_MB} MB)")
    return 0 if rate > FASTEST and found["MiB"] < MOST_MIB and found["MB"] < MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
