"""Audit live trainings by the command line: each run is a process of its own, and all but the first flip a bit."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from detaudit.model import Difference, Stage
from tests.planted import noted
from tests.planted.audits import Outcome, named
from tests.planted.forked import ROOT
from tests.planted.plants import Plant, Training, expected

SCRIPT = Path(__file__).with_name("live_script.py")


def detaudit(training: Training, plants: Sequence[Plant | None], folder: Path) -> dict[str, Any]:
    """Return the group of ``detaudit run`` with one run for each plant; None leaves a run as it is."""
    (folder / "plants.json").write_text(json.dumps(plants))
    project = folder / "project"
    project.mkdir()
    finished = subprocess.run(
        [sys.executable, "-m", "detaudit", "run", str(SCRIPT), "--runs", str(len(plants)), "--format", "json",
         "--quiet", "--out", str(folder / "out"), "--", str(folder), training.name, str(training.world)],
        cwd=project, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not finished.stdout:
        raise RuntimeError(finished.stderr)
    group: dict[str, Any] = json.loads(finished.stdout)["groups"][0]
    return group


def planted(training: Training, plants: Sequence[Plant]) -> list[Outcome]:
    """Audit a training with one run without a plant, then one for each plant."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        group = detaudit(training, (None, *plants), folder)
        broken = [run for run in group["runs"] if run["status"] != "ok"]
        if broken or len(group["runs"]) <= len(plants):
            raise RuntimeError(f"{training}: {broken}")
        found = [_named(run["first_difference"]) for run in group["runs"]]
        reference = noted.read(folder / "1")
        return [
            Outcome(training.name, training.world, plant, expected(reference, noted.read(folder / str(run))), one)
            for (run, one), plant in zip(list(enumerate(found, 1))[1:], plants, strict=True)
        ]


def _named(difference: dict[str, Any] | None) -> Any:
    if difference is None:
        return None
    return named(Difference(**{**difference, "stage": Stage(difference["stage"])}))


def verdict(training: Training) -> str:
    """Return the verdict on two runs without a plant."""
    with tempfile.TemporaryDirectory() as folder:
        found: str = detaudit(training, (None, None), Path(folder))["verdict"]
        return found
