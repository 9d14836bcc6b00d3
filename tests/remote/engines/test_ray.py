"""Real Ray: a cluster of three nodes on this machine, of which parts are killed in the middle of a run."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from detaudit.errors import EngineError, UsageError
from detaudit.remote.engine import Lost, Refused
from detaudit.remote.engines.ray import RayEngine, connect
from tests.remote.engines.clusters import Cluster, cluster
from tests.remote.engines.hosts import free_port
from tests.remote.engines.jobs import (
    ENDS_IN_S,
    HOLD,
    Running,
    attempt_of,
    auditor,
    command_of,
    gone,
    is_clean_in,
    job,
    returned,
    until,
)

pytestmark = [pytest.mark.engines, pytest.mark.launches]

NODES = ("one", "two", "three")


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """A cluster of which no node is lost."""
    with cluster(PYTHONHASHSEED="0", JUNK="1") as made:
        for name in NODES:
            made.start(name)
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reach(made: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, made.variables[name])


@pytest.fixture
def engine(shared: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayEngine]:
    reach(shared, monkeypatch)
    found = connect(shared.address, "")
    try:
        yield found
    finally:
        found.close()


def test_each_job_is_one_run_and_its_archive_returns(engine: RayEngine, folder: Path) -> None:
    assert engine.at_once == 3
    for name in ("one", "two", "three", "four"):  # equal but for the name
        engine.submit(job(name, f"open({str(folder / 'began')!r}, 'a').write('x'); raise SystemExit(3)"))
    found = {one.job: one for one in returned(engine, 4)}
    assert {one.where for one in found.values()} == set(NODES)
    for name, one in found.items():
        attempt = attempt_of(one, folder)
        assert (attempt.id, attempt.run, attempt.result.exit_code) == (name, 1, 3)
    assert (folder / "began").read_text() == "xxxx"  # a run that fails is not repeated
    assert os.listdir(folder) != []
    assert not (folder / ".detaudit").exists()


def test_nothing_of_the_worker_is_in_a_run(engine: RayEngine, folder: Path) -> None:
    is_clean_in(engine, folder, "RAY", "JUNK", "SPT_NOENV", "PYTHONBREAKPOINT")


def test_a_killed_worker_loses_its_job_alone(engine: RayEngine, folder: Path) -> None:
    path, other = folder / "lost.pid", folder / "kept.pid"
    engine.submit(job("lost", HOLD, str(path)))
    engine.submit(job("kept", HOLD, str(other)))
    running, kept = Running(path), Running(other)
    running.worker.kill()
    (lost,) = returned(engine)
    assert (lost.job, type(lost.result)) == ("lost", Lost)
    running.ends()
    engine.submit(job("again", "print(1)"), frozenset({lost.where}))
    (again,) = returned(engine)
    assert isinstance(again.result, bytes)
    assert again.where != lost.where
    Path(f"{other}.go").touch()
    assert isinstance(returned(engine)[0].result, bytes)
    kept.ends()


def test_a_cancelled_run_ends_and_its_node_does_another(engine: RayEngine, folder: Path) -> None:
    paths = [folder / f"{number}.pid" for number in range(3)]
    for number, path in enumerate(paths):
        engine.submit(job(f"held-{number}", HOLD, str(path)))
    running = [Running(path) for path in paths]
    engine.submit(job("queued", HOLD, str(folder / "queued.pid")))
    engine.submit(job("next", "print(1)"))
    engine.cancel("queued")
    engine.cancel("held-1")
    running[1].ends()
    (found,) = returned(engine)
    assert found.job == "next"
    assert not (folder / "queued.pid").exists()
    engine.close()
    for one in running:
        one.ends(0.1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_stays_when_the_auditor_is_ended(shared: Cluster, engine: RayEngine, folder: Path, number: int) -> None:
    engine.close()  # it is only here for the token
    code = f"""
        import time
        from detaudit.remote.engines.ray import connect
        from tests.remote.engines.jobs import HOLD, job
        engine = connect({shared.address!r}, "")
        engine.submit(job("one", HOLD, {str(folder / "run.pid")!r}))
        try:
            while True:
                engine.poll()
                time.sleep(0.1)
        finally:
            engine.close()
    """
    with auditor(code) as process:
        running = Running(folder / "run.pid")
        (driver,) = psutil.Process(process.pid).children()
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as Ctrl-C in a terminal
        else:
            process.kill()
        process.wait(ENDS_IN_S)
        running.ends()
        gone([driver])


def test_a_killed_driver_is_a_failure_and_its_run_ends(engine: RayEngine, folder: Path) -> None:
    engine.submit(job("one", HOLD, str(folder / "run.pid")))
    running = Running(folder / "run.pid")
    (driver,) = [one for one in psutil.Process().children() if "detaudit.remote.engines.ray_driver" in command_of(one)]
    driver.kill()
    until(engine.failure, "it fails")
    assert engine.failure().startswith("Ray's driver ended (SIGKILL)")
    gone([running.training, running.job])  # Ray kills all that the worker started, so a folder may stay
    engine.close()


def test_a_node_that_is_removed_in_the_middle_loses_its_job_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster() as made:
        for name in NODES:
            made.start(name)
        reach(made, monkeypatch)
        engine = connect(made.address, "")
        try:
            paths = {number: folder / f"{number}.pid" for number in range(3)}
            for number, path in paths.items():
                engine.submit(job(f"held-{number}", HOLD, str(path)))
            running = [Running(path) for path in paths.values()]
            removed = made.processes("three")
            (held,) = [one for one in running if one.worker in removed]
            for process in removed:
                if process not in (held.job, held.training):  # they are out of reach, and have to end by themselves
                    process.kill()
            (lost,) = returned(engine)
            assert (type(lost.result), lost.where) == (Lost, "three")
            held.ends()
            for path in paths.values():
                Path(f"{path}.go").touch()
            engine.submit(job("again", "print(1)"), frozenset({"three"}))
            found = returned(engine, 3)
            assert all(isinstance(one.result, bytes) for one in found), found
            assert {one.where for one in found} == {"one", "two"}
            assert not engine.failure()
        finally:
            engine.close()


def test_a_cluster_that_loses_its_centre_is_a_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster(RAY_gcs_rpc_server_reconnect_timeout_s="5") as made:
        made.start("one", "--num-cpus=0")
        made.start("two", "--num-cpus=1", "--num-gpus=2")
        reach(made, monkeypatch)
        monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")
        engine = connect(made.address, "")
        try:
            assert engine.at_once == 1, "a head without CPUs does no jobs"
            code = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
            engine.submit(job("gpus", code))
            attempt_of(returned(engine)[0], folder)
            (path,) = (folder / "gpus").rglob("stdout.log")
            assert path.read_text() == "0,1\n", "a job has all GPUs of its node"
            engine.submit(job("one", HOLD, str(folder / "run.pid")))
            running = Running(folder / "run.pid")
            (centre,) = [one for one in made.processes("one") if one.name() == "gcs_server"]
            centre.kill()
            until(engine.failure, "it fails")
            started = time.monotonic()
        finally:
            engine.close()
        assert time.monotonic() - started < ENDS_IN_S
        gone([running.training, running.job])


def test_nodes_without_detaudit_refuse(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "empty").mkdir()
    (folder / "empty" / "detaudit.py").touch()
    with cluster(PYTHONPATH=str(folder / "empty")) as made:
        made.start("one")
        reach(made, monkeypatch)
        engine = connect(made.address, "")
        try:
            engine.submit(job("one", "print(1)"))
            (found,) = returned(engine)
        finally:
            engine.close()
    assert isinstance(found.result, Refused)
    assert found.result.message.startswith("Ray cannot do the job: ModuleNotFoundError")
    assert found.result.hint.startswith("Install detaudit")


def test_nothing_listens_there() -> None:
    with pytest.raises(EngineError, match="Connection refused"):
        connect(f"127.0.0.2:{free_port()}", "")


def test_what_listens_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.remote.engines.ray.START_S", 5.0)
    started = time.monotonic()
    with socket.create_server(("127.0.0.2", 0)) as server, pytest.raises(EngineError, match="does not answer"):
        connect(f"127.0.0.2:{server.getsockname()[1]}", "")
    assert time.monotonic() - started < 20


def test_no_node_with_a_cpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster() as made:
        made.start("one", "--num-cpus=0")
        reach(made, monkeypatch)
        with pytest.raises(UsageError, match="no node of the Ray cluster has a CPU"):
            connect(made.address, "")
