"""What the table of frameworks names is there, and a guard passes on what is meant for the script."""

import ast
import signal
from pathlib import Path
from types import FrameType

import pytest

from detaudit import wire
from detaudit.recorder.frameworks import HOOKS, UNFOLLOWED
from detaudit.recorder.process.guard import Guard

RECORDER = Path(wire.__file__).parent / "recorder"


def defined(module: str) -> set[str]:
    """Return the names that a module of the recorder defines."""
    tree = ast.parse((RECORDER / (module.replace(".", "/") + ".py")).read_text())
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {
        *[node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))],
        *[target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)],
    }


@pytest.mark.parametrize("name", wire.FRAMEWORKS)
def test_what_the_table_names_is_defined(name: str) -> None:
    framework = wire.FRAMEWORKS[name]
    for module in framework.hooks.values():
        assert "install" in defined(f"frameworks.{module}")
    for _, module, function in framework.first:
        assert function in defined(module)
    if framework.operations:
        assert "install" in defined(framework.operations)
    if framework.probes:
        assert {"takes", "Probes"} <= defined(framework.probes)


def test_each_module_is_hooked_once() -> None:
    hooked = [module for framework in wire.FRAMEWORKS.values() for module in framework.hooks]
    assert sorted([*hooked, *UNFOLLOWED]) == sorted(HOOKS)


def test_a_failure_in_a_guard_is_noted_and_goes_no_further() -> None:
    noted: list[str] = []
    with Guard(lambda where, error: noted.append(f"{where}: {error}"), "step"):
        raise ValueError("no")
    assert noted == ["step: no"]


def test_an_interruption_in_a_guard_reaches_the_script() -> None:
    noted: list[str] = []
    with pytest.raises(KeyboardInterrupt), Guard(lambda where, _: noted.append(where), "step"):
        raise KeyboardInterrupt
    assert noted == []


def test_what_a_signal_handler_raises_in_a_guard_reaches_the_script() -> None:
    def timeout(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("too long")

    noted: list[str] = []
    before = signal.signal(signal.SIGUSR1, timeout)
    try:
        with pytest.raises(TimeoutError), Guard(lambda where, _: noted.append(where), "step"):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert noted == []
