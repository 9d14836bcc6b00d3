"""Bisections and traces by an engine: where each run is ended, what it records, and which machine does it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from detaudit.bisect.flags import Bisector, Question
from detaudit.bisect.trials import FIRST_S
from detaudit.config.flags import load_catalogue
from detaudit.config.options import Until
from detaudit.errors import EngineError
from detaudit.launch.plan import Settings
from detaudit.model import Bisection, BisectOutcome, FlagOutcome, FlagState, Trace, Verdict
from detaudit.model.sources import AddressesRandom
from detaudit.remote.archive import pack
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.plan import Snapshot, plan_of, read_plan
from detaudit.remote.runner import EngineLauncher, RemoteRuns
from detaudit.runner import Observer
from detaudit.trace.tracer import Tracer, TraceRequest
from tests.fakes import settings, training
from tests.logs import write_log
from tests.remote.attempts import attempt

KERNEL, ASLR = "torch-deterministic-algorithms", "system-aslr-off"
CATALOGUE = load_catalogue()


class Hosts:
    """An Engine of the hosts a and b. Runs match with the flag KERNEL; ``lost`` has how many jobs each host loses."""

    at_once, places = 1, frozenset("ab")

    def __init__(self, folder: Path, **lost: int) -> None:
        self.folder, self.lost = folder, lost
        self.jobs: list[Job] = []
        self.did: list[str] = []
        self.facts: dict[str, dict[str, str]] = {}
        self.refused: dict[str, FlagState] = {}
        self._ready: list[Returned] = []

    def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
        host = min(self.places - avoid or self.places)
        self.jobs.append(job)
        self.did.append(host)
        self.lost[host] = self.lost.get(host, 0) - 1
        self._ready.append(Returned(job.id, Lost("down") if self.lost[host] >= 0 else self._done(job, host), host))

    def _done(self, job: Job, host: str) -> bytes:
        plan = read_plan(job.plan, "plan")
        flags = {flag.id for flag in plan.recipes[0].flags}
        lines = training("same" if KERNEL in flags else f"run {len(self.jobs)}")
        work = self.folder / f"work-{job.id}"
        (work / "logs").mkdir(parents=True)
        write_log(work / "logs" / "7.0.jsonl", lines)
        made = attempt(plan, job.run, job.id, host, **self.facts.get(host, {}))
        known = {flag.id for flag in job.asked} | flags
        refused = {name: state for name, state in self.refused.items() if name in known}
        pack(msgspec.structs.replace(made, refused=refused), work, work / "archive")
        return (work / "archive").read_bytes()

    def poll(self) -> list[Returned]:
        found, self._ready = self._ready, []
        return found

    def cancel(self, job: str) -> None: ...

    def failure(self) -> str:
        return ""

    def close(self) -> None: ...


class Noting(Observer):
    def __init__(self) -> None:
        self.machines: list[str] = []

    def stays_on(self, machine: str) -> None:
        self.machines.append(machine)


def elsewhere(hosts: Hosts, made: Settings) -> RemoteRuns:
    plan = plan_of(made, python=None, variables={}, passed=())
    return RemoteRuns(
        EngineLauncher(hosts), plan, Snapshot(b"", "", "."), alike=True, asked=CATALOGUE.select([KERNEL, ASLR])
    )


def bisect(folder: Path, hosts: Hosts, observer: Observer | None = None) -> Bisection:
    made = replace(settings(folder, runs=1), recipes=())
    question = Question(made, CATALOGUE, CATALOGUE.select([KERNEL, ASLR]), 0, confirm=2, error=0.5)
    there = elsewhere(hosts, made)
    return Bisector(question, there.carrier, observer, (), there).run()


def trace(folder: Path, hosts: Hosts) -> Trace:
    made = settings(folder, runs=2, stepwise=True)
    there = elsewhere(hosts, made)
    return Tracer(TraceRequest(made, made.recipes[0], CATALOGUE), there.carrier, None, there).run()


def test_a_bisection_stays_on_the_first_host_that_answers(tmp_path: Path) -> None:
    hosts, observer = Hosts(tmp_path, a=1), Noting()
    found = bisect(tmp_path, hosts, observer)
    assert found.outcome is BisectOutcome.FIXED
    assert [one.flag for one in found.needed or ()] == [KERNEL]
    assert hosts.did == ["a", *"b" * found.total_runs]
    assert found.environment["host"] == "b"
    assert observer.machines == ["b"]


def test_each_run_is_ended_where_the_bisection_wants(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    bisect(tmp_path, hosts)
    assert hosts.jobs[0].until == Until(seconds=FIRST_S, in_training=True)
    assert {job.until for job in hosts.jobs[1:]} <= {Until(step=2), None}
    plans = [read_plan(job.plan, "plan") for job in hosts.jobs]
    assert {plan.options["until"] for plan in plans} == {"2"}, "the environments of all runs have one size"
    assert len({tuple(flag.id for flag in plan.recipes[0].flags) for plan in plans}) == 2


def test_flags_that_the_host_does_not_support_are_not_tried(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    reason = AddressesRandom(detail="no")
    hosts.refused = {ASLR: FlagState(id=ASLR, state=FlagOutcome.UNAVAILABLE, reason=reason)}
    found = bisect(tmp_path, hosts)
    assert found.not_applicable[ASLR] == reason
    assert all(ASLR not in group.recipe.flags for group in found.groups)


@pytest.mark.parametrize("search", [bisect, trace])
def test_a_host_that_is_lost_is_replaced_by_one_like_it(
    tmp_path: Path, search: Callable[[Path, Hosts], Bisection | Trace]
) -> None:
    class Failing(Hosts):
        def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
            self.lost["a"] = len(self.jobs)  # it loses all jobs but the first
            super().submit(job, avoid)

    hosts = Failing(tmp_path)
    found = search(tmp_path, hosts)
    assert hosts.did[:5] == ["a", "a", "b", "a", "b"]
    assert found.verdict is (Verdict.DETERMINISTIC if search is bisect else Verdict.NONDETERMINISTIC)
    assert [machine.kind for machine in found.groups[0].machines] == [1, 1]


@pytest.mark.parametrize("search", [bisect, trace])
def test_runs_of_two_kinds_of_machines_are_never_compared(
    tmp_path: Path, search: Callable[[Path, Hosts], Bisection | Trace]
) -> None:
    class Failing(Hosts):
        def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
            self.lost["a"] = len(self.jobs)
            super().submit(job, avoid)

    hosts = Failing(tmp_path)
    hosts.facts = {"a": {"microcode": "0x1"}, "b": {"microcode": "0x2"}}
    with pytest.raises(EngineError, match="b did a run, and is not like a, which did the first one: microcode"):
        search(tmp_path, hosts)
    assert [path.name for path in (tmp_path / "out" / "runs").glob("*/*")] == ["1"], "a resumption does the other again"


def test_a_run_that_is_lost_is_no_training_that_fails(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="a run was lost 3 times: a: down"):
        bisect(tmp_path, Hosts(tmp_path, a=9, b=9))


def test_a_host_that_refuses_ends_the_search(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    hosts._done = lambda job, host: Refused("no detaudit there")  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(EngineError, match="a: no detaudit there"):
        bisect(tmp_path, hosts)


def test_the_runs_of_a_trace_record_what_the_trace_wants(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    found = trace(tmp_path, hosts)
    assert found.verdict is Verdict.NONDETERMINISTIC
    assert {read_plan(job.plan, "plan").options["stages"] for job in hosts.jobs} == {"all"}
    first, second, *instrumented = hosts.jobs
    assert (first.watch, second.watch, first.last_step) == ("", "", None)
    levels = [json.loads(job.watch)["level"] for job in instrumented]
    assert levels[:2] == ["ops", "ops"]
    assert [job.last_step for job in instrumented] == [json.loads(job.watch)["last"] for job in instrumented]
    assert found.environment["host"] == "a"
    assert {*hosts.did} == {"a"}
