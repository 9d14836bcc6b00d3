"""What a run wrote, without being asked for it: read after each run, because the next one may write the same files."""

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import msgspec

from detaudit.auditor import store
from detaudit.auditor.evidence import saved
from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.evidence.event_records import UNREADABLE, Wrote
from detaudit.auditor.evidence.file_names import matched
from detaudit.launch.changes import Prefixes, Stamps
from detaudit.model import Artifact, FinalState, Stage, Training
from detaudit.model.encoding import encode
from detaudit.model.number import count
from detaudit.model.outputs import File, ListedFile, Outputs, Role, RunFacts, Value
from detaudit.recipe.outputs import Listed

WRITTEN = "files.json"
"""What a run wrote, in its folder."""

BUDGET_S, BUDGET_BYTES = 60.0, 8 * 2**30
"""Seconds and bytes that reading the files of one run may take."""

MOST_IN_FOLDER = 100_000
"""Files below a folder that a run made elsewhere."""

MOST_LISTED = 1000

_SHOWN = 3
_SYSTEM = ("/dev/", "/proc/", "/sys/", "/run/")


@dataclass(frozen=True)
class Change:
    """A file that a run wrote and that is still there: its ``path`` is absolute, without links.

    ``existed`` says that it was there before the run; ``kept`` is how many bytes of then are still its first ones, if
    the run only appended to it, else 0.
    """

    path: str
    existed: bool
    kept: int = 0


@dataclass(frozen=True)
class Changes:
    """The files that a run wrote, in this order, and the folders that it made; ``spent`` if some were not recorded."""

    files: tuple[Change, ...] = ()
    folders: tuple[str, ...] = ()
    spent: bool = False


class _Recorded:
    """What the processes of a run recorded of the files that they wrote, by path.

    ``first`` is the line that was written first, ``appended`` says whether all of them only appended to it, and
    ``left`` whether a temporary file that is still there is new.
    """

    def __init__(self, processes: Iterable[Process]) -> None:
        self.first: dict[str, Wrote] = {}
        self.appended: dict[str, bool] = {}
        self.left: dict[str, bool] = {}
        self.folders: dict[str, None] = {}
        self.spent = False
        for process in processes:
            for line in process.wrote:
                self._take(line)
            for left in process.left:
                self.left[left.path] = self.left.get(left.path, False) or left.new

    def _take(self, line: Wrote) -> None:
        self.spent = self.spent or line.spent
        if line.folder:
            self.folders[line.path] = None
        elif line.path:
            # What is overwritten after it was appended to has another line, which is later.
            self.appended[line.path] = self.appended.get(line.path, True) and line.append
            before = self.first.get(line.path)
            self.first[line.path] = line if before is None or line.at < before.at else before


def changes_of(
    scanned: Sequence[str], before: Stamps, processes: Iterable[Process], prefixes: Prefixes | None = None
) -> Changes:
    """Return what a run wrote: files that the auditor ``scanned`` as changed, and what its processes recorded.

    ``before`` and ``prefixes`` say what was there before. A name that was renamed or removed since counts no more, and
    of several names of one file the first counts.
    """
    recorded, changed = _Recorded(processes), frozenset(scanned)
    found: dict[tuple[int, int], tuple[tuple[int, bytes], Change]] = {}
    made = (path for folder in recorded.folders for path in _in(folder))
    for path in dict.fromkeys((*scanned, *recorded.first, *recorded.left, *made)):
        try:
            now = os.lstat(path)
        except OSError:
            continue
        line = recorded.first.get(path)
        untouched = line is not None and (line.size, line.changed) == (now.st_size, now.st_ctime_ns)
        if not stat.S_ISREG(now.st_mode) or path.startswith(_SYSTEM) or (untouched and path not in changed):
            continue
        if line is not None:
            existed = line.size >= 0
        else:
            existed = before.existed(path) if path in changed else not recorded.left.get(path, True)
        kept = _kept(path, now, before, recorded, prefixes) if existed else 0
        order = now.st_mtime_ns, os.fsencode(path)
        found.setdefault((now.st_dev, now.st_ino), (order, Change(path, existed, kept)))
    ordered = tuple(change for _, change in sorted(found.values(), key=lambda one: one[0]))
    return Changes(ordered, tuple(recorded.folders), recorded.spent)


