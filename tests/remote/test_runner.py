"""Runs on other machines, with an engine that loses, repeats and garbles: only whole results count, and each once."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from detaudit.audit import Auditor
from detaudit.errors import EngineError
from detaudit.launch import Slot
from detaudit.launch.plan import Settings
from detaudit.launch.slots import Jobs
from detaudit.model import Audit, Stage, Status, Verdict
from detaudit.model.problems import RunLost
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.plan import Plan, Snapshot, plan_of, read_plan
from detaudit.remote.runner import ATTEMPTS, EngineLauncher, RemoteRuns
from tests.fakes import settings, training
from tests.logs import write_log
from tests.remote.attempts import attempt

Answer = Callable[[Job], bytes | Lost | Refused]


class FakeEngine:
    """Answers each job at once."""

    def __init__(self, answer: Answer, at_once: int = 2, places: str = "") -> None:
        self.at_once, self.places, self._answer = at_once, frozenset(places), answer
        self.jobs: list[Job] = []
        self.avoided: list[frozenset[str]] = []
        self.cancelled: list[str] = []
        self.broken = ""
        self._ready: list[Returned] = []

    def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
        self.jobs.append(job)
        self.avoided.append(avoid)
        if not self.broken:
            self._ready.append(Returned(job.id, self._answer(job), f"node{len(self.jobs)}"))

    def poll(self) -> list[Returned]:
        found, self._ready = self._ready, []
        return found

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)

    def failure(self) -> str:
        return self.broken

    def close(self) -> None:
        pass


@pytest.fixture
def done(tmp_path: Path) -> Callable[..., bytes]:
    """Return a function that returns the archive of a job, with these last weights."""

    def archive(job: Job, update: str = "same", **changes: object) -> bytes:
        from detaudit.remote.archive import pack

        work = tmp_path / f"work-{job.id}"
        (work / "logs").mkdir(parents=True)
        write_log(work / "logs" / "7.0.jsonl", training(update))
        made = msgspec.structs.replace(attempt(read_plan(job.plan, "plan"), job.run, job.id), **changes)
        pack(made, work, tmp_path / f"{job.id}.detaudit")
        return (tmp_path / f"{job.id}.detaudit").read_bytes()

    return archive


def elsewhere(tmp_path: Path, runs: int = 3, at_once: int = 2) -> tuple[Settings, Plan]:
    made = settings(tmp_path, runs=runs)
    slots = tuple(Slot(name=str(number)) for number in range(at_once))
    made = dataclasses.replace(made, jobs=Jobs(slots=slots, remote=True))
    return made, plan_of(made, python=None, variables={}, passed=())


def audited(tmp_path: Path, engine: FakeEngine, runs: int = 3) -> Audit:
    made, plan = elsewhere(tmp_path, runs, engine.at_once)
    carrier = EngineLauncher(engine)
    return Auditor(made, carrier, make_runner=RemoteRuns(carrier, plan, Snapshot(b"", "", "."))).run()


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_the_report_is_that_of_runs_here(tmp_path: Path, done: Callable[..., bytes], at_once: int) -> None:
    engine = FakeEngine(done, at_once)
    (group,) = audited(tmp_path, engine).groups
    assert group.verdict is Verdict.DETERMINISTIC
    assert [(run.id, run.status) for run in group.runs] == [(1, Status.OK), (2, Status.OK), (3, Status.OK)]
    assert sorted(job.run for job in engine.jobs) == [1, 2, 3]
    assert len({job.id for job in engine.jobs}) == 3


def test_runs_that_differ(tmp_path: Path, done: Callable[..., bytes]) -> None:
    report = audited(tmp_path, FakeEngine(lambda job: done(job, str(job.run)), 1))
    assert report.verdict is Verdict.NONDETERMINISTIC


def test_a_lost_attempt_is_repeated_elsewhere(tmp_path: Path, done: Callable[..., bytes]) -> None:
    engine = FakeEngine(lambda job: Lost("node down") if len(engine.jobs) == 1 else done(job), 1)
    report = audited(tmp_path, engine)
    assert report.verdict is Verdict.DETERMINISTIC
    assert [job.run for job in engine.jobs] == [1, 1, 2, 3]
    assert engine.avoided[1] == frozenset({"node1"})
    assert engine.jobs[0].id != engine.jobs[1].id


@pytest.mark.parametrize("garbled", [b"", b"no archive", None])
def test_an_archive_that_is_not_whole_is_lost(
    tmp_path: Path, done: Callable[..., bytes], garbled: bytes | None
) -> None:
    def answer(job: Job) -> bytes:
        whole = done(job)
        return (whole[:-5] if garbled is None else garbled) if len(engine.jobs) == 1 else whole

    engine = FakeEngine(answer, 1)
    assert audited(tmp_path, engine).verdict is Verdict.DETERMINISTIC
    assert len(engine.jobs) == 4


@pytest.mark.parametrize("change", [{"id": "another"}, {"run": 2}])
def test_the_archive_of_another_job_is_lost(
    tmp_path: Path, done: Callable[..., bytes], change: dict[str, object]
) -> None:
    engine = FakeEngine(lambda job: done(job, **(change if len(engine.jobs) == 1 else {})), 1)
    assert audited(tmp_path, engine).verdict is Verdict.DETERMINISTIC
    assert len(engine.jobs) == 4


def test_a_run_that_is_lost_again_and_again_failed(tmp_path: Path, done: Callable[..., bytes]) -> None:
    engine = FakeEngine(lambda job: Lost("node down") if job.run == 2 else done(job), 1)
    (group,) = audited(tmp_path, engine).groups
    assert group.verdict is Verdict.INCONCLUSIVE
    assert group.runs[1].errors == (RunLost(attempts=ATTEMPTS, reason=f"node{ATTEMPTS + 1}: node down"),)
    assert [job.run for job in engine.jobs].count(2) == ATTEMPTS


def test_a_training_that_fails_is_a_finding_and_not_repeated(tmp_path: Path, done: Callable[..., bytes]) -> None:
    def answer(job: Job) -> bytes:
        plan = read_plan(job.plan, "plan")
        failed = msgspec.structs.replace(attempt(plan, job.run).result, status=Status.FAILED, exit_code=3)
        return done(job, **({"result": failed} if job.run == 2 else {}))

    engine = FakeEngine(answer, 1)
    (group,) = audited(tmp_path, engine).groups
    assert group.verdict is Verdict.NONDETERMINISTIC
    assert group.first_difference is not None
    assert (group.first_difference.stage, group.first_difference.runs) == (Stage.EXIT, (1, 2))
    assert [job.run for job in engine.jobs] == [1, 2, 3]


def test_a_machine_that_refuses_ends_the_audit(tmp_path: Path) -> None:
    engine = FakeEngine(lambda job: Refused("no detaudit there", "Install it."), 1)
    with pytest.raises(EngineError, match="node1: no detaudit there") as caught:
        audited(tmp_path, engine)
    assert caught.value.hint == "Install it."


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_broken_engine_ends_the_audit(tmp_path: Path, at_once: int) -> None:
    engine = FakeEngine(lambda job: Lost(""), at_once)
    engine.broken = "its center is gone"
    with pytest.raises(EngineError, match="its center is gone"):
        audited(tmp_path, engine)
    assert {*engine.cancelled} == {job.id for job in engine.jobs}


def test_spread_runs_go_to_the_machines_in_turn_and_a_lost_one_to_any_other(
    tmp_path: Path, done: Callable[..., bytes]
) -> None:
    engine = FakeEngine(lambda job: Lost("node down") if len(engine.jobs) == 1 else done(job), 1, places="abc")
    made, plan = elsewhere(tmp_path, runs=4, at_once=1)
    carrier = EngineLauncher(engine)
    report = Auditor(
        made, carrier, make_runner=RemoteRuns(carrier, plan, Snapshot(b"", "", "."), "", ("a", "b", "c"))
    ).run()
    assert report.verdict is Verdict.DETERMINISTIC
    assert [job.run for job in engine.jobs] == [1, 1, 2, 3, 4]
    others = [frozenset("bc"), {"node1"}, frozenset("ac"), frozenset("ab"), frozenset("bc")]
    assert engine.avoided == others
