"""What is put aside comes back however its block ends, whatever has taken its name; in use, it is not touched."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from detaudit.launch.put_aside import JOURNAL, StateInUseError, put_aside, recover, restore

pytestmark = pytest.mark.launches


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "data" / "made").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_text("a")
    (tmp_path / "data" / "made" / "b.txt").write_text("b")
    return tmp_path


def paths(place: Path) -> list[str]:
    return [str(place / "data" / "a.txt"), str(place / "data" / "made"), str(place / "data" / "gone.txt")]


def test_it_is_gone_within_the_block_and_what_is_written_there_too(place: Path) -> None:
    before = tree(place)
    with put_aside(paths(place), place / "out", "m"):
        assert not (place / "data" / "a.txt").exists()
        assert not (place / "data" / "made").exists()
        assert (place / "out" / JOURNAL).exists()
        (place / "data" / "a.txt").mkdir()
        (place / "data" / "a.txt" / "x").write_text("new")
        (place / "data" / "made").write_text("new")
    assert tree(place) == before


def test_an_error_puts_it_back(place: Path) -> None:
    before = tree(place)
    with pytest.raises(KeyboardInterrupt), put_aside(paths(place), place / "out", "m"):
        raise KeyboardInterrupt
    assert tree(place) == before


def test_if_one_cannot_be_renamed_all_stay(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rename = tree(place), os.rename

    def refuses(source: str, target: str) -> None:
        if source.endswith("made"):
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuses)
    with pytest.raises(StateInUseError, match="made: cannot be renamed"), put_aside(paths(place), place / "out", "m"):
        pass
    assert tree(place) == before


def killed(place: Path, **changed: object) -> dict[str, str]:
    """Leave the folder as a detaudit does that is killed within the block; return what was there before."""
    before = tree(place)
    code = f"""
import os, pathlib
from detaudit.launch.put_aside import put_aside
block = put_aside({paths(place)!r}, pathlib.Path({str(place / "out")!r}), "m")
block.__enter__()
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    journal = msgspec.json.decode((place / "out" / JOURNAL).read_bytes())
    (place / "out" / JOURNAL).write_bytes(msgspec.json.encode(journal | changed))
    return before


def test_after_a_kill_the_next_command_puts_it_back(place: Path) -> None:
    before = killed(place)
    assert (place / "data" / "a.txt").exists() is False
    assert sorted(recover(place / "next")) == sorted(paths(place)[:2])
    assert tree(place) == before
    assert recover(place / "next") == ()


def test_what_somebody_wrote_there_meanwhile_is_kept_under_another_name(place: Path) -> None:
    before = killed(place)
    (place / "data" / "a.txt").write_text("mine")
    recover(place / "next")
    found = tree(place)
    (kept,) = [name for name in found if "replaced" in name]
    assert (found.pop(kept), found) == ("mine", before)


def test_what_a_living_detaudit_put_aside_stays(place: Path) -> None:
    alive = psutil.Process()
    killed(place, pid=alive.pid, started=alive.create_time())
    assert recover(place / "next") == ()
    restore(place / "out" / JOURNAL)


def test_what_another_machine_put_aside_stays(place: Path) -> None:
    killed(place, host="elsewhere")
    assert recover(place / "next") == ()
    restore(place / "out" / JOURNAL)


def test_a_broken_journal_is_no_error(place: Path) -> None:
    (place / "out" / JOURNAL).write_bytes(b'{"host": 3')
    assert recover(place / "next") == ()
    assert restore(place / "out" / JOURNAL) == ()


@pytest.mark.parametrize("how", ["opened", "mapped", "worked in"])
def test_what_is_in_use_is_not_touched(place: Path, how: str) -> None:
    program = {
        "opened": "f = open('made/b.txt')",
        "mapped": "import mmap; f = open('a.txt', 'rb'); m = mmap.mmap(f.fileno(), 0, access=1); f.close()",
        "worked in": "import os; os.chdir('made')",
    }[how]
    code = f"{program}\nprint(flush=True)\nimport time; time.sleep(600)"
    before = tree(place)
    with subprocess.Popen([sys.executable, "-c", code], cwd=place / "data", stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            with (
                pytest.raises(StateInUseError, match=f"process {other.pid} "),
                put_aside(paths(place), place / "out", "m"),
            ):
                pass
        finally:
            other.kill()
    assert tree(place) == before