def _kept(path: str, now: os.stat_result, before: Stamps, recorded: _Recorded, prefixes: Prefixes | None) -> int:
    """Return how many bytes of a file that existed were only appended to, 0 if it may have been overwritten."""
    if (line := recorded.first.get(path)) is None:
        return prefixes.appended_to(path) if prefixes is not None else 0
    replaced = path in before.files and before.files[path][3] != now.st_ino
    return line.size if recorded.appended[path] and 0 < line.size <= now.st_size and not replaced else 0


def _in(folder: str) -> Iterator[str]:
    number = 0
    for top, _, names in os.walk(folder):
        for name in sorted(names):
            number += 1
            if number > MOST_IN_FOLDER:
                return
            yield os.path.join(top, name)


@dataclass
class Collector:
    """Reads the files of one run after the other.

    ``seconds`` and ``size`` in bytes are what may be spent on each run, ``ignored`` are patterns of files that are left
    out: see is_ignored.
    """

    seconds: float = BUDGET_S
    size: int = BUDGET_BYTES
    ignored: Sequence[str] = ()
    _digests: dict[str, str] = field(default_factory=dict)
    _last: dict[str, File] = field(default_factory=dict)

    def collect(
        self,
        cwd: Path,
        changes: Changes,
        unchanged: Iterable[str],
        named: Collection[str] = (),
        *,
        listed: Listed,
        facts: RunFacts | None = None,
    ) -> Outputs:
        """Return the files that a run wrote, by their names, but those that are ``named`` or ignored.

        ``unchanged`` are files that an earlier run wrote and this one only read, such as a cache: this one would have
        written the same. Small files are read first.
        """
        left_out: list[ListedFile] = []
        shown: dict[str, Change] = {}
        for change in changes.files:
            name = shown_path(change.path, cwd)
            if change.path in named or is_ignored(name, self.ignored):
                continue
            row = listed.row(change.path, os.path.realpath(cwd))
            if row is None:
                shown[name] = change
            elif len(left_out) < MOST_LISTED:
                left_out.append(ListedFile(name, row.id))
        read, unread = self._read(shown, facts)
        files = self.named([read[name] for name in shown if name in read])
        kept = [self._last[name] for path in unchanged if (name := shown_path(path, cwd)) in self._last]
        self._last |= {file.path: file for file in files}
        parts = [unread, "a process wrote to so many files that not all were recorded" if changes.spent else ""]
        return Outputs(
            files=tuple(sorted((*files, *kept), key=lambda file: file.name)),
            facts=facts,
            unread="; ".join(filter(None, parts)),
            listed=tuple(left_out),
        )

    def _read(self, shown: Mapping[str, Change], facts: RunFacts | None) -> tuple[dict[str, File], str]:
        """Return the files that the budget was enough for, and what is to be said of the others."""
        started, left = time.monotonic(), self.size
        found: dict[str, File] = {}
        missed: list[tuple[str, int]] = []
        spent = ""
        for size, name in sorted((_size(change), name) for name, change in shown.items()):
            if not spent and time.monotonic() - started > self.seconds:
                spent = f"{self.seconds:g}s"
            elif not spent and size > left:
                spent = _shown_size(self.size)
            if spent:
                missed.append((name, size))
                continue
            left -= size
            try:
                with _added(shown[name]) as path:
                    found[name] = _file(path, name, facts, added_only=shown[name].kept > 0)
            except OSError:  # it is gone, or may not be read
                continue
        if not missed:
            return found, ""
        names = ", ".join(name for name, _ in missed[:_SHOWN]) + (", …" if len(missed) > _SHOWN else "")
        total = _shown_size(sum(size for _, size in missed))
        were = "was" if len(missed) == 1 else "were"
        return found, f"the budget of {spent} was spent: {count(len(missed), 'file')}, {total} {were} not read: {names}"

    def named(self, files: Iterable[File]) -> tuple[File, ...]:
        """Return the files of a run, in the order in which they were written, with the names they are compared by."""
        found = {file.path: file for file in files}
        names = matched(self._digests, {path: digest(file) for path, file in found.items()})
        named = tuple(msgspec.structs.replace(file, name=names[path]) for path, file in found.items())
        self._digests |= {file.name: digest(file) for file in named if file.name not in self._digests}
        return named


