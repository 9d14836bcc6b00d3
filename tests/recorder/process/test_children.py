"""A child with an environment of its own gets back what loads the recorder, and nothing else."""

import os
import types
from collections.abc import Callable
from typing import Any

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from detaudit.recorder.process import children


class Recorder:
    def __init__(self) -> None:
        self.sink = self

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        function()


class Popen:
    """Has the one method of subprocess.Popen that starts a program; it returns the variables."""

    def _execute_child(self, *args: Any) -> Any:
        return args[6]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Return a function that starts a child with these variables, and returns those that it gets."""
    monkeypatch.setenv(wire.ENV_LOGS, "/logs")
    monkeypatch.setenv(wire.ENV_MARK, "mark")
    monkeypatch.setenv("PYTHONPATH", str(BOOTSTRAP))
    subprocess = types.SimpleNamespace(Popen=type("Popen", (Popen,), {}))
    children.watch_subprocess(subprocess, Recorder())  # type: ignore[arg-type]
    return lambda env: subprocess.Popen()._execute_child(["python"], None, None, True, (), None, env, None, 0)


def test_an_environment_of_its_own_gets_the_recorder_back(seen: Callable[[Any], Any]) -> None:
    assert seen({"A": "1"}) == {"A": "1", wire.ENV_LOGS: "/logs", wire.ENV_MARK: "mark", "PYTHONPATH": str(BOOTSTRAP)}


def test_pythonpath_is_extended_and_bytes_are_understood(seen: Callable[[Any], Any]) -> None:
    assert seen({b"PYTHONPATH": b"lib"})["PYTHONPATH"] == f"{BOOTSTRAP}{os.pathsep}lib"
    given = {**os.environ, "PYTHONPATH": "."}
    assert seen(given)["PYTHONPATH"] == f"{BOOTSTRAP}{os.pathsep}."
    assert given["PYTHONPATH"] == "."


def test_a_script_that_changes_its_own_variables_keeps_the_recorder(
    seen: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen(None) is None
    monkeypatch.delenv(wire.ENV_LOGS)
    monkeypatch.setenv("PYTHONPATH", "lib")
    found = seen(None)
    assert (found[wire.ENV_LOGS], found["PYTHONPATH"]) == ("/logs", f"{BOOTSTRAP}{os.pathsep}lib")
    assert wire.ENV_LOGS not in os.environ


def test_an_environment_with_the_recorder_is_passed_on_as_it_is(seen: Callable[[Any], Any]) -> None:
    given = dict(os.environ)
    assert seen(given) is given
