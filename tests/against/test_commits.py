"""The files of another commit: its submodules, files of LFS, and what git ignores; nothing else is touched."""

import hashlib
from pathlib import Path

import pytest

from detaudit.against.commits import MERGE_BASE, Export, changed, differences, ignored, resolve
from detaudit.errors import UsageError
from detaudit.model.warnings import FilesOfLfsMissing, SubmoduleMissing
from tests.against.measure import git, write

pytestmark = pytest.mark.launches

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 9\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, {"train.py": "1\n", "data/a.txt": "a", ".gitignore": "*.so\nbuilt/\n"})
    return folder


def commit(folder: Path, files: dict[str, str]) -> None:
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=one")


def exported(folder: Path, ref: str, target: Path) -> Export:
    target.mkdir()
    export = Export(resolve(folder, ref), target, target.parent)
    export.write()
    return export


def test_the_files_of_a_commit_whatever_attributes_say(repository: Path, tmp_path: Path) -> None:
    commit(repository, {"train.py": "2\n", ".gitattributes": "train.py export-ignore\n"})
    write(repository, {"train.py": "3\n", "new.py": ""})
    before = (repository / ".git" / "index").read_bytes()
    exported(repository, "HEAD", tmp_path / "now")
    exported(repository, "HEAD~1", tmp_path / "then")
    assert [(tmp_path / side / "train.py").read_text() for side in ("now", "then")] == ["2\n", "1\n"]
    assert not (tmp_path / "now" / "new.py").exists()
    assert (repository / ".git" / "index").read_bytes() == before
    assert changed(repository) == ("new.py", "train.py")
    assert differences(resolve(repository, "HEAD~1")) == (".gitattributes", "new.py", "train.py")


def test_what_is_the_same_has_the_same_times(repository: Path, tmp_path: Path) -> None:
    commit(repository, {"train.py": "2\n"})
    exported(repository, "HEAD~1", tmp_path / "then")
    times = [(folder / "data" / "a.txt").stat().st_mtime_ns for folder in (repository, tmp_path / "then")]
    assert times[0] == times[1]


def test_ignored_files_and_folders(repository: Path) -> None:
    write(repository, {"k.so": "", "built/x/y.o": "", "new.py": ""})
    assert ignored(repository) == (frozenset({"k.so"}), ("built/",))


def test_a_submodule_is_that_of_the_commit(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    commit(inner, {"lib.py": "1\n"})
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "lib")
    commit(repository, {})
    commit(inner, {"lib.py": "2\n"})
    git(repository / "lib", "pull", "--quiet")
    commit(repository, {})
    assert exported(repository, "HEAD~1", tmp_path / "then").flaws == []
    assert (tmp_path / "then" / "lib" / "lib.py").read_text() == "1\n"
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    (flaw,) = exported(clone, "HEAD", tmp_path / "without").flaws
    assert isinstance(flaw, SubmoduleMissing)
    assert flaw.folder == "lib"


def test_files_of_lfs_are_taken_from_the_clone_or_named(repository: Path, tmp_path: Path) -> None:
    stored = hashlib.sha256(b"the bytes").hexdigest()
    commit(
        repository,
        {".gitattributes": "*.bin filter=lfs\n", "a.bin": POINTER.format(stored), "b.bin": POINTER.format("0" * 64)},
    )
    write(repository, {"a.bin": "other", "b.bin": "other"})
    write(repository / ".git" / "lfs" / "objects" / stored[:2] / stored[2:4], {stored: "the bytes"})
    (flaw,) = exported(repository, "HEAD", tmp_path / "then").flaws
    assert isinstance(flaw, FilesOfLfsMissing)
    assert flaw.files == ("b.bin",)
    assert (tmp_path / "then" / "a.bin").read_text() == "the bytes"


def test_the_merge_base_with_the_branch_that_ci_names(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve(repository, "HEAD").hash
    git(repository, "checkout", "--quiet", "-b", "change")
    commit(repository, {"train.py": "2\n"})
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert resolve(repository, MERGE_BASE).hash == first
    monkeypatch.setenv("GITHUB_BASE_REF", "change")
    assert resolve(repository, MERGE_BASE).hash == resolve(repository, "HEAD").hash
    monkeypatch.setenv("GITHUB_BASE_REF", "gone")
    with pytest.raises(UsageError, match="there is no branch origin/gone or gone"):
        resolve(repository, MERGE_BASE)


@pytest.mark.parametrize("ref", ["gone", "--help", ""])
def test_what_is_no_commit_is_an_error(repository: Path, ref: str) -> None:
    with pytest.raises(UsageError, match="is no commit of this repository"):
        resolve(repository, ref)


def test_a_hook_that_calls_us_does_not_change_what_git_sees(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert resolve(repository, "HEAD").root == repository.resolve()


def test_no_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--against needs a git repository"):
        resolve(tmp_path, "HEAD")