def _file(path: Path, shown: str, facts: RunFacts | None, *, added_only: bool) -> File:
    """Return what is in a file. Raises OSError if it cannot be opened."""
    contents = saved.read(path)
    values = [Value(name, digest) for name, digest in contents.tensors]
    values += [Value(name, digest, Role.MEASUREMENT) for name, digest in contents.beside.items()]
    return File(
        path=shown,
        name=shown,
        sha256=contents.raw,
        size=path.stat().st_size,
        by="tensors" if contents.tensors else "bytes",
        values=tuple(values),
        problem=contents.problem,
        added_only=added_only,
    )


def digest(file: File) -> str:
    """Return one digest of all that a file is compared by."""
    parts = tuple((value.name, value.digest) for value in file.values if value.role is Role.RESULT)
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest() if parts else file.sha256


@contextmanager
def _added(change: Change) -> Iterator[Path]:
    """Give the file, or one with what was appended to it, of the same name."""
    path = Path(change.path)
    if not change.kept:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="detaudit-") as folder, path.open("rb") as file:
        file.seek(change.kept)
        part = Path(folder, path.name)
        with part.open("wb") as target:
            shutil.copyfileobj(file, target)
        yield part


def _size(change: Change) -> int:
    try:
        return max(0, os.path.getsize(change.path) - change.kept)
    except OSError:
        return 0


def _shown_size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def shown_path(path: str, cwd: Path) -> str:
    """Return a path as people name it, relative to the working directory if it is below."""
    for folder in (str(cwd), os.path.realpath(cwd)):
        if path.startswith(f"{folder.rstrip(os.sep)}{os.sep}"):
            return os.path.relpath(path, folder)
    return path


def is_ignored(shown: str, patterns: Iterable[str]) -> bool:
    """Whether a file matches a pattern of --ignore, as in a .gitignore file.

    A pattern with a slash is one of the whole path, or of a folder above the file; any other is one of its name, or of
    the name of a folder above it. ``*`` may stand for several components too.
    """
    path = PurePath(shown)
    for pattern in patterns:
        wanted = os.path.expanduser(pattern).removeprefix("./").rstrip("/")
        above = [str(folder) for folder in path.parents if folder.parts]
        if "/" in wanted:
            candidates = above if pattern.endswith("/") else [shown, *above]
        else:
            candidates = list(path.parts[:-1] if pattern.endswith("/") else path.parts)
        if wanted.startswith("**/"):
            wanted = wanted.removeprefix("**")
            candidates = [f"/{one}" for one in candidates]
            wanted = f"*{wanted}"
        if any(fnmatchcase(one, wanted) for one in candidates):
            return True
    return False


def keep(outputs: Outputs, folder: Path) -> None:
    """Write what was read to the folder of the run. Raises StorageError if that fails."""
    store.write(folder / WRITTEN, encode(outputs))


def kept(folder: Path) -> Outputs:
    """Return what was read of a run, nothing if nothing was."""
    try:
        return msgspec.json.decode((folder / WRITTEN).read_bytes(), type=Outputs)
    except (OSError, *UNREADABLE):
        return Outputs()


def tensors(file: File) -> tuple[Value, ...]:
    """Return the values of a file that decide."""
    return tuple(value for value in file.values if value.role is Role.RESULT)


def as_training(files: Sequence[File]) -> Training | None:
    """Return the tensors of files as a training without steps, None if there are none."""
    parts = tuple(
        f"{value.digest} {file.name}: {value.name}" if value.name else f"{value.digest} {file.name}"
        for file in files
        for value in tensors(file)
    )
    if not parts:
        return None
    final = FinalState(digest=hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest())
    return Training(framework=Stage.SAVED.value, digests={Stage.SAVED: {0: parts}}, final=final)


def listed(files: Sequence[File]) -> tuple[Artifact, ...]:
    """Return the files whose tensors are compared."""
    return tuple(Artifact(path=file.path, by="tensors", digest=digest(file)) for file in files if tensors(file))
