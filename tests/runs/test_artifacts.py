"""Only a file that a run itself wrote is a record of it."""

import os
from pathlib import Path

import pytest

from detaudit.model.problems import ArtifactMissing, ArtifactsNotWritten
from detaudit.model.warnings import ArtifactsSkipped
from detaudit.runs import files as artifacts
from detaudit.runs.files import Files
from detaudit.runs.formats import UnusableError


def files(folder: Path, pattern: str) -> Files:
    return Files(pattern, folder, folder / "results")


def test_a_new_file_and_one_that_was_written_again(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("1")
    found = [files(tmp_path, "old"), files(tmp_path, "new")]
    (tmp_path / "old").write_text("1")
    (tmp_path / "new").write_text("1")
    assert [list(each.written().files) for each in found] == [["old"], ["new"]]


def test_a_file_that_was_replaced_or_written_with_an_old_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    found = files(tmp_path, "?")
    (tmp_path / "c").write_text("1")
    os.replace(tmp_path / "c", tmp_path / "a")
    before = (tmp_path / "b").stat().st_mtime_ns
    (tmp_path / "b").write_text("2")
    os.utime(tmp_path / "b", ns=(before, before))
    assert list(found.written().files) == ["a", "b"]


def test_a_file_from_before_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("1")
    found = files(tmp_path, "model").written()
    assert found == artifacts.Written({}, ArtifactsNotWritten(files=("model",)))


def test_files_from_before_are_listed_up_to_a_number(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.pt").write_text("1")
    found = files(tmp_path, "*.pt").written()
    assert found == artifacts.Written({}, ArtifactsNotWritten(files=("0.pt", "1.pt", "2.pt"), more=2))


def test_a_glob_takes_what_was_written_and_names_what_was_not(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.pt").write_text("1")
    found = files(tmp_path, "*.pt")
    (tmp_path / "9.pt").write_text("1")
    written = found.written()
    assert (list(written.files), written.error) == (["9.pt"], None)
    assert written.warning == ArtifactsSkipped(files=("0.pt", "1.pt", "2.pt"), more=2)


def test_globs_reach_into_folders_but_not_into_the_results_folder(tmp_path: Path) -> None:
    found = files(tmp_path, "**/*.pt")
    for name in ("a", "results", ".hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.pt").write_text("1")
    assert list(found.written().files) == ["a/x.pt"]


def test_a_run_that_works_below_the_results(tmp_path: Path) -> None:
    copy = tmp_path / "results" / "work"
    copy.mkdir(parents=True)
    found = Files("x.pt", copy, tmp_path / "results")
    (copy / "x.pt").write_text("1")
    assert list(found.written().files) == ["x.pt"]


def test_a_name_with_brackets_is_not_a_pattern_if_it_exists(tmp_path: Path) -> None:
    found = files(tmp_path, "model[1].pt")
    (tmp_path / "model[1].pt").write_text("1")
    (tmp_path / "model1.pt").write_text("1")
    assert list(found.written().files) == ["model[1].pt"]


def test_an_absolute_path(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.pt"
    found = files(tmp_path / "cwd", str(path))
    path.write_text("1")
    assert found.written().files == {str(path): path}


@pytest.mark.parametrize("pattern", ["model.pt", "*.pt"])
def test_no_such_file(tmp_path: Path, pattern: str) -> None:
    assert files(tmp_path, pattern).written() == artifacts.Written({}, ArtifactMissing(pattern=pattern, folder=False))


def test_folders_and_pipes_are_never_opened(tmp_path: Path) -> None:
    found = [files(tmp_path, "folder"), files(tmp_path, "pipe")]
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    folder, pipe = (each.written() for each in found)
    assert folder == artifacts.Written({}, ArtifactMissing(pattern="folder", folder=True))
    assert pipe == artifacts.Written({}, ArtifactMissing(pattern="pipe", folder=False))


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match="FileNotFoundError"):
        artifacts.read(tmp_path / "gone")
