"""Tasks on a device are kept one by one, and the command goes on where it ran out of time."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks import tasks as kept
from benchmarks.tasks import Device, Found, Report, Task, carry_out
from tests.gpu import audits


@pytest.fixture(autouse=True)
def _one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "commit", lambda: "1a2b3c4")


class Counted:
    """A task that counts how often it is done."""

    def __init__(self, found: Found | None) -> None:
        self.found, self.times = found, 0

    def __call__(self, where: Device) -> Found:
        self.times += 1
        if self.found is None:
            raise RuntimeError("broken")
        return self.found


def test_what_was_done_is_not_done_again_and_what_failed_is(tmp_path: Path) -> None:
    right, wrong, broken = Counted(Found(True, "fine")), Counted(Found(False, "off")), Counted(None)
    tasks = [Task("right", "a", right), Task("wrong", "b", wrong), Task("broken", "c", broken)]
    reports = [carry_out("Some tests", tasks, Device("cpu"), tmp_path, at_once=2) for _ in range(2)]
    assert [right.times, wrong.times, broken.times] == [1, 1, 2]
    for report in reports:
        assert [one.found.text for one in report.done] == ["fine", "off"]
        assert (report.failed, report.left) == (["wrong"], ("broken",))
    assert msgspec.json.decode((tmp_path / "some-tests.json").read_bytes(), type=Report) == reports[1]
    page = (tmp_path / "some-tests.md").read_text()
    assert "A dry run" in page
    assert "Not done, because of an error or for lack of time: broken." in page


def test_no_task_begins_that_takes_longer_than_is_left(tmp_path: Path) -> None:
    short, long = Counted(Found(None, "")), Counted(Found(None, ""))
    where = Device("cpu", ends=0.0)
    tasks = [Task("short", "", short, needs_s=float("-inf")), Task("long", "", long)]
    report = carry_out("Some tests", tasks, where, tmp_path)
    assert ([one.task for one in report.done], report.left) == (["short"], ("long",))
    assert carry_out("Some tests", tasks, replace(where, ends=float("inf")), tmp_path).left == ()


def test_every_operation_of_the_script_has_a_task() -> None:
    script = (audits.SCRIPTS / "racing.py").read_text()
    assert [name for name in audits.RACING if f'    "{name}": (' not in script] == []


@pytest.mark.full
@pytest.mark.launches
def test_digests_without_a_gpu(tmp_path: Path) -> None:
    def command(device: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "tests.gpu", "--device", device, "--out", str(tmp_path), "digests"]
        return subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[2])

    done = command("cpu")
    assert done.returncode == 0, done.stderr
    assert "0 digests differ" in done.stdout
    refused = command("cuda")
    if refused.returncode:  # there is no GPU
        assert "DEVICE=cpu" in refused.stderr
