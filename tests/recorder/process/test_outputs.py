"""Which files a process says that it wrote, and which of earlier runs it read."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP

pytestmark = pytest.mark.launches


class Place:
    """The folders of a run: ``cwd``, in which its script is, ``out``, and its temporary one."""

    def __init__(self, folder: Path) -> None:
        self.cwd, self.out, self.live = folder / "cwd", folder / "out", folder / "live"
        self.temporary = folder / "temporary"
        for one in (self.cwd, self.out, self.temporary, self.live / "logs"):
            one.mkdir(parents=True)
        self.known: list[Path] = []
        self.searched: list[Path] = []

    def run(self, script: str, cwd: Path | None = None) -> list[dict[str, Any]]:
        """Run a script, and return the lines about files."""
        parts = [[str(self.cwd), *map(str, self.searched)], ["/.triton/cache/"], map(str, self.known)]
        told = b"\0\0".join(b"\0".join(map(os.fsencode, part)) for part in parts)
        (self.live / wire.KNOWN_FILES).write_bytes(told)
        head = f"import os, shutil, sqlite3\nOUT, TMP = {str(self.out)!r}, {str(self.temporary)!r}\n"
        (self.cwd / "train.py").write_text(head + textwrap.dedent(script))
        env = {**os.environ, "PYTHONPATH": str(BOOTSTRAP), "TMPDIR": str(self.temporary)}
        env |= {wire.ENV_LOGS: str(self.live / "logs"), wire.ENV_MARK: "m"}
        subprocess.run([sys.executable, str(self.cwd / "train.py")], cwd=cwd or self.cwd, env=env, check=True)
        logs = sorted((self.live / "logs").glob("*.jsonl"))
        lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        assert not [line for line in lines if line["k"] == "trouble"]
        return [line for line in lines if line["k"] in ("wrote", "left", "read", "data")]

    def wrote(self, script: str, **options: Any) -> list[str]:
        return [os.path.relpath(line["path"], self.out) for line in self.run(script, **options)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("open(OUT + '/a', 'w')", ["a"]),
        ("os.open(OUT + '/a', os.O_CREAT | os.O_RDWR)", ["a"]),
        ("open('t', 'w'); os.replace('t', OUT + '/a')", ["a"]),
        ("open('t', 'w'); os.rename('t', OUT + '/a')", ["a"]),
        ("open('t', 'w'); shutil.move('t', OUT + '/a')", ["a"]),
        ("open('t', 'w'); shutil.copyfile('t', OUT + '/a')", ["a"]),
        ("open('t', 'w'); os.link('t', OUT + '/a')", ["a"]),
        ("f = os.open(OUT, 0); open('t', 'w'); os.rename('t', 'a', dst_dir_fd=f)", ["a"]),
        ("sqlite3.connect(OUT + '/a')", ["a"]),
        ("sqlite3.connect('file:' + OUT + '/a%20b?mode=rwc', uri=True)", ["a b"]),
        ("sqlite3.connect(':memory:')", []),
        ("os.mkdir(OUT + '/d'); open(OUT + '/d/a', 'w')", ["d"]),
        ("os.makedirs(OUT + '/d/e'); os.makedirs(OUT + '/d/e', exist_ok=True)", ["d"]),
        ("os.mkdir('d'); os.rename('d', OUT + '/d')", ["d"]),
        ("os.symlink(OUT, 'link'); open('link/a', 'w')", ["a"]),
        ("os.chdir(OUT); open('a', 'w')", ["a"]),
        ("open('a', 'w'); open('/dev/null', 'w'); os.makedirs(OUT + '/.triton/cache/x')", [".triton"]),
        ("open(OUT + '/m.pyc', 'wb'); open(OUT + '/a', 'rb') if 0 else None", []),
        ("f = open(TMP + '/a', 'w'); os.remove(TMP + '/a')", []),
        ("open(TMP + '/a', 'w')", ["../temporary/a"]),
    ],
)
def test_what_is_written_elsewhere_has_a_line(place: Place, script: str, paths: list[str]) -> None:
    assert place.wrote(script) == paths


def test_a_line_says_what_was_there_before(place: Place) -> None:
    (place.cwd / "old").write_text("12")
    (place.out / "log").write_text("123")
    lines = place.run("""
        open('old', 'w')
        open('new', 'w')
        open(OUT + '/log', 'a')
        open(OUT + '/log', 'a')
        open(OUT + '/log', 'w')
        open(OUT + '/new', 'a')
    """)
    found = [(Path(line["path"]).name, line.get("append", False), line.get("size", -1)) for line in lines]
    assert found == [("old", False, 2), ("log", True, 3), ("log", False, -1), ("new", True, -1)]


def test_a_file_that_is_removed_and_written_again_existed_before(place: Place) -> None:
    (place.out / "a").write_text("12")
    (line,) = place.run("os.remove(OUT + '/a'); open(OUT + '/a', 'w')")
    assert line["size"] >= 0


def test_a_child_in_another_folder_says_what_it_writes_there(place: Place) -> None:
    assert place.wrote("open('a', 'w')", cwd=place.out) == ["a"]


def test_dropped_paths_do_not_spend_the_quota(place: Place) -> None:
    lines = place.run("""
        for number in range(11000):
            os.close(os.open(f'/dev/null', os.O_WRONLY))
            os.close(os.open(f'{number}.txt', os.O_WRONLY | os.O_CREAT))
        open(OUT + '/a', 'w')
    """)
    assert [Path(line["path"]).name for line in lines] == ["a"]


SMALL_QUOTA = """
    import sys
    (outputs,) = [module for name, module in sys.modules.items() if name.endswith(".recorder.process.children")]
    outputs._MOST = 10
