"""Real Parsl with three blocks on this machine, of which parts are killed in the middle of a run."""

import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from detaudit.errors import ConfigError
from detaudit.launch.processes import marked
from detaudit.remote.engine import Lost, Refused
from detaudit.remote.engines.parsl import ParslEngine, connect
from tests.remote.engines.jobs import (
    ENDS_IN_S,
    HOLD,
    Running,
    attempt_of,
    auditor,
    gone,
    is_clean_in,
    job,
    returned,
    until,
)

pytestmark = [pytest.mark.engines, pytest.mark.launches]

IN_PATH = f"export PATH={Path(sys.executable).parent}:$PATH"

CONFIG = """
    import os
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    os.environ["OF_CONFIG"] = "set"
    provider = LocalProvider(init_blocks=3, min_blocks=3, max_blocks=3, worker_init={init!r})
    runs = HighThroughputExecutor(
        label="runs", address="127.0.0.1", max_workers_per_node=1, cores_per_worker=0.1,
        heartbeat_period=1, heartbeat_threshold=5, provider=provider,
    )
    config = Config(executors=[runs], retries=3, retry_handler=lambda error, task: 0)
"""
"""Parsl would repeat a failed job for ever."""


def config(folder: Path, init: str = "") -> str:
    path = folder / "cluster.py"
    path.write_text(textwrap.dedent(CONFIG).format(init=init))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def engine(folder: Path) -> Iterator[ParslEngine]:
    found = connect(config(folder), "")
    try:
        yield found
    finally:
        found.close()
        assert not marked(found.mark)


def test_each_job_is_one_run_and_its_archive_returns(engine: ParslEngine, folder: Path) -> None:
    assert engine.at_once == 3
    assert "OF_CONFIG" not in os.environ
    for name in ("one", "two"):  # equal but for the name
        engine.submit(job(name, f"open({str(folder / 'began')!r}, 'a').write('x'); raise SystemExit(3)"))
    found = {one.job: one for one in returned(engine, 2)}
    assert sorted(found) == ["one", "two"]
    for name, one in found.items():
        attempt = attempt_of(one, folder)
        assert (attempt.id, attempt.run, attempt.result.exit_code) == (name, 1, 3)
        assert one.where == os.uname().nodename
    assert (folder / "began").read_text() == "xx"  # a run that fails is not repeated
    engine.close()
    assert os.listdir(folder / ".detaudit") == []


def test_nothing_of_the_worker_is_in_a_run(folder: Path) -> None:
    engine = connect(config(folder, f"{IN_PATH} PYTHONHASHSEED=0 OMP_NUM_THREADS=1 JUNK=1; renice -n 5 $$"), "")
    try:
        is_clean_in(engine, folder, "PARSL", "JUNK")
    finally:
        engine.close()


def test_a_killed_worker_or_manager_loses_its_job_alone(engine: ParslEngine, folder: Path) -> None:
    for number, part in enumerate(("worker", "manager")):
        path, other = folder / f"{part}.pid", folder / f"{part}.other.pid"
        engine.submit(job(f"{part}-lost", HOLD, str(path)))
        engine.submit(job(f"{part}-kept", HOLD, str(other)))
        running, kept = Running(path), Running(other)
        getattr(running, part).send_signal(signal.SIGKILL)
        (lost,) = returned(engine)
        assert (lost.job, type(lost.result), lost.where) == (f"{part}-lost", Lost, os.uname().nodename)
        running.ends()
        if part == "manager":
            gone(running.beside)
        Path(f"{other}.go").touch()
        assert isinstance(returned(engine)[0].result, bytes)
        kept.ends()
        engine.submit(job(f"again-{number}", "print(1)"))
        assert isinstance(returned(engine)[0].result, bytes)


def test_a_killed_interchange_is_a_failure_and_everything_ends(folder: Path) -> None:
    code = f"""
        import sys, time
        from detaudit.remote.engines.parsl import connect
        from tests.remote.engines.jobs import HOLD, Running, job, until
        from pathlib import Path
        engine = connect({config(folder)!r}, "")
        path = Path("run.pid")
        engine.submit(job("one", HOLD, str(path.resolve())))
        running = Running(path)
        engine.config.executors[0].interchange_proc.kill()
        until(engine.failure, "it fails")
        print(engine.failure())
        engine.close()
        running.ends(0.1)
        print(engine.mark)
    """
    started = time.monotonic()
    with auditor(code) as process:
        out, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    failure, mark = out.split("\n")[:2]
    assert failure.startswith("Parsl's interchange ended (SIGKILL)")
    assert not marked(mark)
    assert time.monotonic() - started < 120


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_stays_when_the_auditor_is_ended(folder: Path, number: signal.Signals) -> None:
    code = f"""
        import time
        from detaudit.remote.engines.parsl import connect
        from tests.remote.engines.jobs import HOLD, job
        engine = connect({config(folder)!r}, "")
        engine.submit(job("one", HOLD, {str(folder / "run.pid")!r}))
        print(engine.mark, flush=True)
        try:
            time.sleep(600)
        finally:
            engine.close()
    """
    with auditor(code) as process:
        assert process.stdout is not None
        mark = process.stdout.readline().strip()
        running = Running(folder / "run.pid")
        everything = psutil.Process(process.pid).children(recursive=True)
        assert {"parsl: HTEX int", "bash", "python"} <= {one.name()[:15] for one in everything}
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as Ctrl-C in a terminal
        else:
            process.kill()
        process.wait(ENDS_IN_S)
        running.ends()
        until(lambda: not marked(mark), "the processes of Parsl end", ENDS_IN_S)
        gone(everything)


def test_a_cancelled_run_ends_and_its_worker_does_another(engine: ParslEngine, folder: Path) -> None:
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


def test_workers_without_detaudit_are_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "empty" / "detaudit.py").touch()
    engine = connect(config(folder, f"{IN_PATH} PYTHONPATH={folder}/empty"), "")
    try:
        engine.submit(job("one", "print(1)"))
        (found,) = returned(engine)
    finally:
        engine.close()
    assert isinstance(found.result, Refused)
    assert found.result.message.startswith("detaudit is not there where Parsl's workers run")


def test_a_config_with_which_parsl_cannot_start(folder: Path) -> None:
    path = Path(config(folder))
    path.write_text(path.read_text() + "\nruns.encrypted, runs.cert_dir = False, '/certificates'\n")
    with pytest.raises(ConfigError, match="Parsl cannot start"):
        connect(str(path), "")
    assert os.listdir(folder / ".detaudit") == []
