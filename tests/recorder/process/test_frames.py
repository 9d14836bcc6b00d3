"""User code is told from packages by where it lies, also where packages lie in a folder of another name."""

import importlib.util
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from detaudit.recorder.process import frames

RECORD = """\
plain.py,sha256=x,10
wide/__init__.py,sha256=x,0
wide/data.csv,,
wide-1.0.dist-info/RECORD,,
../../bin/wide,,
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that ``pip install --target`` filled, and a user's own files beside what it put there."""
    target = tmp_path / "vendored"
    for name in ("plain.py", "own.py", "wide/__init__.py", "wide/data.csv", "wide/own.py"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).touch()
    (target / "wide-1.0.dist-info").mkdir()
    (target / "wide-1.0.dist-info" / "RECORD").write_text(RECORD)
    (target / "unrecorded-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(target)
    monkeypatch.setattr(frames, "_known", {})
    monkeypatch.setattr(frames, "_installed", {})
    return target


@pytest.fixture(name="named")
def _named(folder: Path) -> Callable[[str], str]:
    assert importlib.util.find_spec("plain") is not None  # Python lists the folder
    return lambda name: str(folder / name)


def test_what_a_package_recorded_is_no_user_code_and_what_lies_beside_it_is(named: Callable[[str], str]) -> None:
    user = [
        name for name in ("plain.py", "own.py", "wide/__init__.py", "wide/own.py") if frames.is_user_code(named(name))
    ]
    assert user == ["own.py", "wide/own.py"]
    assert frames.is_of_package(named("wide/data.csv"))
    assert frames.is_of_package(os.path.join("x", "site-packages", "wide", "own.py"))


def test_the_records_are_known_as_such_while_they_are_read(
    named: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith("RECORD"):
            seen.append(frames.is_recorded(str(arguments[0])))

    sys.addaudithook(hook)
    assert frames.is_recorded(named("plain.py"))
    assert seen == [True, True]
    frames.is_recorded(named("own.py"))
    assert len(seen) == 2  # read once


def test_a_folder_that_python_has_not_listed_has_no_packages(folder: Path) -> None:
    sys.path_importer_cache.pop(str(folder), None)
    assert frames.is_user_code(str(folder / "plain.py"))


def test_a_function_that_was_pickled_is_of_the_file_that_defines_it(tmp_path: Path) -> None:
    def here() -> types.FrameType:
        return sys._getframe()

    pickled = here.__code__.replace(co_filename="<dynamic-code>")
    script = str(tmp_path / "train.py")
    frame = types.FunctionType(pickled, {"sys": sys, "__name__": "__main__", "__file__": script})()
    assert frames.location(frame) == (script, here.__code__.co_firstlineno + 1)
    assert frames.user_frame(frame) is frame
    unknown = types.FunctionType(pickled, {"sys": sys, "__name__": "__main__"})()
    assert frames.location(unknown)[0] == "<dynamic-code>"
