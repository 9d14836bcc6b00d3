"""How a machine is divided between runs at once."""

import os
from pathlib import Path

import pytest

from detaudit import wire
from detaudit.errors import UsageError
from detaudit.launch import RunSpec, Slot
from detaudit.launch.slots import DEVICES, Jobs, cpu_quota, divide, on_cpus


def test_one_run_at_a_time_has_the_whole_machine() -> None:
    assert divide(1, (), 5, [0, 1]) == Jobs((Slot(),), cores=2)
    assert not divide(1, (), 5, [0, 1]).apart


def test_each_slot_has_an_equal_share_of_cpus() -> None:
    found = divide(2, (), 5, [0, 2, 4, 6, 8])
    assert found.slots == (Slot("0", (0, 2)), Slot("1", (4, 6)))
    assert (found.cores, found.apart, found.options) == (5, True, ("--jobs", "2"))
    assert [found.slot_index(number) for number in range(1, 6)] == [0, 1, 0, 1, 0]


def test_a_share_does_not_depend_on_the_number_of_runs() -> None:
    assert divide(4, (), 1, range(8)).slots == (Slot("0", (0, 1)),)
    assert [slot.cpus for slot in divide(4, (), 2, range(8)).slots] == [(0, 1), (2, 3)]


def test_more_runs_than_cpus_take_turns_on_them() -> None:
    assert [slot.cpus for slot in divide(3, (), 3, [0, 1]).slots] == [(0,), (1,), (0,)]


def test_all_names_have_one_length() -> None:
    assert [slot.name for slot in divide(11, (), 11, range(2)).slots][::10] == ["00", "10"]


@pytest.mark.parametrize(
    ("jobs", "devices", "expected"),
    [
        (1, ("0", "1"), [("0", "1")]),
        (2, ("0", "1", "2", "3"), [("0", "1"), ("2", "3")]),
        (None, ("0", "1", "2"), [("0",), ("1",), ("2",)]),
    ],
)
def test_devices_are_divided(jobs: int | None, devices: tuple[str, ...], expected: list[tuple[str, ...]]) -> None:
    found = divide(jobs, devices, 5, range(6))
    assert [slot.devices for slot in found.slots] == expected
    assert not found.measured


def test_devices_that_cannot_be_divided() -> None:
    for jobs, devices in ((3, ("0", "1")), (2, ("0", "1", "2")), (1, ("0", "0"))):
        with pytest.raises(UsageError):
            divide(jobs, devices, 5, range(4))


def test_auto_waits_for_the_threads_of_the_first_run_and_shares_all_cpus() -> None:
    found = divide(None, (), 3, range(8))
    assert (found.measured, [slot.cpus for slot in found.slots]) == (True, [(), (), ()])
    assert [found.at_once(threads) for threads in (0, 1, 4, 5, 8, 9)] == [3, 3, 2, 1, 1, 1]
    assert divide(2, (), 3, range(8)).at_once(8) == 2


def test_a_quota_leaves_fewer_cores(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    for quota, expected in (("-1\n", None), ("150000\n", 1.5)):
        (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
        assert cpu_quota(tmp_path) == expected
    for text, expected in (("max 100000\n", None), ("250000 100000\n", 2.5)):
        (tmp_path / "cpu.max").write_text(text)
        assert cpu_quota(tmp_path) == expected
    assert [divide(2, (), 2, range(8), quota).cores for quota in (None, 2.5, 0.5, 16.0)] == [8, 2, 1, 8]


def test_environments_with_different_devices_have_one_size() -> None:
    jobs = divide(2, ("0", "GPU-1f"), 2, range(2))
    spec = RunSpec((), Path(), {DEVICES: "5", wire.ENV_PAD: "xx"}, Path(), Path(), "m")
    one, two = (jobs.on_devices(spec, number).env for number in (1, 2))
    assert (one, two) == ({DEVICES: "0", wire.ENV_PAD: "x" * 7}, {DEVICES: "GPU-1f", wire.ENV_PAD: "xx"})
    assert divide(2, (), 2, range(2)).on_devices(spec, 1) is spec
    assert jobs.without_devices({DEVICES: "5", "A": "b"}) == {"A": "b"}
    assert divide(2, (), 2, range(2)).without_devices({DEVICES: "5"}) == {DEVICES: "5"}


def test_what_this_thread_starts_gets_its_cpus_and_the_thread_keeps_its_own() -> None:
    before = os.sched_getaffinity(0)
    last = max(before)
    with on_cpus((last,)):
        assert os.sched_getaffinity(0) == {last}
    assert os.sched_getaffinity(0) == before
    with on_cpus(()):
        assert os.sched_getaffinity(0) == before
