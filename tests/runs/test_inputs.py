"""What runs are made of: source files, data and packages, digested at the first run that has them."""

import hashlib
import os
from pathlib import Path

import pytest

from detaudit.runs import inputs
from detaudit.runs.inputs import MISSING, WRITTEN, Inputs
from detaudit.runs.log import Process
from detaudit.runs.log_records import Data, Hello, SettingsLine
from detaudit.wire import MOST_SOURCE_FILES


def process(
    *paths: Path, files: tuple[Path, ...] = (), packages: tuple[Path, ...] = (), spent: bool = False
) -> Process:
    hello = Hello(2, 7, 1, ("train.py",), "3.11", None, ())
    settings = SettingsLine({}, {}, tuple(map(str, files)), {}, tuple(map(str, packages)))
    return Process(hello, settings=settings, data=[Data(tuple(map(str, paths)), spent)])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_are_digested_by_the_names_that_people_give_them(tmp_path: Path) -> None:
    cwd, elsewhere = tmp_path / "cwd", tmp_path / "elsewhere"
    code, data = written(cwd / "train.py", "train()"), written(cwd / "data" / "a.csv", "1,2")
    other = written(elsewhere / "b.csv", "3,4")
    known = Inputs(cwd)
    known.take([process(data, other, cwd / "data", files=(code,))], cwd)
    assert known.code == {"train.py": digest("train()")}
    assert known.data == {"data/a.csv": digest("1,2"), str(other): digest("3,4")}


def test_files_of_a_copy_are_those_of_the_folder(tmp_path: Path) -> None:
    cwd, copied = tmp_path / "cwd", tmp_path / "copy"
    written(cwd / "a.csv", "1,2")
    known = Inputs(cwd)
    known.take([process(written(copied / "a.csv", "1,2"))], copied)
    assert known.data == {"a.csv": digest("1,2")}


def test_what_a_run_may_have_written_has_no_digest(tmp_path: Path) -> None:
    known, checkpoint = Inputs(tmp_path), written(tmp_path / "checkpoint.pt", "1")
    known._began = os.stat(checkpoint).st_ctime_ns  # the clock of files ticks every 4 ms: it may be behind
    known.take([process(checkpoint, tmp_path / "override.yaml")], tmp_path)
    assert known.data == {"checkpoint.pt": WRITTEN, "override.yaml": MISSING}


def test_a_temporary_file_that_is_gone_is_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    known = Inputs(tmp_path / "cwd")
    known.take([process(tmp_path / "tmp1a2b", tmp_path / "cwd" / "a.csv")], tmp_path / "cwd")
    assert known.data == {"a.csv": MISSING}


def test_data_is_as_it_was_at_the_first_run(tmp_path: Path) -> None:
    known, data = Inputs(tmp_path), written(tmp_path / "a.csv", "1")
    known._began = os.stat(data).st_ctime_ns + 1
    known.take([process(data)], tmp_path)
    data.write_text("2")
    known.take([process(data)], tmp_path)
    assert known.data == {"a.csv": digest("1")}


def test_of_large_data_size_and_times_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 4)
    files = [written(tmp_path / name, "123") for name in "ab"]
    known = Inputs(tmp_path)
    known.take([process(*files)], tmp_path)
    assert known.data is not None
    assert known.data["a"] == digest("123")
    assert known.data["b"].startswith("3:")


def test_a_file_that_the_command_names_is_data(tmp_path: Path) -> None:
    written(tmp_path / "launch.sh", "python train.py")
    written(tmp_path / "train.py", "train()")
    known = Inputs(tmp_path, ("./launch.sh", "train.py", "--lr", "0.1", "{" * 5000, "a\0b"))
    known.take([process()], tmp_path)
    assert known.data == {"./launch.sh": digest("python train.py")}


def test_data_is_unknown_if_any_process_did_not_note_all_of_it(tmp_path: Path) -> None:
    def data(*runs: list[Process]) -> dict[str, str] | None:
        known = Inputs(tmp_path)
        for one in runs:
            known.take(one, tmp_path)
        return known.data

    older = process()
    older.data = []
    unrecorded = process()
    unrecorded.settings = None
    assert data() is None
    assert data([unrecorded]) is None
    assert data([process()], [unrecorded]) == {}
    assert data([process()], [process(spent=True)], [process()]) is None
    assert data([process(), older]) is None
    many = tuple(written(tmp_path / f"{number}.py", "") for number in range(MOST_SOURCE_FILES))
    assert data([process(files=many[1:])]) == {}
    assert data([process(files=many)]) is None


def test_the_digest_of_packages_changes_with_what_is_installed(tmp_path: Path) -> None:
    def installed() -> str | None:
        known = Inputs(tmp_path)
        known.take([process(packages=(tmp_path / "site-packages", tmp_path / "absent"))], tmp_path)
        return known.installed

    assert installed() is None
    folder = tmp_path / "site-packages" / "numpy-2.0.dist-info"
    folder.mkdir(parents=True)
    first = installed()
    assert first is not None
    assert installed() == first
    os.utime(folder, (1, 1))  # the same version, installed again: it may be built differently
    again = installed()
    folder.rename(folder.with_name("numpy-2.1.dist-info"))
    assert len({first, again, installed()}) == 3
