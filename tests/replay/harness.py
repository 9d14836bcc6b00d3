"""Record the call of one operation of a script in a real process, and replay it in others."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

from detaudit import wire
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import BOOTSTRAP, plan_group, workspace_for
from detaudit.model import ALL_STEPS, Cause, Culprit, How, Operation, Replay, Stage
from detaudit.ops.replay import Replays
from detaudit.runner import Observer
from detaudit.trace import operations
from detaudit.trace.operations import Saved
from detaudit.trace.tracer import ReplayRequest
from tests.fakes import settings
from tests.replay.cases import OPS, Case


def recorded(case: Case, folder: Path) -> Saved:
    """Run a script twice: to find its operation, and to save the call of it."""
    folder.mkdir(parents=True)
    (folder / "planted_ops.py").write_text(dedent(OPS))
    (folder / "train.py").write_text(case.script)
    found = _run(folder, "ops", {})
    counts: dict[str, int] = {}
    wanted: dict[str, Any] = {}
    for op in operations.operations(found):
        counts[op.thread] = counts.get(op.thread, -1) + 1
        if op.op.startswith(case.op):
            wanted = {"key": op.key} if op.key else {"thread": op.thread, "n": counts[op.thread]}
            break
    assert wanted, f"{case.op} did not run"
    saved = operations.read_call(_run(folder, "tensors", {**wanted, "call": 2**30}))
    assert saved is not None
    return saved


def _run(folder: Path, level: str, wanted: dict[str, Any]) -> Path:
    logs = folder / level
    logs.mkdir()
    watch = json.dumps({"level": level, "first": 0, "last": ALL_STEPS, **wanted})
    env = {**os.environ, "PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: str(logs), wire.ENV_WATCH: watch}
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return max(logs.glob(f"*{wire.OPS_SUFFIX}"), key=lambda path: path.stat().st_size)


def replayed(saved: Saved, folder: Path, repro: Path | None = None) -> Replay:
    """Replay a call that was saved."""
    folder.mkdir()
    saved = replace(saved, folder=Path(shutil.copytree(saved.folder, folder / "call")))
    plan_settings = settings(folder)
    plan = plan_group(plan_settings, load_recipe("none", load_catalogue()), workspace_for(plan_settings), {})
    culprit = Culprit(
        how=How.OUTPUT, cause=Cause.KERNEL, rank=0, step=1, stage=Stage.FORWARD, operation=Operation(name=saved.call.op)
    )
    replays = Replays(ReplayRequest(60, 1.0, repro), plan, LocalLauncher(), Observer())
    operation = replays.replayed(culprit, 0, saved).operation
    assert operation is not None
    assert operation.replay is not None
    return operation.replay


def answer(found: Replay) -> tuple[object, ...]:
    """Return what a replay says, as ``Case.answer`` has it."""
    own, gradient = found.own, found.gradient
    both = own and own.verdict, own and own.mode, gradient and gradient.verdict, gradient and gradient.mode
    return found.obstacle, *both
