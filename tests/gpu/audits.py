"""Audit, bisect and trace real trainings on a device, with detaudit as a user starts it."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.tasks import Device, Found, Task
from detaudit.config.flags import Flag, load_catalogue

SCRIPTS = Path(__file__).parent / "scripts"

RACING = (
    "scatter_add", "index_add", "index_put", "index_backward", "embedding", "embedding_bag", "convolution",
    "conv_transpose", "grid_sample", "interpolate", "ctc_loss", "attention", "cumsum",
)  # fmt: skip
"""Operations of scripts/racing.py, each audited, bisected and traced."""

WAYS = {
    "graph": "a CUDA graph is captured under the recorder",
    "compiled": "torch.compile, with CUDA graphs of its own",
    "amp": "float16 with a scaler",
    "streams": "a second stream",
    "autotuned": "cuDNN's benchmark mode",
}
"""Ways to train of scripts/small.py."""

SCANNED = ("scatter_add", "index_add", "index_put", "index_copy", "put", "take", "cumsum", "nn.functional.ctc_loss",
           "nn.functional.grid_sample", "nn.functional.interpolate*", "bincount")  # fmt: skip
"""Patterns of ``detaudit ops``."""


RECIPES = ("--recipe", "none", "--recipe", "torch-cuda")

MODULE = "head"
"""The module of scripts/small.py that a flag with a parameter is about."""

DRY_RUNS = 2
"""Runs of an audit on a CPU, which only has to show that it works."""


class CommandError(Exception):
    """detaudit printed no report."""


def detaudit(where: Device, verb: str, *words: str, script: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON report of a command in a folder of its own. ``script`` is the name of one, and its arguments."""
    with tempfile.TemporaryDirectory() as folder:
        if script:
            name, *arguments = script
            (Path(folder) / name).write_text((SCRIPTS / name).read_text())
            words = (name, *words, "--timeout", "300", "--", *arguments, where.kind)
        done = subprocess.run(
            [sys.executable, "-m", "detaudit", verb, "--quiet", "--format", "json", *words],
            cwd=folder, capture_output=True, text=True, check=False, timeout=max(1.0, where.left_s),
        )  # fmt: skip
    if not done.stdout:
        raise CommandError(done.stderr.strip()[-400:])
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def _runs(usual: int, where: Device) -> str:
    return str(usual if where.is_gpu else DRY_RUNS)


def _verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {group["recipe"]["name"]: _verdict(group) for group in found["groups"]}


def _verdict(group: dict[str, Any]) -> str:
    """Return the verdict of a group, or the last line of a run that failed: the switch refuses some operations."""
    verdict: str = group["verdict"]
    tails = [run["stderr_tail"] for run in group["runs"] if run["stderr_tail"]]
    return f"{verdict} ({tails[0][-1][:90]})" if verdict == "inconclusive" and tails else verdict


def race(name: str, where: Device) -> Found:
    """Audit an operation with and without flags; if its runs differ, bisect and trace it."""
    script = ("racing.py", name)
    verdicts = _verdicts(detaudit(where, "run", "--runs", _runs(5, where), *RECIPES, script=script))
    without, with_all = verdicts["none"], verdicts["torch-cuda"]
    said = [f"without flags {without}", f"with torch-cuda {with_all}"]
    if without != "nondeterministic":
        return Found(without == "deterministic" and not with_all.startswith("nondeterministic"), "; ".join(said))
    bisected = detaudit(where, "bisect", script=script)
    needed = [one["flag"] for one in bisected["needed"]]
    said.append(f"bisect {bisected['outcome']}: {', '.join(needed) or 'no flag'}")
    traced = detaudit(where, "trace", script=script)
    culprit = traced["culprit"] or {}
    operation = culprit.get("operation") or {}
    replay = (operation.get("replay") or {}).get("own") or {}
    said.append(f"trace {operation.get('name', 'no operation')}, replay {replay.get('verdict', 'none')}")
    return Found(bool(operation) and not with_all.startswith("nondeterministic"), "; ".join(said))


def way(name: str, where: Device) -> Found:
    """Audit a way to train: the recorder must not break it, nor change what it computes."""
    with tempfile.TemporaryDirectory() as folder:
        alone = subprocess.run(
            [sys.executable, str(SCRIPTS / "small.py"), name, where.kind], cwd=folder, capture_output=True, text=True
        )  # fmt: skip
    if alone.returncode:
        raise CommandError(alone.stderr.strip()[-400:])
    found = detaudit(where, "run", "--full", "--runs", _runs(3, where), *RECIPES, script=("small.py", name))
    verdicts = _verdicts(found)
    runs = [run for group in found["groups"] for run in group["runs"]]
    steps = sorted({run["steps"] for run in runs})
    whole = all(run["status"] == "ok" for run in found["groups"][0]["runs"])
    text = f"without flags {verdicts['none']}; with torch-cuda {verdicts['torch-cuda']}; steps {steps}"
    return Found(whole and verdicts["torch-cuda"] == "deterministic", text)


def _flags() -> list[Flag]:
    """Return the flags for GPUs of torch and of NVIDIA's libraries that detaudit can set."""
    catalogue = load_catalogue()
    wanted = [one for one in catalogue if "gpu" in one.devices and one.framework in ("torch", "cuda")]
    return [catalogue.get(f"{one.id}={MODULE}") if one.parameter else one for one in wanted if not one.by_hand_only]


def flag(one: Flag, where: Device) -> Found:
    """Apply a flag to a training."""
    (group,) = detaudit(where, "run", "--runs", "1", "--flag", one.id, script=("small.py", "plain"))["groups"]
    (state,) = [found for found in group["flags"] if found["id"] == one.id]
    (run,) = group["runs"]
    text = f"{state['state']}{': ' + str(state['reason']) if state['reason'] else ''}; run {run['status']}"
    expected = state["state"] == "applied" and run["status"] == "ok"
    return Found(expected if where.is_gpu else None, text)


def scan(where: Device) -> Found:
    """Repeat operations on the device."""
    patterns = [word for pattern in SCANNED for word in ("--op", pattern)]
    found = detaudit(where, "ops", "--device", where.kind, "--dtype", "float32", *patterns)
    differing = sorted({f"{one['op']} {one['direction']}" for one in found["differing"]})
    text = f"{found['operations']} operations, {found['cases']} cases; differ: {', '.join(differing) or 'none'}"
    return Found(found["cases"] > 0 and not found["crashed"], text)


def tasks() -> Iterator[Task]:
    """Yield all tasks with detaudit's commands."""
    for name, what in WAYS.items():
        yield Task(f"way-{name}", what, partial(way, name), 60)
    for name in RACING:
        yield Task(f"race-{name}", f"{name} races: audit, bisect, trace", partial(race, name), 120)
    yield Task("ops", "detaudit ops on the device", scan, 120)
    for one in _flags():
        yield Task(f"flag-{one.id}", f"flag {one.id} is applied", partial(flag, one), 20)
