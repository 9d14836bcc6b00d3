"""Working copies and what a run left for the next."""

import os
from pathlib import Path

import pytest

from detaudit.errors import WorkspaceError
from detaudit.launch import workspace
from detaudit.launch.leftovers import CarryOver
from detaudit.launch.workspace import IsolatedWorkspace, repository_root, walk


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for folder in (".git", "src/deep", ".detaudit/old", "results", "env/lib"):
        (root / folder).mkdir(parents=True)
    for file in ("a.txt", "src/b.txt", ".detaudit/old/audit.json", "results/c", "env/pyvenv.cfg", "env/lib/d"):
        (root / file).write_text(file)
    (root / "link").symlink_to("a.txt")
    (root / "dangling").symlink_to("nowhere")
    return root


def test_the_repository_is_found_from_below(repository: Path) -> None:
    assert repository_root(repository / "src" / "deep") == repository
    assert repository_root(Path("/")) == Path("/")


def test_a_walk_leaves_out_our_own_results_and_the_inside_of_environments(repository: Path) -> None:
    seen = {os.path.relpath(entry.path, repository) for entry in walk(repository, repository / "results")}
    assert seen == {".git", "a.txt", "dangling", "env", "link", "src", "src/b.txt", "src/deep"}


def test_a_copy_is_whole_and_goes_away(repository: Path) -> None:
    space = IsolatedWorkspace(repository, repository / "src", repository / "results")
    with space.fresh():
        copy = space.workspace.cwd.parent
        assert (copy / "src" / "b.txt").read_text() == "src/b.txt"
        assert os.readlink(copy / "link") == "a.txt"
        assert os.readlink(copy / "dangling") == "nowhere"
        assert (copy / "env").is_symlink()
        assert not (copy / ".detaudit").exists()
        assert Path(space.workspace.env["TMPDIR"]).is_dir()
        (copy / "a.txt").write_text("changed")
    assert not copy.exists()
    assert (repository / "a.txt").read_text() == "a.txt"
    with space.fresh():
        assert (copy / "a.txt").read_text() == "a.txt"


def test_paths_below_the_root_are_moved_into_the_copy(repository: Path) -> None:
    space = IsolatedWorkspace(repository, repository, repository / "results")
    copy = space.workspace.cwd
    assert space.inside(str(repository / "src")) == str(copy / "src")
    assert space.inside("src/b.txt") == "src/b.txt"
    assert space.inside("/etc/hosts") == "/etc/hosts"
    assert space.inside("") == ""


def test_what_is_too_large_is_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "COPY_LIMIT", 20)
    monkeypatch.setattr(workspace, "_clone", lambda source, target: False)
    (repository / "src" / "b.txt").write_text("x" * 100)
    space = IsolatedWorkspace(repository, repository, repository / "results")
    with pytest.raises(WorkspaceError, match="/src with"), space.fresh():
        pass
    assert not (repository / "results" / "work").exists()


def test_a_size_that_blocks_can_share_is_no_matter(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "COPY_LIMIT", 20)
    monkeypatch.setattr(
        workspace, "_clone", lambda source, target: bool(target.write_bytes(source.read_bytes())) or True
    )
    with IsolatedWorkspace(repository, repository, repository / "results").fresh():
        assert (repository / "results" / "work" / "repo" / "a.txt").read_text() == "a.txt"


def test_without_inotify_nothing_is_told_and_that_is_known(repository: Path) -> None:
    carry = CarryOver(repository, repository / "results")
    assert not carry.watching
    carry.before_run()
    assert carry.after_run() == ()
