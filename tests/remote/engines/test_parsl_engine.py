"""The engine of Parsl without Parsl: what becomes of a job, and that closing ends whatever is broken."""

import atexit
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace as Fake
from typing import Any

import msgspec
import pytest

from detaudit.errors import UsageError
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.engines import parsl
from detaudit.remote.engines.in_worker import Done, do_job
from detaudit.remote.engines.parsl import ParslEngine, connect
from detaudit.remote.worker import frame

JOB = Job(id="j1", run=1, plan=b"plan", code=b"code", digest="d")


class WorkerLostError(Exception):
    """Stands in for Parsl's own error."""

    hostname = "node2"


class FakeKernel:
    """Takes jobs as Parsl's DataFlowKernel does; the test ends them."""

    def __init__(self, folder: Path, cleanup: Callable[[], None]) -> None:
        self.run_dir, self.cleanup = str(folder), cleanup
        self.futures: list[Future[Done]] = []
        self.calls: list[tuple[object, tuple[Any, ...]]] = []

    def submit(self, function: object, *, app_args: tuple[Any, ...], **options: Any) -> "Future[Done]":
        assert options == {"executors": "all", "cache": False, "ignore_for_cache": [], "app_kwargs": {}}
        self.calls.append((function, app_args))
        self.futures.append(Future())
        return self.futures[-1]

    def atexit_cleanup(self) -> None:
        """Called when Python ends, unless that is taken back."""


