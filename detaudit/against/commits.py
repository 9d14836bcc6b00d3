"""Find a commit, and write its files into a folder, without touching the index, HEAD, hooks or the working tree."""

import filecmp
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from detaudit.errors import UsageError, WorkspaceError
from detaudit.launch.git import git_output
from detaudit.launch.tree import CACHE, GIT
from detaudit.launch.workspace import repository_root
from detaudit.model import Warning
from detaudit.model.warnings import FilesOfLfsMissing, SubmoduleMissing

MERGE_BASE = "merge-base"
"""The REF that means where this branch began."""

_TARGETS = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "CHANGE_TARGET",
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "SYSTEM_PULLREQUEST_TARGETBRANCH",
)
"""Variables of CI systems that name the branch that a change is to be merged into."""

_DEFAULTS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")

_POINTER = b"version https://git-lfs.github.com/spec/v1"
_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_MOST_POINTER = 1024

_FETCH = "Fetch the history: git fetch --unshallow, or fetch-depth: 0 of actions/checkout, or GIT_DEPTH: 0 of GitLab."


@dataclass(frozen=True)
class Commit:
    """A commit of the repository at ``root``; ``ref`` is what the user typed."""

    root: Path
    ref: str
    hash: str

    @property
    def name(self) -> str:
        """What the user typed, with the start of the hash unless that is what was typed."""
        return self.ref if self.hash.startswith(self.ref) else f"{self.ref} ({self.hash[:10]})"


def root_of(folder: Path) -> Path:
    """Return the root of the repository around a folder. Raises UsageError if there is none."""
    try:
        return Path(git_output(folder, "rev-parse", "--show-toplevel").strip()).resolve()
    except WorkspaceError as error:
        raise UsageError(
            f"--against needs a git repository: {error.message}", "Start detaudit in a folder of one."
        ) from error


def resolve(folder: Path, ref: str) -> Commit:
    """Return the commit that a reference names. Raises UsageError if it does not exist, or not in a shallow clone."""
    root = root_of(folder)
    shallow = _is_shallow(root)
    if ref == MERGE_BASE:
        if shallow:
            raise UsageError("--against merge-base cannot be found in a shallow clone", _FETCH)
        return _merge_base(root)
    commit = _hash(root, ref)
    if not commit:
        raise UsageError(
            f"--against {ref!r} is no commit of this repository{', which is a shallow clone' if shallow else ''}",
            _FETCH if shallow else "Name a commit, a tag or a branch; a branch of a remote has to be fetched first.",
        )
    return Commit(root, ref, commit)


def _is_shallow(root: Path) -> bool:
    return git_output(root, "rev-parse", "--is-shallow-repository").strip() == "true"


