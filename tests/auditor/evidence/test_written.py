"""Which of the files that a run wrote are read, and by which names they are compared."""

from pathlib import Path

import numpy as np

from detaudit.auditor.evidence import written
from detaudit.auditor.evidence.written import Collector, File


def save(path: Path, value: float) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.array([value]))
    return str(path)


def names(files: tuple[File, ...]) -> list[str]:
    return [file.name for file in files]


def test_files_have_the_names_of_the_first_run(tmp_path: Path) -> None:
    collector = Collector()
    first = collector.collect(tmp_path, [save(tmp_path / "run-1" / "a.npy", 1)], ())
    second = collector.collect(tmp_path, [save(tmp_path / "run-2" / "a.npy", 1)], ())
    assert (names(first), names(second)) == (["run-1/a.npy"], ["run-1/a.npy"])
    assert second[0].path == "run-2/a.npy"
    assert written.as_training(first) == written.as_training(second)


def test_a_file_that_was_only_read_counts_as_written(tmp_path: Path) -> None:
    collector, cache = Collector(), save(tmp_path / "cache.npy", 1)
    first = collector.collect(tmp_path, [cache], ())
    assert collector.collect(tmp_path, [], [cache]) == first
    assert collector.collect(tmp_path, [], ()) == ()


def test_what_is_left_out(tmp_path: Path) -> None:
    left_out = [
        ".cache/a.npy",
        "runs/events.out.tfevents.1.host.npy",
        "marked/below/a.npy",
        "named.npy",
        "__pycache__/a.npy",
    ]
    (tmp_path / "marked").mkdir()
    (tmp_path / "marked" / "CACHEDIR.TAG").touch()
    paths = [save(tmp_path / name, 1) for name in (*left_out, "kept/a.npy")]
    assert names(Collector().collect(tmp_path, paths, (), {str(tmp_path / "named.npy")})) == ["kept/a.npy"]


def test_what_was_read_is_kept(tmp_path: Path) -> None:
    files = Collector().collect(tmp_path, [save(tmp_path / "a.npy", 1)], ())
    written.keep(files, tmp_path)
    assert written.kept(tmp_path) == files
    assert written.kept(tmp_path / "none") == ()


def test_files_elsewhere(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("cwd", "out", "tmp", "results")}
    paths = [save(folder / "a.npy", 1) for folder in folders.values()]
    env = {"TMPDIR": str(folders["tmp"])}
    found = written.elsewhere([*paths, "/dev/null", str(tmp_path / "gone")], folders["cwd"], folders["results"], env)
    assert found == [str(folders["out"] / "a.npy")]
