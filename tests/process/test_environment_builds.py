"""Environments are locked, built beside their place, used again and removed; a fake uv stands for the real one."""

import os
import stat
from pathlib import Path

import pytest

from detaudit.environments import build
from detaudit.errors import UsageError, WorkspaceError

UV = """#!/bin/sh
echo "$@" >> "$UV_SAID"
case "$1 $2" in
  "pip compile")
    [ -z "$UV_NO_LOCK" ] || { echo "No solution found: https://user:secret@index/" >&2; exit 1; }
    for word in "$@"; do [ "$last" = --output-file ] && target=$word; last=$word; done
    cat > "$target" <<END
lock-version = "1.0"
[[packages]]
name = "small"
version = "1.0"
wheels = [{ url = "https://index/small-1.0-py3-none-any.whl", size = 2500000, hashes = { sha256 = "${UV_HASH:-1}" } }]
[[packages]]
name = "other"
version = "2.0"
wheels = [{ url = "https://index/other-2.0-py3-none-any.whl", hashes = { sha256 = "2" } }]
END
    ;;
  "pip sync")
    [ -z "$UV_NO_SYNC" ] || { echo "disk full" >&2; exit 1; } ;;
  *)
    for word in "$@"; do target=$word; done
    mkdir -p "$target/bin" && touch "$target/bin/python" ;;
esac
"""


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the fake uv was asked, a line each."""
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(UV)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", os.pathsep.join([str(program.parent), os.environ["PATH"]]))
    monkeypatch.setenv("UV_SAID", str(tmp_path / "said"))
    monkeypatch.setenv("DETAUDIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "old.txt").write_text("small\n")
    return tmp_path / "said"


def locked(tmp_path: Path, *, builds: bool = False) -> build.Locked:
    return build.lock(tmp_path / "old.txt", "python3", tmp_path / "lock", builds=builds)


def test_what_is_locked_is_built_once_with_hashes_and_wheels_only(said: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    lock = locked(tmp_path)
    python = build.build(lock, "python3", lines.append, builds=False)
    assert python == tmp_path / "cache" / "environments" / lock.key / "bin" / "python"
    assert python.exists()
    assert lines == [
        f"building an environment in {python.parents[1]}: 2 packages, 2 MB at most, 1 of them of unknown size"
    ]
    compiled, made, synced = said.read_text().splitlines()
    assert "--only-binary :all:" in compiled
    assert "--relocatable" in made
    assert "--require-hashes" in synced
    assert "--only-binary :all:" in synced
    assert build.build(locked(tmp_path), "python3", lines.append, builds=False) == python
    assert len(lines) == 1
    assert [folder.name for folder, _ in build.environments()] == [lock.key]


def test_builds_are_allowed_by_name(said: Path, tmp_path: Path) -> None:
    build.build(locked(tmp_path, builds=True), "python3", print, builds=True)
    assert "--only-binary" not in said.read_text()


def test_other_hashes_are_another_environment(said: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = locked(tmp_path).key
    assert locked(tmp_path).key == first
    monkeypatch.setenv("UV_HASH", "3")
    assert locked(tmp_path).key != first


def test_a_build_that_fails_leaves_nothing(said: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_NO_SYNC", "1")
    with pytest.raises(WorkspaceError, match="disk full"):
        build.build(locked(tmp_path), "python3", print, builds=False)
    assert build.environments() == []


def test_what_a_killed_build_left_is_removed_by_the_next(said: Path, tmp_path: Path) -> None:
    left = build.cache() / "making-999999999-0123"
    left.mkdir(parents=True)
    under_way = build.cache() / f"making-{os.getpid()}-0123"
    under_way.mkdir()
    lock = locked(tmp_path)
    broken = build.cache() / lock.key
    (broken / "bin").mkdir(parents=True)
    (broken / "bin" / "python").symlink_to("/nowhere")
    assert build.build(lock, "python3", print, builds=False).exists()
    assert not left.exists()
    assert under_way.exists()


def test_requirements_without_a_solution_are_an_error(
    said: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_NO_LOCK", "1")
    with pytest.raises(UsageError, match=r"old\.txt cannot be locked: No solution") as failure:
        locked(tmp_path)
    assert "secret" not in failure.value.message
    assert "--allow-builds" in failure.value.hint
    with pytest.raises(UsageError, match="no file of requirements"):
        build.lock(tmp_path / "none.txt", "python3", tmp_path / "lock", builds=False)


def test_without_uv_requirements_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(UsageError, match="needs uv") as failure:
        build.uv()
    assert "pipx install uv" in failure.value.hint


def test_all_environments_are_removed(said: Path, tmp_path: Path) -> None:
    build.build(locked(tmp_path), "python3", print, builds=False)
    build.clear()
    assert build.environments() == []
    build.clear()
