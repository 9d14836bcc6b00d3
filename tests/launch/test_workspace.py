"""Working copies, and what changed in one."""

import os
import tempfile
from multiprocessing.connection import Listener
from pathlib import Path

import pytest

from detaudit import store
from detaudit.errors import WorkspaceError
from detaudit.launch import workspace
from detaudit.launch.workspace import IsolatedWorkspace, Stamps, repository_root, stamps, walk, written


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


def test_the_repository_is_found_from_a_subfolder(repository: Path) -> None:
    assert repository_root(repository / "src" / "deep") == repository
    assert repository_root(Path("/")) == Path("/")


def test_a_walk_skips_results_and_the_contents_of_environments(repository: Path) -> None:
    seen = {os.path.relpath(entry.path, repository) for entry in walk(repository, repository / "results")}
    assert seen == {".git", "a.txt", "dangling", "env", "link", "src", "src/b.txt", "src/deep"}


def test_a_walk_skips_the_results_of_another_audit_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    store.prepare(tmp_path / "src" / "others")
    seen = {os.path.relpath(entry.path, tmp_path) for entry in walk(tmp_path, tmp_path / "results")}
    assert seen == {"runs", "src"}


def test_a_copy_is_complete_and_is_removed(repository: Path) -> None:
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


@pytest.mark.parametrize("slot", ["", "2"])
def test_sockets_have_room_in_a_temporary_folder_however_long_its_path_is(repository: Path, slot: str) -> None:
    results = repository / ("r" * 100)
    space = IsolatedWorkspace(repository, repository, results).with_copy("", slot)
    temporary = Path(space.workspace.env["TMPDIR"])
    for _ in range(2):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(repository / "nowhere")  # as a process that was killed leaves it
        with space.fresh():
            assert temporary.resolve().is_relative_to(results)
            folder = tempfile.mkdtemp(prefix="pymp-", dir=temporary)
            Listener(os.path.join(folder, "listener-12345678"), "AF_UNIX").close()
        assert not temporary.is_symlink()
    other = IsolatedWorkspace(repository, repository, results).workspace.env["TMPDIR"]
    assert workspace.without_slot(f"in {temporary}", results, slot) == f"in {other}"


def test_a_short_path_of_a_temporary_folder_is_as_it_is(repository: Path) -> None:
    space = IsolatedWorkspace(repository, repository, Path("/srv/project/.detaudit/audit"))
    assert space.workspace.env["TMPDIR"] == "/srv/project/.detaudit/audit/work/tmp"


def test_paths_below_the_root_are_translated_to_the_copy(repository: Path) -> None:
    space = IsolatedWorkspace(repository, repository, repository / "results")
    copy = space.workspace.cwd
    assert space.inside(str(repository / "src")) == str(copy / "src")
    assert space.inside("src/b.txt") == "src/b.txt"
    assert space.inside("/etc/hosts") == "/etc/hosts"
    assert space.inside("") == ""


def test_a_repository_that_is_too_large_is_refused_with_its_largest_item(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "COPY_LIMIT", 20)
    monkeypatch.setattr(workspace, "_clone", lambda source, target: False)
    (repository / "src" / "b.txt").write_text("x" * 100)
    space = IsolatedWorkspace(repository, repository, repository / "results")
    with pytest.raises(WorkspaceError, match=r"/src \("), space.fresh():
        pass
    assert not (repository / "results" / "work").exists()


def test_the_size_does_not_matter_if_blocks_are_shared(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "COPY_LIMIT", 20)
    monkeypatch.setattr(
        workspace, "_clone", lambda source, target: bool(target.write_bytes(source.read_bytes())) or True
    )
    with IsolatedWorkspace(repository, repository, repository / "results").fresh():
        assert (repository / "results" / "work" / "repo" / "a.txt").read_text() == "a.txt"


def test_a_copied_link_points_into_the_copy(repository: Path) -> None:
    (repository / "absolute").symlink_to(repository / "src" / "b.txt")
    (repository / "src" / "up").symlink_to("../a.txt")
    space = IsolatedWorkspace(repository, repository, repository / "results")
    with space.fresh():
        (space.workspace.cwd / "absolute").write_text("changed")
        (space.workspace.cwd / "src" / "up").write_text("changed")
    assert (repository / "src" / "b.txt").read_text() == "src/b.txt"
    assert (repository / "a.txt").read_text() == "a.txt"


@pytest.mark.parametrize("target", ["../data", "{outside}", "src/out/data"])
def test_a_link_that_leaves_the_repository_is_refused(repository: Path, target: str) -> None:
    outside = repository.parent / "data"
    outside.mkdir()
    (repository / "src" / "out").mkdir()
    if target.startswith("src"):
        (repository / "src" / "out").rmdir()
        (repository / "src" / "out").symlink_to(repository.parent)
    (repository / "link to data").symlink_to(target.format(outside=outside))
    with (
        pytest.raises(WorkspaceError, match="outside of") as raised,
        IsolatedWorkspace(repository, repository, repository / "results").fresh(),
    ):
        pass
    assert "--isolate-root" in raised.value.hint


def test_the_search_for_written_files_is_bounded(repository: Path) -> None:
    results = repository / "results"
    whole = stamps(repository, results)
    assert whole.complete
    assert set(whole.files) == {str(repository / "a.txt"), str(repository / "src" / "b.txt")}
    part = stamps(repository, results, most=2)
    assert (set(part.files), part.complete) == ({str(repository / "a.txt")}, False)
    assert written(part, whole) == [str(repository / "src" / "b.txt")]  # it was made a moment ago
    old = Stamps(part.files, False, part.at_ns + 10**12)
    assert written(old, whole) == []
    (repository / "a.txt").write_text("changed")
    assert written(old, stamps(repository, results)) == [str(repository / "a.txt")]


def test_the_search_leaves_other_file_systems_out() -> None:
    assert not [path for path in stamps(Path("/"), Path("/nowhere"), most=20_000).files if path.startswith("/proc/")]
