"""Post-import hooks run once, after the module, and do not disturb the import."""

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from detaudit.recorder.patches import flags
from detaudit.recorder.process import imports
from detaudit.recorder.process.log import Sink


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(str(tmp_path))


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    (tmp_path / "watched_one.py").write_text("value = 1\n")
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.startswith("watched_")]:
        del sys.modules[name]


def test_the_hook_gets_the_finished_module_once(sink: Sink) -> None:
    seen = []
    imports.when_imported("watched_one", sink, lambda module: seen.append(module.value))
    importlib.import_module("watched_one")
    importlib.import_module("watched_one")
    assert seen == [1]


def test_the_hook_runs_at_once_for_an_imported_module(sink: Sink) -> None:
    seen = []
    imports.when_imported("json", sink, lambda module: seen.append(module.__name__))
    assert seen == ["json"]


def test_the_loader_keeps_its_type(sink: Sink) -> None:
    imports.when_imported("watched_one", sink, lambda module: None)
    module = importlib.import_module("watched_one")
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert "exec_module" not in vars(module.__loader__)


def test_a_failing_hook_does_not_fail_the_import(sink: Sink, tmp_path: Path) -> None:
    def fail(module: object) -> None:
        raise ZeroDivisionError

    imports.when_imported("watched_one", sink, fail)
    assert importlib.import_module("watched_one").value == 1
    assert "ZeroDivisionError" in "".join(path.read_text() for path in tmp_path.glob("*.jsonl"))


def test_a_failing_module_raises_as_before(sink: Sink, tmp_path: Path) -> None:
    (tmp_path / "watched_bad.py").write_text("raise ValueError('theirs')\n")
    imports.when_imported("watched_bad", sink, lambda module: None)
    with pytest.raises(ValueError, match="theirs"):
        importlib.import_module("watched_bad")


def test_one_loader_of_several_modules(sink: Sink, tmp_path: Path) -> None:
    """As that of pytest is, which rewrites the assertions of plugins."""
    (tmp_path / "watched_outer.py").write_text("import watched_inner, watched_one\nvalue = 2\n")
    (tmp_path / "watched_inner.py").write_text("value = 3\n")
    shared = SharedLoader(tmp_path)
    sys.meta_path.insert(0, shared)
    seen = []
    for name in ("watched_outer", "watched_one"):
        imports.when_imported(name, sink, lambda module: seen.append((module.__name__, module.value)))
    importlib.import_module("watched_outer")
    assert seen == [("watched_one", 1), ("watched_outer", 2)]
    assert "exec_module" not in vars(shared)


class SharedLoader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A finder that is the loader of each module that it finds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        file = self._folder / f"{name}.py"
        return importlib.util.spec_from_file_location(name, file, loader=self) if file.exists() else None

    def exec_module(self, module: ModuleType) -> None:
        exec((self._folder / f"{module.__name__}.py").read_text(), vars(module))


def test_a_finder_that_answers_once_is_asked_once(sink: Sink) -> None:
    class Once:
        asked = 0

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            self.asked += name == "watched_one"

    once = Once()
    imports.when_imported("watched_one", sink, lambda module: None)
    sys.meta_path.insert(0, once)
    importlib.import_module("watched_one")
    assert once.asked == 1


def test_a_script_that_replaces_the_finders(sink: Sink) -> None:
    seen: list[Any] = []
    imports.when_imported("watched_one", sink, seen.append)
    sys.meta_path = [finder for finder in sys.meta_path if finder is PathFinder]
    importlib.import_module("watched_one")
    assert len(seen) == 1


def test_flags_call_and_set_names_and_reject_unknown_ones(tmp_path: Path) -> None:
    (tmp_path / "watched_flags.py").write_text("calls = []\nsetting = 1\ndef call(*args): calls.append(args)\n")
    module = importlib.import_module("watched_flags")
    flags.apply({"id": "x", "call": {"watched_flags.call": [1, True]}, "set": {"watched_flags.setting": False}})
    assert (module.calls, module.setting) == ([(1, True)], False)
    with pytest.raises(flags.UnknownNameError):
        flags.apply({"id": "x", "set": {"watched_flags.no_such_setting": 1}})
