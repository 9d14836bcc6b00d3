"""A whole audit with runs at once, with a fake launcher instead of real runs."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from detaudit.audit import Auditor
from detaudit.config.options import Until
from detaudit.errors import StorageError
from detaudit.launch import EnoughError, RunOutcome, RunSpec
from detaudit.launch.slots import divide
from detaudit.model import Audit, Stage, Status, Verdict
from detaudit.model.problems import CoresReduced, RunsCrowded
from detaudit.model.warnings import AuditStopped, SettingsDiffer, SlotsDiffer
from tests.fakes import run, settings, training
from tests.logs import write_log

TWO = divide(2, (), 5, range(2))


class AtOnce:
    """Plays runs by their numbers, in whatever thread they are launched."""

    def __init__(self, play: Callable[[int, RunSpec, Callable[[], None]], RunOutcome]) -> None:
        self.specs: dict[int, RunSpec] = {}
        self._play = play

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        number = int(spec.folder.name)
        self.specs[number] = spec
        return self._play(number, spec, tick)


def trained(spec: RunSpec, update: str = "same", threads: int = 1) -> RunOutcome:
    return run(training(update), threads=threads)(spec)


def audit(folder: Path, launcher: AtOnce, runs: int = 3, **options: object) -> Audit:
    found = {"jobs": TWO, "isolate": True, "env": {"OMP_NUM_THREADS": "1"}, **options}
    return Auditor(settings(folder, runs=runs, **found), launcher).run()


def test_runs_meet_and_their_places_differ_in_equal_length(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=10)

    def play(number: int, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        if number < 3:
            both.wait()
        return trained(spec)

    launcher = AtOnce(play)
    result = audit(tmp_path, launcher)
    assert (result.verdict, [one.id for one in result.groups[0].runs]) == (Verdict.DETERMINISTIC, [1, 2, 3])
    one, two, three = (launcher.specs[number] for number in (1, 2, 3))
    for name in ("cwd", "live", "mark"):
        a, b = str(getattr(one, name)), str(getattr(two, name))
        assert (a != b, len(a), a) == (True, len(b), str(getattr(three, name)))
    assert [spec.slot.cpus for spec in (one, two)] == [(0,), (1,)]
    assert one.env.keys() == two.env.keys()


def test_runs_that_were_crowded_do_not_count_unless_they_differ(tmp_path: Path) -> None:
    for name, updates, verdict in (("a", "xx", Verdict.INCONCLUSIVE), ("b", "xy", Verdict.NONDETERMINISTIC)):
        (tmp_path / name).mkdir()
        launcher = AtOnce(lambda number, spec, _: trained(spec, updates[number - 1], threads=2))  # noqa: B023
        (group,) = audit(tmp_path / name, launcher, runs=2).groups
        assert group.verdict is verdict
    launcher = AtOnce(lambda number, spec, _: trained(spec, threads=2))
    (tmp_path / "c").mkdir()
    (group,) = audit(tmp_path / "c", launcher, runs=2).groups
    assert (group.reason, group.confidence) == (RunsCrowded(jobs=2, threads=2, cores=2), None)


def test_a_disk_that_is_full_for_one_run_ends_the_other(tmp_path: Path) -> None:
    ended = threading.Event()

    def play(number: int, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        if number == 2:
            return trained(spec)
        if number == 4:
            raise StorageError("cannot write: No space left on device", "Free space.")
        try:
            while number == 3:
                tick()
                time.sleep(0.005)
        finally:
            ended.set()
        return trained(spec)

    result = audit(tmp_path, AtOnce(play), runs=4)
    assert ended.is_set()
    assert [one.id for one in result.groups[0].runs] == [1, 2]
    assert AuditStopped(message="cannot write: No space left on device", hint="Free space.") in result.warnings
    assert result.verdict is Verdict.INCONCLUSIVE


def test_two_failures_alike_end_the_others(tmp_path: Path) -> None:
    def play(number: int, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        while number > 2:
            tick()
            time.sleep(0.005)
        return run([], exit_code=1, stderr="ValueError: no\n")(spec)

    result = audit(tmp_path, AtOnce(play), runs=5)
    assert [one.status for one in result.groups[0].runs] == [Status.FAILED, Status.FAILED]


def test_the_first_run_sets_the_step_of_the_others(tmp_path: Path) -> None:
    alone: list[int] = []

    def play(number: int, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        alone.append(number)
        time.sleep(0.1 if number == 1 else 0.0)
        alone.append(number)
        return trained(spec)

    audit(tmp_path, AtOnce(play), until=Until(seconds=60))
    assert alone[:2] == [1, 1]


def test_results_that_go_with_the_slot_are_reported(tmp_path: Path) -> None:
    result = audit(tmp_path, AtOnce(lambda number, spec, _: trained(spec, "xy"[number % 2])), runs=4)
    assert result.verdict is Verdict.NONDETERMINISTIC
    assert SlotsDiffer(recipe="none", slots=2) in result.warnings


@pytest.mark.parametrize("fail_fast", [True, False])
def test_two_runs_that_differ_end_each_other_and_are_compared_through_that_step(
    tmp_path: Path, fail_fast: bool
) -> None:
    def play(number: int, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        lines = training(steps=9)
        for line in lines:
            if line.get("step") == 4 and line["stage"] == "update":
                line["digest"] = str(number)
        (spec.live / "logs").mkdir(parents=True)
        log = spec.live / "logs" / "7.0.jsonl"
        late = time.monotonic() + 10 * fail_fast  # without the other, it would go on
        try:
            write_log(log, lines)
            tick()
            while time.monotonic() < late:
                tick()
                time.sleep(0.005)
            outcome = RunOutcome(0, 1.0)
        except EnoughError:
            outcome = RunOutcome(None, 1.0, ended=True)
        spec.folder.parent.mkdir(parents=True, exist_ok=True)
        spec.live.rename(spec.folder)
        return outcome

    (group,) = audit(tmp_path, AtOnce(play), runs=2, fail_fast=fail_fast).groups
    found = group.first_difference
    assert found is not None
    assert (group.verdict, found.step, found.stage) == (Verdict.NONDETERMINISTIC, 4, Stage.UPDATE)
    ended = (Status.ENDED, 4, 4) if fail_fast else (Status.OK, 9, None)
    assert [(one.status, one.steps, one.through) for one in group.runs] == [ended, ended]


def test_settings_that_name_the_folders_of_a_slot_do_not_differ(tmp_path: Path) -> None:
    def play(number: int, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        lines = training()
        start = {"TORCHINDUCTOR_CACHE_DIR": f"{spec.live}/cache", "TMPDIR": f"{spec.cwd}/tmp"}
        environ = {"start": start, "end": {**start, "OMP_NUM_THREADS": str(number)}}
        settings_line = {"k": "settings", "values": {}, "environ": environ, "files": [], "versions": {}}
        return run([*lines[:-1], settings_line, lines[-1]])(spec)

    (group,) = audit(tmp_path, AtOnce(play), runs=2).groups
    (differ,) = (one for one in group.warnings if isinstance(one, SettingsDiffer))
    assert differ.settings == (("OMP_NUM_THREADS", "2", "1"),)


def test_a_framework_that_made_one_thread_for_want_of_cores_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    launcher = AtOnce(lambda number, spec, _: trained(spec))
    (group,) = audit(tmp_path, launcher, runs=2, env={"OMP_DYNAMIC": "FALSE"}).groups
    assert (group.verdict, group.reason) == (Verdict.INCONCLUSIVE, CoresReduced(jobs=2, cores=2))
