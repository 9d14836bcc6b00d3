"""Audits of a distributed training whose runs have a fault each, and what the report says of them."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STEPS = 6
OF_STEPS = ("rng", "batch", "forward", "backward", "reduce", "update", "state")
"""Stages of a step. The other faults are before the first step, or after the last one."""

NAMED = {"end": ("state", STEPS), "steps": ("steps", STEPS + 1), "output": ("output", STEPS), "init": ("init", 0)}
"""The stage and the step by which a report names the faults that have no step of their own."""

FAULTS = ("init", *OF_STEPS, "end", "output", "steps")

Named = tuple[str, int, int] | None
"""Stage, rank and step of a first difference."""


@dataclass(frozen=True)
class Fault:
    """A fault in one stage of one rank, from ``step`` on."""

    stage: str
    rank: int
    step: int = 0

    def __str__(self) -> str:
        return f"{self.stage}:{self.rank}:{self.step}"

    @property
    def expected(self) -> Named:
        """What the report has to name, None if there is no fault."""
        stage, step = NAMED.get(self.stage, (self.stage, self.step))
        return None if self.stage == "none" else (stage, self.rank, step)


NO_FAULT = Fault("none", 0)


def faults(seed: str, stages: Sequence[str], ranks: int, each: int) -> list[Fault]:
    """Return ``each`` faults for each stage, in ranks and at steps drawn from this seed."""
    drawn = random.Random(seed)
    return [
        Fault(stage, drawn.randrange(ranks), drawn.randint(2, STEPS - 1) if stage in OF_STEPS else 0)
        for stage in stages
        for _ in range(each)
    ]


def launcher(name: str, ranks: int, python: str = sys.executable) -> list[str]:
    """Return the start of a command that starts so many ranks of a script."""
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    one_machine = ["--multi_gpu", "--num_machines", "1", "--num_cpu_threads_per_process", "1"]
    plain = ["--mixed_precision", "no", "--dynamo_backend", "no"]
    accelerate = [python, "-m", "accelerate.commands.launch", *one_machine, *plain]
    return {
        "torchrun": torchrun,
        "elastic": [*torchrun, "--max-restarts", "3"],
        "accelerate": [*accelerate, "--num_processes", str(ranks)],
        "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), python],
    }[name]


def prepare(folder: Path) -> dict[str, str]:
    """Write the scripts into a folder and the digits beside it; return the variables of the training."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.py", "launch.py", "again.py"):
        shutil.copy(HERE / "scripts" / name, folder / name)
    digits = load_digits()
    path = folder.parent / "digits.npz"
    np.savez(path, images=(digits.data / 16).astype("f4"), labels=digits.target.astype("i8"))
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {"DIGITS": str(path), "STEPS": str(STEPS), "PYTHONPATH": python_path}


def audit(folder: Path, command: Sequence[str], planted: Sequence[Fault], *options: str) -> dict[str, Any]:
    """Return the report of an audit: a run without a fault, and one with each of these."""
    env = {**os.environ, **prepare(folder)}
    plants = folder.parent / "plants.txt"
    for old in folder.parent.glob("plants.*"):
        old.unlink()
    plants.write_text("".join(f"{fault}\n" for fault in (NO_FAULT, *planted)))
    words = ["run", "--full", "--runs", str(len(planted) + 1), "--format", "json", *options]
    wrapped = [sys.executable, "launch.py", str(plants), *command]
    done = subprocess.run(
        [sys.executable, "-m", "detaudit", *words, "--", *wrapped],
        cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def named(report: dict[str, Any]) -> Iterator[Named]:
    """Yield what the report names in each run but the first."""
    (group,) = report["groups"]
    for run in group["runs"][1:]:
        assert run["status"] == "ok", run
        found = run["first_difference"]
        if found is not None and found["also"]:
            yield f"{found['stage']} of several", found["rank"], found["step"]
        else:
            yield None if found is None else (found["stage"], found["rank"], found["step"])
