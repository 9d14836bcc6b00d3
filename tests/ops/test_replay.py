"""The processes of a replay, with a fake launcher: what they are asked, and what becomes of their results."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detaudit import wire
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import plan_group, workspace_for
from detaudit.model import Cause, Condition, Culprit, How, ModeEffect, Obstacle, Operation, Replay, ReplayVerdict, Stage
from detaudit.ops.replay import FILLS, Replays
from detaudit.runner import Observer
from detaudit.trace.operations import Call, Saved
from detaudit.trace.tracer import ReplayRequest
from tests.fakes import settings

RAW = {
    "k": "call", "framework": "torch", "op": "aten.put_.default", "python": "/a/python", "settings": {"threads": 2},
    "args": [True], "kwargs": {"dict": []},
}  # fmt: skip


@dataclass
class Process:
    """A process that repeats an operation: the results of each condition are those of ``results``, in order."""

    results: list[dict[str, Any]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    specs: list[RunSpec] = field(default_factory=list)

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        self.specs.append(spec)
        self.asked.append(json.loads(Path(spec.argv[-1]).read_text()))
        result = self.results[min(len(self.asked), len(self.results)) - 1]
        if result:
            Path(self.asked[-1]["result"]).write_text(json.dumps(result))
        spec.folder.parent.mkdir(parents=True, exist_ok=True)
        spec.live.rename(spec.folder)
        return RunOutcome(0 if result else -9, 1.0)


def passed(*digests: str, error: str = "") -> dict[str, Any]:
    return {"counts": {"": {digest: digests.count(digest) for digest in digests}} if digests else {}, "error": error}


SAME = {"threads": 2, "own": passed("x", "x")}
DIFFERENT = {"threads": 2, "own": passed("x", "y")}


def replays(folder: Path, launcher: Process, **request: Any) -> Replays:
    made = settings(folder)
    plan = plan_group(made, load_recipe("none", load_catalogue()), workspace_for(made), {})
    return Replays(ReplayRequest(**request), plan, launcher, Observer())


def culprit(how: How = How.OUTPUT, **fields: Any) -> Culprit:
    operation = Operation(name="aten.put_.default", **fields)
    return Culprit(how=how, cause=Cause.KERNEL, rank=0, step=1, stage=Stage.FORWARD, operation=operation)


def saved(folder: Path, **changed: Any) -> Saved:
    return Saved(msgspec.convert({**RAW, **changed}, Call), {**RAW, **changed}, folder)


def replayed(folder: Path, *results: dict[str, Any], **request: Any) -> tuple[Replay | None, Process]:
    launcher = Process(list(results))
    found = replays(folder, launcher, **request).replayed(culprit(), 1, saved(folder))
    assert found.operation is not None
    return found.operation.replay, launcher


def test_each_condition_is_a_process_of_its_own(tmp_path: Path) -> None:
    found, launcher = replayed(tmp_path, SAME)
    assert found is not None
    assert found.own is not None
    assert (found.own.verdict, found.own.mode, found.gradient) == (ReplayVerdict.DETERMINISTIC, None, None)
    conditions = [one["condition"] for one in launcher.asked]
    assert [one["deterministic"] for one in conditions] == [False, False, False, False, True]
    assert [one["threads"] for one in conditions] == [0, 0, 0, 1, 0]
    assert [one["fills"] for one in conditions] == [[], [], list(FILLS), list(FILLS), list(FILLS)]
    assert [one["load"] > 0 for one in conditions] == [False, True, False, False, True]
    assert {one["place"] for one in conditions} == {1}
    assert [spec.folder.name for spec in launcher.specs] == list(Condition)
    assert {spec.argv[0] for spec in launcher.specs} == {"/a/python"}


def test_the_recorder_is_not_loaded_and_variables_stay(tmp_path: Path) -> None:
    _, launcher = replayed(tmp_path, SAME)
    for spec in launcher.specs:
        assert not {wire.ENV_LOGS, wire.ENV_FLAGS, wire.ENV_STAGES} & spec.env.keys()
        assert spec.env[wire.ENV_MARK] == "m"
    filled = ["tcache_count=0" in spec.env.get("GLIBC_TUNABLES", "") for spec in launcher.specs]
    assert filled == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("request_", "repeats", "limited"), [({}, 200, True), ({"repeats": 7, "seconds": None}, 7, False)]
)
def test_the_number_of_repeats(tmp_path: Path, request_: dict[str, Any], repeats: int, limited: bool) -> None:
    _, launcher = replayed(tmp_path, SAME, **request_)
    assert {one["repeats"] for one in launcher.asked} == {repeats}
    assert all((one["seconds"] < 60) == limited for one in launcher.asked)
    assert all((spec.timeout is not None) == limited for spec in launcher.specs)


def test_the_verdict_of_both_passes(tmp_path: Path) -> None:
    both = {"threads": 2, "own": passed("x", "x"), "gradient": passed("x", "y", "z")}
    raises = {"threads": 2, "own": passed("x"), "gradient": passed(error="RuntimeError: no")}
    found, _ = replayed(tmp_path, both, both, both, SAME, raises)
    assert found is not None
    assert found.own is not None
    assert found.gradient is not None
    assert found.own.verdict is ReplayVerdict.DETERMINISTIC
    assert (found.gradient.verdict, found.gradient.mode) == (ReplayVerdict.RACES, ModeEffect.RAISES)


def test_an_operation_without_a_gradient_has_no_backward_pass(tmp_path: Path) -> None:
    without = {"threads": 2, "own": passed("x"), "gradient": passed(error="RuntimeError: no autograd formula")}
    found, _ = replayed(tmp_path, without)
    assert found is not None
    assert found.own is not None
    assert found.gradient is None


def test_a_process_that_fails_is_an_obstacle(tmp_path: Path) -> None:
    found, launcher = replayed(tmp_path, {"failed": "ImportError: x"})
    assert found == Replay(obstacle=Obstacle.FAILED, detail="ImportError: x")
    assert len(launcher.asked) == 1


def test_a_process_that_dies_is_an_obstacle(tmp_path: Path) -> None:
    found, _ = replayed(tmp_path, {})
    assert found == Replay(obstacle=Obstacle.FAILED, detail="exit status -9")


def test_a_later_process_that_fails_leaves_the_others(tmp_path: Path) -> None:
    found, _ = replayed(tmp_path, DIFFERENT, SAME, {"failed": "x"}, {})
    assert found is not None
    assert found.own is not None
    assert (found.own.verdict, found.own.mode) == (ReplayVerdict.RACES, None)
    assert {one.condition for one in found.own.series} == {Condition.AS_RECORDED, Condition.LOADED}


def test_the_inputs_that_were_saved_are_discarded(tmp_path: Path) -> None:
    (tmp_path / "7.0.storage0.bin").write_bytes(bytes(4))
    (tmp_path / "7.0.out0.bin").touch()
    one = {"file": "7.0.storage0.bin", "bytes": 4, "device": "cpu", "dtype": "float32"}
    replays(tmp_path, Process([SAME])).replayed(culprit(), 0, saved(tmp_path, storages=[one]))
    assert not (tmp_path / "7.0.storage0.bin").exists()
    assert (tmp_path / "7.0.out0.bin").exists()


def test_a_script_is_written_if_it_is_wanted(tmp_path: Path) -> None:
    found, _ = replayed(tmp_path, DIFFERENT, repro=tmp_path / "repro")
    assert found is not None
    assert found.saved_to == str(tmp_path / "repro")
    assert (tmp_path / "repro" / "repro.py").exists()


@pytest.mark.parametrize("one", [culprit(How.UNINITIALIZED), culprit(How.INPUT), culprit(collective=True)])
def test_what_is_not_replayed_is_left_as_it_is(tmp_path: Path, one: Culprit) -> None:
    launcher = Process([SAME])
    assert replays(tmp_path, launcher).replayed(one, 0, saved(tmp_path)) == one
    assert not launcher.asked


@pytest.mark.parametrize(
    ("call", "obstacle"),
    [
        (None, Obstacle.NOT_RECORDED),
        ({"obstacle": "random"}, Obstacle.RANDOM),
        ({"obstacle": "too-large"}, Obstacle.TOO_LARGE),
    ],
)
def test_an_obstacle_is_reported(tmp_path: Path, call: dict[str, Any] | None, obstacle: Obstacle) -> None:
    launcher = Process([SAME])
    found = replays(tmp_path, launcher).replayed(culprit(), 0, saved(tmp_path, **call) if call else None)
    assert found.operation is not None
    assert found.operation.replay == Replay(obstacle=obstacle)
    assert not launcher.asked
