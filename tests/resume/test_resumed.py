"""``detaudit resume`` as a real process, on scripts that need no framework."""

import json
from typing import Any

import pytest

from detaudit.runs import log
from tests.process.conftest import Finished, Project
from tests.resume.scripts import NUMPY, SCRIPTS
from tests.resume.trainers import TRAINERS

pytestmark = pytest.mark.launches
ALL = (*SCRIPTS, *TRAINERS)
BY_NAME = {script.name: script for script in ALL}


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


def resume(project: Project, *words: str) -> Finished:
    return project.detaudit("resume", "train.py", "--resume", "train.py --resume", "--quiet", *words)


def points(done: Finished) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.out)["points"]
    return found


def test_labels_are_sound() -> None:
    assert len([script for script in SCRIPTS if script.lost]) >= 20
    assert len(BY_NAME) == len(ALL)
    for script in ALL:
        compile(script.code, script.name, "exec")
        assert (script.code == script.base) is not bool(script.lost)


def test_a_complete_checkpoint_matches(project: Project) -> None:
    project.write("train.py", NUMPY)
    done = resume(project)
    assert done.code == 0
    assert "matches: a run that was resumed, bit-identical to an uninterrupted one" in done.out


def test_a_lost_momentum_is_named_and_is_not_in_the_checkpoint(project: Project) -> None:
    project.write("train.py", BY_NAME["numpy-momentum"].code)
    done = resume(project, "--format", "json")
    assert done.code == 1
    (point,) = points(done)
    assert (point["place"], point["stopped_after"], point["resumed_after"]) == ("at-a-checkpoint", 10, 10)
    assert [(one["what"], one["missing"]) for one in point["lost"]] == [("optimizer", ["checkpoint.npz"])]
    (checkpoint,) = point["checkpoints"]
    line = 1 + BY_NAME["numpy-momentum"].code.splitlines().index(
        '    saved = np.load("checkpoint.npz", allow_pickle=True)'
    )
    assert (checkpoint["names"], checkpoint["file"], checkpoint["line"]) == (
        ["done", "rng", "weights"],
        "train.py",
        line,
    )


@pytest.mark.full
def test_each_stop_is_tried_and_a_generator_has_its_name(project: Project) -> None:
    code = BY_NAME["numpy-rng"].code.replace("    np.savez(", "    if step % 4 == 3: np.savez(")
    project.write("train.py", code)
    done = resume(project, "--format", "json")
    assert done.code == 1
    between, at, before = points(done)
    assert (between["place"], between["stopped_after"], between["resumed_after"]) == ("between-checkpoints", 10, 8)
    assert (at["place"], at["stopped_after"], at["resumed_after"]) == ("at-a-checkpoint", 8, 8)
    assert (before["place"], before["status"]) == ("before-the-first", "unusable")
    assert [one["names"] for one in between["lost"]] == [["rng"]]
    stopped = sorted((project.folder / ".detaudit").glob("2*/runs/stopped/*"))
    assert [part.steps for folder in stopped for one in log.read_run(folder) for part in one.trainings] == [10, 8, 1]


def test_a_script_that_begins_anew_resumes_nothing(project: Project) -> None:
    project.write("train.py", NUMPY)
    done = project.detaudit("resume", "train.py", "--resume", "train.py", "--stop", "train.py --steps 5", "--quiet")
    assert done.code == 125
    assert "inconclusive: nothing was resumed: each resumed run began anew" in done.out


def test_runs_that_differ_by_themselves_are_inconclusive(project: Project) -> None:
    project.write("train.py", NUMPY.replace("default_rng(0)", "default_rng()"))
    done = resume(project)
    assert done.code == 125
    assert "the uninterrupted runs must match each other first" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.py"], "--resume"),
        (["train.py", "--resume", " "], "the command is empty"),
        (["train.py", "--resume", "other.py"], "other.py"),
        (["train.py", "--resume", "train.py", "--until", "3"], "unknown option '--until'"),
    ],
)
def test_a_command_line_that_is_wrong(project: Project, words: list[str], message: str) -> None:
    project.write("train.py", NUMPY)
    done = project.detaudit("resume", *words)
    assert done.code == 2
    assert message in done.err


SAVES_WHEN_STOPPED = """\
import argparse, signal, sys
import numpy as np
import detaudit

parser = argparse.ArgumentParser()
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()
rng = np.random.default_rng(0)
start, weights, stopping = 0, np.zeros(8), []
if args.resume:
    saved = np.load("checkpoint.npz", allow_pickle=True)
    start, weights = int(saved["done"]), saved["weights"]
    rng.bit_generator.state = saved["rng"].item()
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
for step in range(start, 20):
    weights = weights - 0.1 * (weights - rng.normal(size=8))
    detaudit.record(loss=float(weights @ weights), weights=[weights])
    if stopping or (step + 1) % EVERY == 0:
        np.savez("checkpoint.npz", done=step + 1, weights=weights, rng=np.array(rng.bit_generator.state))
    if stopping:
        sys.exit(STATUS)
"""
"""A script that finishes its step when it is stopped, saves and leaves."""


@pytest.mark.full
@pytest.mark.parametrize(("every", "status"), [("99", "0"), ("8", "143")])
def test_a_script_that_saves_when_it_is_stopped_is_stopped_in_the_middle_and_early(
    project: Project, every: str, status: str
) -> None:
    project.write("train.py", SAVES_WHEN_STOPPED.replace("EVERY", every).replace("STATUS", status))
    done = resume(project, "--format", "json")
    assert done.code == 0
    stops = [(point["place"], point["stopped_after"], point["resumed_after"]) for point in points(done)]
    assert stops == [("when-stopped", 11, 11), ("when-stopped", 2, 2)]


def test_why_no_other_stop_of_a_script_that_saves_when_it_is_stopped_is_tried(project: Project) -> None:
    project.write("train.py", SAVES_WHEN_STOPPED.replace("EVERY", "99").replace("STATUS", "0"))
    done = resume(project)
    assert "stopped after step 11 of 20, saved when it was stopped, resumed after step 11 for 9 steps" in done.out
    assert "between two checkpoints, right after a checkpoint and before the first checkpoint" in done.out
    assert "as the script saves when it is stopped" in done.out


def test_a_script_that_leaves_when_it_is_stopped_and_does_not_save_is_stopped_where_others_are(
    project: Project,
) -> None:
    code = SAVES_WHEN_STOPPED.replace("EVERY", "4").replace("STATUS", "0").replace("stopping or (step", "(step")
    project.write("train.py", code)
    done = resume(project, "--format", "json")
    stops = [(point["place"], point["stopped_after"], point["resumed_after"]) for point in points(done)]
    assert stops == [
        ("between-checkpoints", 11, 8), ("at-a-checkpoint", 8, 8), ("before-the-first", 2, None)
    ]  # fmt: skip
