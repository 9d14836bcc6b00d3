"""Matching runs count only if they had enough of the machine."""

from dataclasses import replace

import pytest

from detaudit.judge.conditions import Crowding, slots_differ, threads
from detaudit.launch.slots import DEVICES, Jobs, divide
from detaudit.model import RankRecord, Run, Status, Training
from detaudit.model.problems import CoresReduced, DeviceShared, RunsCrowded
from detaudit.model.warnings import SlotsDiffer
from detaudit.runs.log import Process
from detaudit.runs.log_records import Framework, Hello, SettingsLine, SourceLine


def run(number: int, *devices: str) -> Run:
    rank = RankRecord(
        rank=0, framework="torch", steps=1, sum_of_weights=1.0, final_loss=None, digest="d", devices=devices
    )
    return Run(id=number, status=Status.OK, exit_code=0, wall_s=1.0, steps=1, ranks=(rank,))


def process(
    values: dict[str, int | None] | None = None,
    world: int | None = None,
    framework: str = "torch",
    calls: str = "",
    **environ: dict[str, str],
) -> Process:
    return Process(
        Hello(1, 7, 1, (), "3.11.7", None, (), world=world),
        settings=SettingsLine(dict(values or {}), environ, (), {}),
        frameworks=[Framework(framework, "1")],
        sources=[SourceLine("setting", calls, "train.py", 1, "1")],
        trainings=(Training(framework=framework, digests={}, steps=1),),
    )


def reason(
    jobs: Jobs, *runs: tuple[Run, int], gpu: bool = False, process_: Process | None = None, env: str = ""
) -> object:
    crowding = Crowding(jobs, gpu=gpu)
    for one, threads_ in runs:
        crowding.add(one, threads_, [process_] if process_ else [], {env})
    return crowding.reason


def test_runs_one_after_another_count() -> None:
    assert reason(divide(1, (), 2, range(2)), (run(1, "cuda:0"), 8), (run(2, "cuda:0"), 8), gpu=True) is None


@pytest.mark.parametrize(
    ("jobs", "used", "crowded"), [(2, 4, False), (2, 5, True), (8, 1, False), (9, 1, True), (9, 0, True)]
)
def test_all_threads_need_a_core(jobs: int, used: int, crowded: bool) -> None:
    found = reason(divide(jobs, (), 9, range(8)), (run(1, "cpu"), 1), (run(2, "cpu"), used))
    assert found == (RunsCrowded(jobs=jobs, threads=max(1, used), cores=8) if crowded else None)


def test_with_auto_only_those_count_that_went_at_once() -> None:
    jobs = divide(None, (), 9, range(8))
    assert reason(jobs, (run(1, "cpu"), 4), (run(2, "cpu"), 4)) is None
    assert reason(jobs, (run(1, "cpu"), 8), (run(2, "cpu"), 8)) is None
    assert reason(jobs, (run(1, "cpu"), 4), (run(2, "cpu"), 5)) == RunsCrowded(jobs=2, threads=5, cores=8)


def test_a_device_that_runs_share() -> None:
    jobs = divide(2, (), 2, range(8))
    for name in ("cuda:0", "GPU:0", "mps:0", "cpu,cuda:1"):
        shared = name.rpartition(",")[2]
        assert reason(jobs, (run(1, name), 1), (run(2, name), 1)) == DeviceShared(jobs=2, device=shared)
    assert reason(jobs, (run(1, "cpu", "CPU:0", "unknown"), 1), gpu=True) is None
    assert reason(jobs, (run(1), 1), gpu=True) == DeviceShared(jobs=2, device="")
    assert reason(jobs, (run(1), 1), gpu=False) is None


def test_devices_of_their_own() -> None:
    jobs = divide(2, ("0", "1", "2", "3"), 2, range(8))
    runs = ((run(1, "cuda:0"), 1), (run(2, "cuda:0"), 1))
    assert reason(jobs, runs[0], gpu=True, process_=process(start={DEVICES: "0,1"}, end={DEVICES: "1"})) is None
    assert reason(jobs, runs[1], gpu=True, process_=process(start={DEVICES: "2,3"}, torch={DEVICES: "0"})) == (
        DeviceShared(jobs=2, device="0")
    )


def test_the_threads_of_a_run() -> None:
    torch, intra = "torch.get_num_threads()", "tensorflow.python.eager.context._context._intra_op_parallelism_threads"
    assert threads(3, []) == 3
    assert threads(1, [process({torch: 4}), process({torch: 2})]) == 4
    assert threads(1, [process({torch: 2}, world=2)]) == 4
    assert threads(1, [process({intra: None})]) == 1
    assert threads(1, [process({intra: 6})]) == 6
    assert threads(1, [process(start={"OMP_NUM_THREADS": "5", "MKL_NUM_THREADS": "all"})]) == 5
    assert threads(1, [process({torch: 1}, start={"OMP_NUM_THREADS": "5"})]) == 1


@pytest.mark.parametrize(
    ("cpus", "made", "device", "env", "counts"),
    [
        (2, process(), "cpu", "", False),
        (4, process(), "cpu", "", True),
        (2, process(), "cuda:0", "", True),
        (2, process(), "cpu", "OMP_NUM_THREADS", True),
        (2, replace(process(), settings=None), "cpu", "", False),
        (2, replace(process(), settings=None), "cpu", "OMP_NUM_THREADS", True),
        (2, process(framework="script"), "cpu", "", True),
        (2, process(framework="tensorflow"), "cpu", "", False),
        (2, process(framework="tensorflow"), "cpu", "OMP_NUM_THREADS", False),
        (2, process(framework="tensorflow"), "cpu", "TF_NUM_INTRAOP_THREADS", True),
        (2, process(calls="torch.set_num_threads"), "cpu", "", True),
    ],
)
def test_a_framework_that_made_one_thread_for_want_of_cores(
    cpus: int, made: Process, device: str, env: str, counts: bool
) -> None:
    jobs = divide(2, ("0", "1") if device != "cpu" else (), 2, range(cpus))
    found = reason(jobs, (run(1, device), 1), process_=made, env=env)
    assert found == (None if counts else CoresReduced(jobs=2, cores=2))


@pytest.mark.parametrize(
    ("results", "differ"),
    [("abab", True), ("ababa", True), ("aba", False), ("abba", False), ("aaaa", False), ("abac", False)],
)
def test_runs_that_differ_exactly_if_their_slots_do(results: str, differ: bool) -> None:
    by_run = dict(enumerate(results, 1))
    assert slots_differ(divide(2, (), 5, range(2)), by_run) == ([SlotsDiffer(slots=2)] if differ else [])
    assert slots_differ(divide(1, (), 5, range(2)), by_run) == []
