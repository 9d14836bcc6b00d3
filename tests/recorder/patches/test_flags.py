"""Flags inside the process: they are applied, or reported as unavailable if this version lacks a name."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from detaudit.recorder.patches import flags
from detaudit.recorder.process.log import Sink


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with one function and one setting."""
    module: Any = ModuleType("fakework")
    module.__version__ = "2.1.2"
    module.calls = []
    module.use = lambda *arguments, **keywords: module.calls.append((arguments, keywords))
    module.backend = SimpleNamespace(benchmark=True)
    monkeypatch.setitem(sys.modules, "fakework", module)
    return module


def state(order: dict[str, Any], folder: Path, module: ModuleType) -> tuple[str, str]:
    flags.applier(json.dumps({"id": "a", **order}), Sink(str(folder)))(module)
    line = json.loads(next(folder.glob("*.jsonl")).read_text().splitlines()[-1])
    return line["state"], line["detail"]


def test_calls_with_and_without_keywords_and_settings(framework: Any, tmp_path: Path) -> None:
    order = {"call": {"fakework.use": [True, {"warn_only": True}]}, "set": {"fakework.backend.benchmark": False}}
    assert state(order, tmp_path, framework) == ("applied", "")
    assert framework.calls == [((True,), {"warn_only": True})]
    assert framework.backend.benchmark is False
    assert state({"call": {"fakework.use": [1, 2]}}, tmp_path, framework) == ("applied", "")
    assert framework.calls[1] == ((1, 2), {})


@pytest.mark.parametrize("missing", ["fakework.nothing", "fakework.backend.none", "fakework.no.such", "nowhere.at.all"])
@pytest.mark.parametrize("how", ["call", "set"])
def test_a_name_that_this_version_does_not_have(framework: Any, tmp_path: Path, missing: str, how: str) -> None:
    order: dict[str, dict[str, Any]] = {"call": {"fakework.use": [1]}, "set": {"fakework.backend.benchmark": False}}
    order[how] = {**order[how], missing: []}
    who = "fakework 2.1.2" if missing.startswith("fakework") else "nowhere"
    assert state(order, tmp_path, framework) == ("unavailable", f"{who} has no {missing}")
    assert framework.calls == []  # no other part of the flag is applied
    assert framework.backend.benchmark is True


def test_what_the_framework_raises(framework: Any, tmp_path: Path) -> None:
    def use() -> None:
        raise AttributeError("inside")

    framework.use = use
    assert state({"call": {"fakework.use": []}}, tmp_path, framework) == ("failed", "AttributeError: inside")
