"""What detaudit accepts as a configuration of Parsl, and what it changes in one. Parsl itself is not needed here."""

import os
from pathlib import Path
from types import SimpleNamespace as Fake
from typing import Any

import pytest

from detaudit.errors import ConfigError, UnknownNameError, UsageError
from detaudit.remote.engines.parsl import adapt, at_once, read_config, same_environment


def executor(**changed: Any) -> Fake:
    """Return what detaudit uses of a HighThroughputExecutor."""
    values: dict[str, Any] = {
        "provider": Fake(max_blocks=3, nodes_per_block=2, worker_init=""),
        "workers_per_node": 1,
        "launch_cmd": "process_worker_pool.py {debug} -p 0",
        "interchange_launch_cmd": ["interchange.py"],
    }
    return Fake(**{**values, **changed})


def config(**changed: Any) -> Fake:
    values: dict[str, Any] = {
        "executors": [executor()],
        "retries": 3,
        "retry_handler": max,
        "usage_tracking": 1,
        "monitoring": "hub",
        "run_dir": "runinfo",
        "initialize_logging": True,
        "strategy": "htex_auto_scale",
        "strategy_period": 5,
    }
    return Fake(**{**values, **changed})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str) -> Any:
    Path("cluster.py").write_text(text)
    return read_config("cluster.py", Fake)


def test_the_config_in_a_file_is_read() -> None:
    assert read("from types import SimpleNamespace\nconfig = SimpleNamespace(executors=[], a=1)\n").a == 1
    assert os.listdir() == ["cluster.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nconfig = Config(\n", "cluster.py:2: '(' was never closed"),
        ("x = 1\n\nconfig = x / 0\n", "cluster.py:3: ZeroDivisionError: division by zero"),
        ("def f():\n    import no_such_thing\n\nf()\n", "cluster.py:2: ModuleNotFoundError: No module named 'no_such"),
        ("raise SystemExit('no cluster')", "cluster.py:1: SystemExit: no cluster"),
        ("x = 1", "cluster.py defines no config"),
        ("config = {}", "the config in cluster.py is a dict, not a parsl.Config"),
        (
            "from types import SimpleNamespace\nconfig = SimpleNamespace(executors=[1])",
            "the config in cluster.py has a int",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_a_file_has_to_be_named_and_to_exist() -> None:
    with pytest.raises(UsageError, match="names no configuration"):
        read_config("", Fake)
    with pytest.raises(UnknownNameError, match=r"there is no file none\.py"):
        read_config("none.py", Fake)
    with pytest.raises(UnknownNameError, match=r"there is no file \."):
        read_config(".", Fake)


def test_no_job_is_repeated_and_nothing_reported() -> None:
    made = config()
    adapt(made, "mark", Path("/folder"))
    assert (made.retries, made.retry_handler) == (0, None)
    assert (made.usage_tracking, made.monitoring, made.initialize_logging) == (0, None, False)
    assert made.run_dir == "/folder"
    assert (made.strategy, made.strategy_period) == ("htex_auto_scale", 0.5)


def test_what_a_user_chose_for_a_reason_stays() -> None:
    log = object()
    made = config(run_dir="/shared/parsl", initialize_logging=log, strategy="none", strategy_period=0.1)
    adapt(made, "mark", Path("/folder"))
    assert (made.run_dir, made.initialize_logging) == ("/shared/parsl", log)
    assert (made.strategy, made.strategy_period) == ("simple", 0.1)


def test_each_process_of_parsl_has_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("process_worker_pool.py", "interchange.py"):
        (tmp_path / name).touch()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr("sys.executable", "/bin/py thon")
    made = config()
    adapt(made, "m1", tmp_path)
    (found,) = made.executors
    interchange = ["setsid", "env", "DETAUDIT_MARK=m1", "SPT_NOENV=1", "/bin/py thon", f"{tmp_path}/interchange.py"]
    assert found.interchange_launch_cmd == interchange
    pool = f"env DETAUDIT_MARK=m1 SPT_NOENV=1 '/bin/py thon' {tmp_path}/process_worker_pool.py {{debug}} -p 0"
    assert found.launch_cmd == pool


def test_commands_of_the_user_are_only_marked() -> None:
    other = executor(launch_cmd="my_pool -x", interchange_launch_cmd=["my_interchange", "-y"])
    activated = executor(provider=Fake(worker_init="conda activate env"))
    adapt(config(executors=[other, activated]), "m1", Path("/folder"))
    assert other.launch_cmd == "env DETAUDIT_MARK=m1 SPT_NOENV=1 my_pool -x"
    assert other.interchange_launch_cmd == ["setsid", "env", "DETAUDIT_MARK=m1", "SPT_NOENV=1", "my_interchange", "-y"]
    assert activated.launch_cmd == "env DETAUDIT_MARK=m1 SPT_NOENV=1 process_worker_pool.py {debug} -p 0"


def test_as_many_jobs_at_once_as_there_are_workers() -> None:
    assert at_once(config()) == 6
    assert at_once(config(executors=[executor(), executor(workers_per_node=4)])) == 30
    assert at_once(config(executors=[executor(workers_per_node=0)])) == 1


def test_the_environment_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    monkeypatch.setenv("TWO", "2")
    with same_environment():
        os.environ["ONE"] = "other"
        os.environ["THREE"] = "3"
        del os.environ["TWO"]
    assert (os.environ["ONE"], os.environ["TWO"]) == ("1", "2")
    assert "THREE" not in os.environ