def _hash(root: Path, ref: str) -> str:
    with suppress(WorkspaceError):
        return git_output(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").split()[-1]
    return ""


def _merge_base(root: Path) -> Commit:
    """Return where the branch began: its merge base with the branch that CI names, else with the default branch."""
    named = next(filter(None, map(os.environ.get, _TARGETS)), "").removeprefix("refs/heads/")
    candidates = (f"origin/{named}", named) if named else _DEFAULTS
    target = next((one for one in candidates if _hash(root, one)), None)
    if target is None:
        raise UsageError(
            f"--against merge-base: there is no branch {' or '.join(candidates)}",
            "Fetch it (git fetch origin BRANCH:refs/remotes/origin/BRANCH), or name a commit.",
        )
    with suppress(WorkspaceError):
        return Commit(root, f"merge-base with {target}", git_output(root, "merge-base", "HEAD", target).split()[0])
    raise UsageError(f"--against merge-base: HEAD and {target} have no commit in common", "Name a commit.")


def last_changes(path: Path) -> Iterator[Commit]:
    """Yield the commits that changed a file, the newest first; none without a repository, or in a shallow clone."""
    if not (repository_root(path.parent) / GIT).exists():
        return
    with suppress(UsageError, WorkspaceError):
        root = root_of(path.parent)
        if _is_shallow(root):
            return
        for one in git_output(root, "log", "--format=%H", "--", str(path)).split():
            yield Commit(root, one[:10], one)


def content(commit: Commit, path: Path) -> bytes:
    """Return a file as of a commit. Raises WorkspaceError if it has none of this name."""
    relative = path.resolve().relative_to(commit.root).as_posix()
    return git_output(commit.root, "cat-file", "blob", f"{commit.hash}:{relative}").encode(errors="surrogateescape")


def head(root: Path) -> str:
    """Return the hash of HEAD, ``""`` before the first commit."""
    return _hash(root, "HEAD")


def changed(root: Path) -> tuple[str, ...]:
    """Return the files of the working tree that are not as in HEAD, new ones too, by their paths below the root."""
    lines = git_output(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").split("\0")
    return tuple(sorted(line[3:] for line in lines if line and CACHE not in line.split("/")))


def differences(commit: Commit) -> tuple[str, ...]:
    """Return the files that differ between a commit and the working tree, new ones too, by their paths."""
    told = git_output(commit.root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit.hash)
    new = git_output(commit.root, "ls-files", "--others", "--exclude-standard", "-z")
    return tuple(sorted({name for name in f"{told}{new}".split("\0") if name and CACHE not in name.split("/")}))


@dataclass
class Export:
    """Writes the files of a commit, and of its submodules, into a copy; ``flaws`` are what it lacks."""

    commit: Commit
    copy: Path
    scratch: Path
    flaws: list[Warning] = field(default_factory=list)

    def write(self) -> None:
        """Write them. Raises WorkspaceError if that fails."""
        missing: list[str] = []
        self._write(self.commit.root, self.commit.hash, self.copy, missing)
        if missing:
            self.flaws.append(FilesOfLfsMissing(files=tuple(missing)))

    def _write(self, root: Path, commit: str, target: Path, missing: list[str]) -> None:
        index = self.scratch / "index"
        index.unlink(missing_ok=True)
        variables = {"GIT_INDEX_FILE": str(index)}
        git_output(root, "read-tree", commit, env=variables)
        git_output(root, "checkout-index", "--all", "--force", f"--prefix={target}{os.sep}", env=variables)
        index.unlink(missing_ok=True)
        for line in filter(None, git_output(root, "ls-tree", "-r", "-z", commit).split("\0")):
            about, _, name = line.partition("\t")
            mode, _, digest = about.split()
            ours, theirs = target / name, root / name
            if mode == "160000":
                self._submodule(theirs, digest, ours, missing)
            elif mode != "120000":
                if not self._is_there(root, ours, theirs):
                    missing.append(os.path.relpath(ours, self.copy))
                if theirs.is_file() and filecmp.cmp(ours, theirs, shallow=False):
                    shutil.copystat(theirs, ours)  # what sorts by times does not tell the sides apart

    def _submodule(self, folder: Path, commit: str, target: Path, missing: list[str]) -> None:
        if (folder / GIT).exists() and _hash(folder, commit):
            self._write(folder, commit, target, missing)
        else:
            name = os.path.relpath(folder, self.commit.root)
            self.flaws.append(SubmoduleMissing(folder=name, commit=commit[:10]))

    def _is_there(self, root: Path, file: Path, same: Path) -> bool:
        """Whether a file has its content: that of one that LFS stores is taken from its storage in the repository."""
        try:
            if file.stat().st_size > _MOST_POINTER:
                return True
            data = file.read_bytes()
        except OSError:
            return True
        match = _OID.search(data) if data.startswith(_POINTER) else None
        if match is None or (same.is_file() and same.stat().st_size == len(data) and same.read_bytes() == data):
            return True  # the working tree has no more either
        oid = match[1].decode()
        stored = Path(git_output(root, "rev-parse", "--git-common-dir").strip())
        stored = root / stored / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
        if not stored.is_file():
            return False
        file.unlink()
        file.symlink_to(stored)
        return True


def ignored(root: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the files that git ignores, and the folders of which it ignores everything, with a slash at their ends."""
    command = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    names = [name for name in git_output(root, *command).split("\0") if name]
    for line in filter(None, git_output(root, "ls-files", "--stage", "-z").split("\0")):
        folder = line.partition("\t")[2]
        if line.startswith("160000") and (root / folder / GIT).exists():
            files, folders = ignored(root / folder)
            names += [f"{folder}/{name}" for name in (*files, *folders)]
    return frozenset(name for name in names if not name.endswith("/")), tuple(
        name for name in names if name.endswith("/")
    )