class Setup:
    """An engine, and the parts of Parsl that it uses."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.happened: list[str] = []
        self.interchange = Fake(poll=lambda: None)
        provider = Fake(max_blocks=3, cancel=lambda blocks: self.happened.append(f"cancel {blocks}"))
        self.executor = Fake(
            interchange_proc=self.interchange, bad_state_is_set=False, executor_exception=None, provider=provider,
            blocks_to_job_id={"0": "slurm-7"},
        )  # fmt: skip
        self.folder = folder / "parsl-x"
        self.folder.mkdir()
        self.kernel = FakeKernel(self.folder, lambda: self.happened.append("cleanup"))
        monkeypatch.setattr(parsl, "_end_processes", lambda mark, reaper: self.happened.append(f"end {mark}"))
        monkeypatch.setattr(parsl, "CLOSE_S", 0.2)
        config, reaper = Fake(executors=[self.executor]), Fake()
        lost = (WorkerLostError,)
        self.engine = ParslEngine(self.kernel, config, lost, "m", reaper, self.folder, 3)  # type: ignore[arg-type]

    def came_of(self, job: Job, result: Done | Exception) -> Returned:
        self.engine.submit(job)
        assert self.engine.poll() == []
        future = self.kernel.futures[-1]
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
        (found,) = self.engine.poll()
        assert self.engine.poll() == []
        return found

    def flag(self, job: str) -> Path:
        return self.folder / f"cancelled-{job}"


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    return Setup(tmp_path, monkeypatch)


def test_a_job_travels_whole_and_its_archive_returns(setup: Setup) -> None:
    found = setup.came_of(JOB, Done("node1", 0, b"login banner\n" + frame(b"Aarchive"), ""))
    assert found == Returned("j1", b"archive", "node1")
    [(function, (data, flag))] = setup.kernel.calls
    assert function is do_job
    assert msgspec.msgpack.decode(data, type=Job) == JOB
    assert flag == str(setup.flag("j1"))


@pytest.mark.parametrize(
    ("done", "result"),
    [
        (Done("n", 0, frame(b"N" + msgspec.msgpack.encode(Refused("no", "hint"))), ""), Refused("no", "hint")),
        (Done("n", 0, frame(b"Aarchive")[:-1], ""), Lost("a job was ended (exit status 0)")),
        (Done("n", -9, b"", ""), Lost("a job was ended (SIGKILL)")),
        (Done("n", 130, b"", ""), Lost("a job was ended (exit status 130)")),
        (Done("n", 1, b"", "ImportError: x"), Refused("a job failed (exit status 1): ImportError: x")),
    ],
)
def test_what_a_process_left_is_judged(setup: Setup, done: Done, result: Lost | Refused) -> None:
    assert setup.came_of(JOB, done) == Returned("j1", result, "n")


def test_a_lost_job_is_also_ended_in_case_its_worker_is_only_out_of_reach(setup: Setup) -> None:
    assert setup.came_of(JOB, WorkerLostError("loss of\nworker 0")) == Returned("j1", Lost("loss of worker 0"), "node2")
    assert setup.flag("j1").exists()


def test_other_errors_would_come_again(setup: Setup) -> None:
    found = setup.came_of(JOB, ValueError("bad")).result
    assert found == Refused("Parsl cannot do the job: ValueError: bad")
    missing = setup.came_of(JOB, ModuleNotFoundError("No module named 'detaudit'", name="detaudit")).result
    assert isinstance(missing, Refused)
    assert missing.hint.startswith("Install detaudit")


def test_a_cancelled_job_is_ended_by_a_file_and_nothing_is_returned_of_it(setup: Setup) -> None:
    setup.engine.submit(JOB)
    setup.engine.cancel("j1")
    setup.engine.cancel("unknown")
    setup.kernel.futures[0].set_result(Done("n", 0, frame(b"Aarchive"), ""))
    assert setup.engine.poll() == []
    assert [path.name for path in setup.folder.iterdir()] == ["cancelled-j1"]


def test_a_worker_begins_no_job_that_was_cancelled(tmp_path: Path) -> None:
    (tmp_path / "cancelled").touch()
    assert do_job(b"", str(tmp_path / "cancelled")).status == 130


def test_an_interchange_that_ended_is_a_failure(setup: Setup) -> None:
    assert setup.engine.failure() == ""
    setup.interchange.poll = lambda: -9
    assert setup.engine.failure() == f"Parsl's interchange ended (SIGKILL); its log is in {setup.folder}"


def test_blocks_that_all_fail_are_a_failure_and_their_jobs_are_lost(setup: Setup) -> None:
    setup.executor.bad_state_is_set, setup.executor.executor_exception = True, Exception("no\nsuch partition")
    assert setup.engine.failure() == "Parsl gave up: no such partition"
    assert setup.came_of(JOB, ValueError("bad state")).result == Lost("bad state")


def test_closing_ends_jobs_blocks_and_processes_once(setup: Setup) -> None:
    setup.engine.submit(JOB)
    setup.engine.close()
    setup.engine.close()
    assert setup.happened == ["cleanup", "end m"]
    assert not setup.folder.exists()


def test_without_an_interchange_the_scheduler_is_asked_to_end_the_blocks(setup: Setup) -> None:
    setup.interchange.poll = lambda: 1
    setup.engine.submit(JOB)
    setup.engine.close()
    assert setup.happened == ["cancel ['slurm-7']", "end m"]
    assert setup.executor.provider.max_blocks == 0
    assert setup.flag("j1").exists()  # and the logs of Parsl are kept


def test_parsl_keeps_blocks_after_a_failure(setup: Setup) -> None:
    setup.executor.bad_state_is_set = True
    setup.engine.close()
    assert setup.happened == ["cleanup", "cancel ['slurm-7']", "end m"]


@pytest.mark.parametrize("cleanup", [lambda: time.sleep(60), lambda: 1 / 0])
def test_closing_takes_a_bounded_time_whatever_is_broken(setup: Setup, cleanup: Callable[[], None]) -> None:
    setup.kernel.cleanup = cleanup
    started = time.monotonic()
    setup.engine.close()
    assert time.monotonic() - started < 5
    assert setup.happened == ["end m"]


def test_nothing_is_left_to_be_done_when_python_ends(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_back: list[object] = []
    monkeypatch.setattr(atexit, "unregister", taken_back.append)
    setup.engine.close()
    assert taken_back == [setup.kernel.atexit_cleanup]


def test_without_parsl_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "parsl", None)
    monkeypatch.setitem(sys.modules, "parsl.config", None)
    with pytest.raises(UsageError) as caught:
        connect("cluster.py", "")
    assert "pip install 'detaudit[parsl]'" in caught.value.hint


@pytest.mark.launches
def test_parsl_is_imported_for_this_engine_alone() -> None:
    code = "import sys; import detaudit.remote.engines.parsl; sys.exit('parsl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