"""


@pytest.mark.parametrize(("path", "mode"), [("{OUT}/{number}.txt", "w"), ("{number}.txt", "a")])
def test_that_the_quota_is_spent_is_said_once(place: Place, path: str, mode: str) -> None:
    for number in range(20):
        (place.cwd / f"{number}.txt").write_text("1")
    lines = place.run(
        SMALL_QUOTA
        + f"""
    for number in range(20):
        open(f'{path}', '{mode}')
    """
    )
    assert [line.get("spent", False) for line in lines] == [False] * 10 + [True]
    assert not lines[-1]["seen"]


def test_what_the_auditor_sees_too_does_not_spend_the_quota_of_other_files(place: Place) -> None:
    (place.out / "made").mkdir()
    place.searched = [place.out / "made"]
    for number in range(20):
        (place.cwd / f"{number}.txt").touch()
        (place.out / "made" / f"{number}.txt").touch()
    lines = place.run(
        SMALL_QUOTA
        + """
    for number in range(20):
        open(f'{number}.txt', 'w')
        open(f'{OUT}/made/{number}.txt', 'w')
        open(f'{OUT}/made/new-{number}.txt', 'w')
    for number in range(10):
        open(f'{OUT}/{number}.txt', 'w')
    """
    )
    said = [line for line in lines if line.get("spent")]
    assert [line["seen"] for line in said] == [True]
    assert sum(Path(line["path"]).parent == place.out for line in lines) == 10
    assert not [line for line in lines if "new" in line["path"]]


def test_reads_of_earlier_runs_have_a_line_when_the_quota_is_spent(place: Place) -> None:
    (place.cwd / "left").write_text("1")
    place.known = [place.cwd / "left"]
    for number in range(20):
        (place.cwd / f"{number}.txt").touch()
    lines = place.run(
        SMALL_QUOTA
        + """
    for number in range(20):
        open(f'{number}.txt', 'w')
    open('left')
    """
    )
    assert [Path(line["path"]).name for line in lines if line["k"] == "read"] == ["left"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("open(OUT + '/a').read()", 3),
        ("import pathlib; pathlib.Path(OUT, 'a').read_text()", 3),
        ("os.symlink(OUT + '/a', 'link'); open('link')", 0),
        ("os.symlink(OUT, 'link'); open('link/a')", 3),
        ("open(OUT + '/a', 'r+')", 3),
        ("sqlite3.connect(OUT + '/a')", 3),
        ("open(OUT + '/a', 'w'); open(OUT + '/a')", None),
        ("open('t', 'w'); os.replace('t', OUT + '/a'); open(OUT + '/a')", None),
        ("open(OUT + '/a', 'a')", None),
        ("os.stat(OUT + '/a')", None),
    ],
)
def test_reads_of_earlier_runs_have_a_line(place: Place, script: str, expected: int | None) -> None:
    (place.out / "a").write_text("")
    place.known = [place.out / "a"]
    reads = [line for line in place.run(script) if line["k"] == "read"]
    if expected is None or expected == 0:  # by another name, only inotify sees it
        assert reads == []
    else:
        (read,) = reads
        assert (read["path"], read["file"], read["line"]) == (str(place.out / "a"), str(place.cwd / "train.py"), 3)


def test_files_that_are_read_have_a_line_if_that_is_asked_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.out / "a").write_text("1")
    (place.out / "link").symlink_to(place.out / "a")
    sqlite3.connect(place.out / "base").execute("create table t (x)").connection.close()
    script = """
    import pathlib, json.tool
    open(OUT + '/a'); open(OUT + '/a', 'rb'); os.open(OUT + '/link', os.O_RDONLY); sqlite3.connect(OUT + '/base')
    open('own', 'w').close(); open('own'); open('/proc/self/stat'); open(os.__file__)
    os.mkdir(OUT + '/made'); pathlib.Path(OUT, 'made', 'b').write_text(''); open(OUT + '/made/b')
    try:
        open(OUT + '/missing')
    except OSError:
        pass
    """
    assert not [line for line in place.run(script) if line["k"] == "data"]
    shutil.rmtree(place.out / "made")
    (place.cwd / "own").unlink()
    monkeypatch.setenv(wire.ENV_READS, "1")
    read = {os.path.basename(line["path"]) for line in place.run(script) if line["k"] == "data"}
    assert read == {"a", "base", "train.py"}
