"""The files that a run wrote: named by the user, or found; and what a program without the recorder left."""

import contextlib
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import msgspec

from detaudit import store, wire
from detaudit.config.outputs import Listed
from detaudit.errors import StorageError
from detaudit.launch import RunSpec
from detaudit.launch.workspace import Prefixes, Stamp, Stamps
from detaudit.model import Artifact, FinalState, RunError, Stage, Training, Warning, as_number
from detaudit.model.fact import encode
from detaudit.model.outputs import File, ListedFile, OutputRules, Outputs, Role, RunFacts, Unread
from detaudit.model.problems import ArtifactMissing, ArtifactsNotWritten, ArtifactUnusable
from detaudit.model.warnings import ArtifactsSkipped
from detaudit.outputs import compare, text
from detaudit.outputs.file_names import matched
from detaudit.runs import printed, values
from detaudit.runs.formats import BROKEN, Rows, UnusableError, format_of, pieces, tables
from detaudit.runs.formats.floats import Total
from detaudit.runs.log import Process
from detaudit.runs.log_records import UNREADABLE, Wrote
from detaudit.runs.values import LINK, MOST_VALUES, digested

# Find the files that a run wrote, and digest their contents.


_SHOWN = 3

_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class Written:
    """The files that a run wrote, by the names that --artifact gives them, and why there are none."""

    files: dict[str, Path]
    error: RunError | None = None
    warning: Warning | None = None


class Files:
    """The files of one --artifact: created before a run, read after it."""

    def __init__(self, pattern: str, cwd: Path, results: Path) -> None:
        self._pattern, self._cwd = pattern, cwd
        self._results = None if cwd.is_relative_to(results) else results  # --isolate works below it
        self._before = self._stamps()

    def written(self) -> Written:
        """Return the files that changed since. A file that did not change says nothing about a run."""
        after = self._stamps()
        new = {name: self._cwd / name for name, stamp in after.items() if self._before.get(name) != stamp}
        old = [name for name in after if name not in new]
        names, more = tuple(old[:_SHOWN]), max(0, len(old) - _SHOWN)
        if new:
            return Written(new, warning=ArtifactsSkipped(files=names, more=more) if old else None)
        if old:
            return Written({}, ArtifactsNotWritten(files=names, more=more))
        return Written({}, ArtifactMissing(pattern=self._pattern, folder=(self._cwd / self._pattern).is_dir()))

    def _stamps(self) -> dict[str, _Stamp]:
        """Return the regular files that match; a path that exists is not a pattern, whatever characters it has."""
        literal = os.path.lexists(self._cwd / self._pattern)
        names = [self._pattern] if literal else glob.glob(self._pattern, root_dir=self._cwd, recursive=True)
        stamps = {}
        for name in sorted(names):
            path = self._cwd / name
            with contextlib.suppress(OSError):
                status = path.stat()
                if stat.S_ISREG(status.st_mode) and not self._ours(path):
                    # The inode's change time reveals a file that was written with an old modification time.
                    stamps[name] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        return stamps

    def _ours(self, path: Path) -> bool:
        return self._results is not None and path.resolve().is_relative_to(self._results)


@dataclass(frozen=True)
class Contents:
    """The contents of a file: ``digest`` is of its bytes, by which it is compared.

    ``values`` are the names and digests of what it holds, by which a difference is named, none if that could not be
    read. ``total`` is the sum of its floats.
    """

    digest: str
    values: tuple[tuple[str, str], ...] = ()
    total: float | None = None


def read(path: Path) -> Contents:
    """Return what is in a file. Raises UnusableError if there is nothing to compare."""
    try:
        digest, size = hashlib.sha256(), path.stat().st_size
        if not size:
            raise UnusableError("is empty")
        with path.open("rb") as file:
            for piece in pieces(file):
                digest.update(piece)
    except OSError as error:
        raise UnusableError(f"cannot be read: {type(error).__name__}: {error}") from error
    total, values = Total(), list[tuple[str, str]]()
    try:
        for part, data in digested(format_of(path), path, size, total=total):
            if len(values) < MOST_VALUES:
                values.append((part.name, data.digest))
    except (UnusableError, ModuleNotFoundError, *BROKEN):  # its bytes are compared all the same
        return Contents(digest.hexdigest())
    return Contents(digest.hexdigest(), tuple(values), total.value)


# What left a run: the files that it wrote, read after each run, because the next one may write the same files.


KEPT = "outputs.json"
"""What left a run, in its folder."""

MOST_IN_FOLDER = 100_000
"""Files below a folder that a run made elsewhere."""

MOST_LISTED = 1000

MOST_DATABASE = 2**26
"""Bytes of a database whose rows are noted before a run."""

_SQLITE = b"SQLite format 3\0"  # https://www.sqlite.org/fileformat2.html#magic_header_string
_LEAST_DATABASE = 512  # a page of it
_SYSTEM = ("/dev/", "/proc/", "/sys/", "/run/")


@dataclass(frozen=True)
class Change:
    """A file that a run wrote and that is still there: its ``path`` is absolute, without links.

    ``existed`` says that it was there before the run; ``kept`` is how many bytes of then are still its first ones, if
    the run only appended to it, else 0. ``rows`` are those that a database had, if all of them are still there, else
    none. ``older`` are the files that a log was rotated into, the oldest one first: they are compared as its beginning.
    """

    path: str
    existed: bool
    kept: int = 0
    rows: Rows = field(default_factory=dict)
    older: tuple["Change", ...] = ()

    @property
    def added_only(self) -> bool:
        """Whether only what the run added to it is compared."""
        return self.kept > 0 or bool(self.rows) or any(one.added_only for one in self.older)


@dataclass(frozen=True)
class Changes:
    """The files that a run wrote, in this order, and the folders that it made; ``spent`` if nobody knows some.

    ``links`` are all that are there, each with what it leads to, and whether the run made it.
    """

    files: tuple[Change, ...] = ()
    folders: tuple[str, ...] = ()
    spent: bool = False
    links: tuple[tuple[str, str, bool], ...] = ()


class _Recorded:
    """What the processes of a run recorded of the files that they wrote, by path.

    ``first`` is the line that was written first, ``appended`` says whether all of them only appended to it, and
    ``left`` whether a temporary file that is still there is new. ``spent`` says that files have no line, and
    ``seen_spent`` that files have none that existed before, in a folder that is searched.
    """

    def __init__(self, processes: Iterable[Process]) -> None:
        self.first: dict[str, Wrote] = {}
        self.appended: dict[str, bool] = {}
        self.left: dict[str, bool] = {}
        self.folders: dict[str, None] = {}
        self.spent = self.seen_spent = False
        for process in processes:
            for line in process.wrote:
                self._take(line)
            for left in process.left:
                self.left[left.path] = self.left.get(left.path, False) or left.new

    def _take(self, line: Wrote) -> None:
        self.spent = self.spent or (line.spent and not line.seen)
        self.seen_spent = self.seen_spent or (line.spent and line.seen)
        if line.folder:
            self.folders[line.path] = None
        elif line.path:
            # What is overwritten after it was appended to has another line, which is later.
            self.appended[line.path] = self.appended.get(line.path, True) and line.append
            before = self.first.get(line.path)
            self.first[line.path] = line if before is None or line.at < before.at else before


def changes_of(
    scanned: Sequence[str],
    before: Stamps,
    processes: Iterable[Process],
    prefixes: Prefixes | None = None,
    databases: Mapping[str, Rows] | None = None,
    links: Sequence[tuple[str, str, bool]] = (),
    *,
    complete: bool = True,
) -> Changes:
    """Return what a run wrote: files that the auditor ``scanned`` as changed, and what its processes recorded.

    ``before``, ``prefixes`` and ``databases`` say what was there before; ``complete`` says that the search after the
    run ended, which then has all that the recorder left out of what it searched. A name that was renamed or removed
    since counts no more, and of several names of one file the first counts.
    """
    recorded, changed = _Recorded(processes), frozenset(scanned)
    if recorded.seen_spent:  # what has no line may have been overwritten by more of the same
        prefixes = None
    changes_by_inode: dict[tuple[int, int], tuple[tuple[int, bytes], Change]] = {}
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
            # What is written again by the run that made it was there then, and not before the run.
            existed = line.size >= 0 and (path not in changed or before.existed(path))
        else:
            existed = before.existed(path) if path in changed else not recorded.left.get(path, True)
        kept = _kept(path, now, before, recorded, prefixes) if existed else 0
        rows = (databases or {}).get(path, {}) if existed else {}
        if rows:
            kept, rows = 0, rows if _has_all(path, rows) else {}
        order = now.st_mtime_ns, os.fsencode(path)
        changes_by_inode.setdefault((now.st_dev, now.st_ino), (order, Change(path, existed, kept, rows)))
    ordered = tuple(change for _, change in sorted(changes_by_inode.values(), key=lambda one: one[0]))
    spent = recorded.spent or (recorded.seen_spent and not (before.complete and complete))
    appended = recorded.appended
    return Changes(tuple(_with_rotated(ordered, before, appended)), tuple(recorded.folders), spent, tuple(links))


_ROTATED = re.compile(r"(.+\.log)(?:\.(\d{1,3}))?")
"""How logging.handlers.RotatingFileHandler and logrotate name a log and those before it: the higher, the older."""


def _with_rotated(changes: Sequence[Change], before: Stamps, appended: Mapping[str, bool]) -> Iterator[Change]:
    """Yield changes; a log and the files that it was rotated into, which each run cuts elsewhere, are one."""
    named = {change.path: match for change in changes if (match := _ROTATED.fullmatch(change.path))}
    logs: dict[str, list[tuple[int, Change]]] = {}
    for change in changes:
        if (match := named.get(change.path)) and match[1] in named:
            logs.setdefault(match[1], []).append((int(match[2] or 0), change))
    for change in changes:
        match = named.get(change.path)
        files = logs.get(match[1], []) if match else []
        if len(files) < 2:
            yield change
        elif match and change.path == match[1]:
            then = _rotated_before(change.path, before)
            # What was overwritten, which has the same inode, kept nothing.
            old = {stamp[3]: (at, stamp[2]) for at, stamp in then if at or appended.get(change.path, True)}
            *older, log = [_renamed(number, one, old) for number, one in sorted(files, key=lambda file: -file[0])]
            yield replace(log, older=tuple(older))


def _rotated_before(log: str, before: Stamps) -> Iterator[tuple[int, Stamp]]:
    for number in range(1000):
        stamp = before.files.get(f"{log}.{number}" if number else log)
        if stamp is not None:
            yield number, stamp
        elif number > 1:
            return


def _renamed(number: int, change: Change, old: Mapping[int, tuple[int, int]]) -> Change:
    """Return a file of a log with what it had before the run by a lower number, before it was renamed.

    One that had a higher number was removed, and its inode used again.
    """
    try:
        now = os.lstat(change.path)
    except OSError:
        return change
    before, size = old.get(now.st_ino, (number, 0))
    if before == number:
        return change
    return replace(change, kept=size if before < number and size <= now.st_size else 0)


def _kept(path: str, now: os.stat_result, before: Stamps, recorded: _Recorded, prefixes: Prefixes | None) -> int:
    """Return how many bytes of a file that existed were only appended to, 0 if it may have been overwritten."""
    if (line := recorded.first.get(path)) is None:
        return prefixes.appended_to(path) if prefixes is not None else 0
    stamp = before.files.get(path)
    # Another one, or written by native code before it was appended to.
    replaced = stamp is not None and (
        stamp[3] != now.st_ino or stamp[2] != line.size or line.changed not in (0, stamp[1])
    )
    return line.size if recorded.appended[path] and 0 < line.size <= now.st_size and not replaced else 0


class Databases:
    """The rows of SQLite databases before a run; those that did not change since are not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], Rows]] = {}

    def before(self, paths: Iterable[str]) -> dict[str, Rows]:
        """Return the rows of those files that are databases, and neither too large nor broken."""
        rows_by_path = {}
        for path in paths:
            try:
                now = os.stat(path)
            except OSError:
                continue
            stamp = now.st_mtime_ns, now.st_size, now.st_ino
            if path not in self._known or self._known[path][0] != stamp:
                self._known[path] = stamp, _rows(path) if _LEAST_DATABASE <= now.st_size <= MOST_DATABASE else {}
            rows_by_path[path] = self._known[path][1]
        return {path: rows for path, rows in rows_by_path.items() if rows}


def _rows(path: str) -> Rows:
    """Return the rows of a database, nothing if it is none, or cannot be read."""
    try:
        with open(path, "rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return {}
        from detaudit.runs.formats import sqlite  # which not every Python has

        return sqlite.rows(Path(path))
    except (ModuleNotFoundError, OSError, *BROKEN):
        return {}


def _has_all(path: str, known: Rows) -> bool:
    """Whether a database still has all rows that it had, but for those in which SQLite counts."""
    now = _rows(path)
    old = ((table, row, times) for table, rows in known.items() for row, times in rows.items())
    return all(now.get(table, {}).get(row, 0) >= times for table, row, times in old if table != "sqlite_sequence")


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

    ``rules`` say what may be spent on each run, and which files are left out: see is_ignored.
    """

    rules: OutputRules = field(default_factory=OutputRules)
    _digests: dict[str, str] = field(default_factory=dict)
    _last: dict[str, File] = field(default_factory=dict)
    _known: dict[tuple[str, str], File] = field(default_factory=dict)

    def collect(
        self,
        cwd: Path,
        changes: Changes,
        unchanged: Iterable[str],
        named: Collection[str] = (),
        *,
        listed: Listed,
        facts: RunFacts,
        python: str = "",
    ) -> Outputs:
        """Return the files that a run wrote, by their names, but those that are ``named`` or ignored.

        ``unchanged`` are files that an earlier run wrote and this one found done, such as a cache: this one would have
        written the same. Small files are read first. ``python`` is the interpreter of the run, which may have a library
        that is missing here.
        """
        left_out: list[ListedFile] = []
        real = os.path.realpath(cwd)
        shown: dict[str, Change] = {}
        for change in changes.files:
            name = shown_path(change.path, cwd)
            if change.path in named or is_ignored(name, self.rules.ignore):
                continue
            row = listed.row(change.path, real)
            if row is None:
                shown[name] = change
            elif len(left_out) < MOST_LISTED:
                left_out.append(ListedFile(name, row.id))
        read, unread = self._read(shown, facts, python)
        written = self.named([read[name] for name in shown if name in read])
        linked = [one for one in self._links(changes, cwd, facts, written) if listed.row(one[0], real) is None]
        written += tuple(file for path, file in linked if path not in named)
        known = {file.name for file in written}
        earlier = (self._last.get(shown_path(path, cwd)) for path in dict.fromkeys(unchanged))
        kept = {file.name: file for file in earlier if file is not None and file.name not in known}.values()
        self._last |= {file.path: file for file in written}
        if unread is None and changes.spent:
            unread = Unread(budget=self.rules.file_budget)
        return Outputs(
            files=tuple(sorted((*written, *kept), key=lambda file: file.name)),
            facts=facts,
            unread=unread,
            listed=tuple(left_out),
        )

    def _read(self, shown: Mapping[str, Change], facts: RunFacts, python: str) -> tuple[dict[str, File], Unread | None]:
        """Return the files that the budget was enough for, and which others there are, None if there are none."""
        budget = values.Budget(self.rules.file_budget.bytes, self.rules.file_budget.seconds)
        files: dict[str, File] = {}
        missed: list[tuple[str, int]] = []
        spent = False
        for size, name in sorted((_size(change), name) for name, change in shown.items()):
            if spent:
                missed.append((name, size))
                continue
            try:
                with _added(shown[name]) as path:
                    file = values.read(
                        path,
                        name,
                        facts,
                        budget=budget,
                        secret_names=self.rules.redact,
                        python=python,
                        known=self._known,
                        without=shown[name].rows,
                    )
            except values.BudgetSpentError:
                missed.append((name, size))
                spent = True
            except FileNotFoundError:
                continue
            except OSError as error:
                problem = error.strerror or str(error)
                files[name] = File(path=name, name=name, sha256="", size=size, problem=problem)
            else:
                files[name] = msgspec.structs.replace(file, added_only=shown[name].added_only)
        complete_files = (file for file in files.values() if file.sha256 and not file.added_only)
        self._known = {values.known_as(file.path, file.sha256): file for file in complete_files}
        if not missed:
            return files, None
        names = tuple(name for name, _ in missed[:_SHOWN])
        total = sum(size for _, size in missed)
        return files, Unread(budget=self.rules.file_budget, count=len(missed), size=total, files=names)

    def _links(
        self, changes: Changes, cwd: Path, facts: RunFacts, written: Iterable[File]
    ) -> Iterator[tuple[str, File]]:
        """Yield the links that a run made, or that an earlier one made and it found done, with their paths.

        What a link leads to is named as runs are compared: a file by its name, a folder by those of the files in it.
        """
        names = {file.path: file.name for file in written}
        first = {str(above): path for path in reversed(names) for above in PurePath(path).parents}

        def renamed(shown: str) -> str:
            inside = first.get(shown, shown)
            tail = inside[len(shown) :]
            return (
                names[inside].removesuffix(tail) if names.get(inside, "").endswith(tail) and inside in names else shown
            )

        for path, target, is_new in changes.links:
            name, before = shown_path(path, cwd), self._last.get(shown_path(path, cwd))
            if is_ignored(name, self.rules.ignore) or not (is_new or (before is not None and before.by == LINK)):
                continue
            led_to = shown_path(os.path.normpath(os.path.join(os.path.dirname(path), target)), cwd)
            file = values.of_link(name, renamed(led_to), facts)
            folder, slash, last = name.rpartition("/")
            yield path, msgspec.structs.replace(file, name=f"{renamed(folder)}{slash}{last}")

    def named(self, files: Iterable[File]) -> tuple[File, ...]:
        """Return the files of a run, in the order in which they were written, with the names they are compared by."""
        files_by_path = {file.path: file for file in files}
        digests = {path: compare.digest(file) for path, file in files_by_path.items()}
        names = matched(self._digests, digests)
        for path, digest in digests.items():
            self._digests.setdefault(names[path], digest)
        return tuple(msgspec.structs.replace(file, name=names[path]) for path, file in files_by_path.items())


@contextmanager
def _added(change: Change) -> Iterator[Path]:
    """Give the file, or one with what was appended to it, of the same name; a table keeps its names of columns."""
    path = Path(change.path)
    if not change.kept and not change.older:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="detaudit-") as folder:
        part = Path(folder, path.name)
        with part.open("wb") as target:
            target.write(b"" if change.older else tables.header_of(path))
            for one in (*change.older, change):
                with open(one.path, "rb") as file:
                    file.seek(one.kept)
                    shutil.copyfileobj(file, target)
        yield part


def _size(change: Change) -> int:
    try:
        return sum(max(0, os.path.getsize(one.path) - one.kept) for one in (*change.older, change))
    except OSError:
        return 0


def shown_path(path: str, cwd: Path) -> str:
    """Return a path as people name it, relative to the working directory if it is below."""
    for real in (False, True):
        folder = (os.path.realpath(cwd) if real else str(cwd)).rstrip(os.sep) + os.sep
        if path.startswith(folder):
            return os.path.normpath(path[len(folder) :])
    return path


def is_ignored(shown: str, patterns: Iterable[str]) -> bool:
    """Whether a file matches a pattern of --ignore, as in a .gitignore file.

    A pattern with a slash is one of the whole path, or of a folder above the file; any other is one of its name, or of
    the name of a folder above it. ``*`` may stand for several components too.
    """
    path = PurePath(shown)
    for pattern in patterns:
        glob_pattern = os.path.expanduser(pattern).removeprefix("./").rstrip("/")
        above = [str(folder) for folder in path.parents if folder.parts]
        if "/" in glob_pattern:
            candidates = above if pattern.endswith("/") else [shown, *above]
        else:
            candidates = list(path.parts[:-1] if pattern.endswith("/") else path.parts)
        if glob_pattern.startswith("**/"):
            glob_pattern = glob_pattern.removeprefix("**")
            candidates = [f"/{one}" for one in candidates]
            glob_pattern = f"*{glob_pattern}"
        if any(fnmatchcase(one, glob_pattern) for one in candidates):
            return True
    return False


_DECODER = msgspec.json.Decoder(Outputs)


def keep(outputs: Outputs, folder: Path) -> None:
    """Write what left a run to its folder, which has what it printed already. Raises StorageError if that fails."""
    store.write(folder / KEPT, encode(msgspec.structs.replace(outputs, stdout=None, stderr=None)))


def keep_first_attempt(folder: Path) -> None:
    """Rename the folder of a run that is done again. Raises StorageError if that fails."""
    try:
        folder.rename(f"{folder}-first-attempt")
    except OSError as error:
        raise StorageError.of(f"rename {folder}", error) from error


def kept(folder: Path) -> Outputs | None:
    """Return what left a run, None if nothing was kept."""
    try:
        outputs = _DECODER.decode((folder / KEPT).read_bytes())
    except (OSError, *UNREADABLE):
        return None
    stdout, stderr = text.load(folder)
    return msgspec.structs.replace(outputs, stdout=stdout, stderr=stderr)


def listed(outputs: Outputs) -> tuple[Artifact, ...]:
    """Return the files that are compared, as reports list them."""
    return tuple(
        Artifact(path=file.path, by=file.by, digest=compare.digest(file), sha256=file.sha256) for file in outputs.files
    )


_NUMBER_OF_NAME = re.compile(r"(?:(?<=[^/])[-_])?(?<![.\d])(\d+)$")
_MOST_NUMBERED = 100


def numbered(before: Collection[str], after: Collection[str], cwd: Path) -> tuple[tuple[str, str], ...]:
    """Return the folders that a run made as the next of a series, such as runs/exp2, each with the first, runs/exp."""
    first: dict[str, str] = {}
    last: dict[str, int] = {}
    for folder in sorted(before, key=lambda folder: (len(folder), folder)):
        series, number = _in_series(folder)
        first.setdefault(series, folder)
        last[series] = max(last.get(series, 0), number)
    pairs = []
    for folder in sorted(after, key=lambda folder: (len(folder), folder)):
        series, number = _in_series(folder)
        if folder not in before and series in first and number == last[series] + 1:
            last[series] = number
            pairs.append((shown_path(folder, cwd), shown_path(first[series], cwd)))
    return tuple(sorted(pairs)[:_MOST_NUMBERED])


def _in_series(folder: str) -> tuple[str, int]:
    """Return the name of a folder without its number, and that: 1 if it has none, as the first of a series."""
    number = _NUMBER_OF_NAME.search(folder)
    return (folder[: number.start()], int(number[1])) if number else (folder, 1)


def facts_of(
    spec: RunSpec,
    processes: Sequence[Process],
    started: float,
    ended: float,
    series: tuple[tuple[str, str], ...] = (),
) -> RunFacts:
    """Return what a run is known by. ``started`` and ``ended`` are in seconds since 1970.

    ``series`` are the folders that it numbered.
    """
    folders = {str(spec.cwd), os.path.realpath(spec.cwd), str(spec.live), str(spec.folder), spec.env.get("TMPDIR", "")}
    names = {*folders, platform.node(), spec.env.get("USER", ""), spec.mark} - {"", "/"}
    shift_s, counted = _clock_of(spec.env, started)
    return RunFacts(
        started=started,
        shift_s=shift_s,
        counted=counted,
        since_boot=max(0.0, started - time.time() + time.monotonic()),
        ended=ended,
        pids=frozenset(process.hello.pid for process in processes),
        names=tuple(sorted(names, key=lambda name: (-len(name), name))),
        numbered=series,
        writers=sum(1 + process.started for process in processes) if all(one.ended for one in processes) else 0,
        declared=spec.declared,
    )


def _clock_of(env: Mapping[str, str], started: float) -> tuple[float, bool]:
    """Return the seconds that were added to the clock of Python, and whether it counted its readings."""
    for line in env.get(wire.ENV_FLAGS, "").splitlines():
        order = json.loads(line.partition("\t")[2])
        if order.get("vary") == "move-clock":
            return float(order["number"]), False
        if order.get("patch") == "count-clock":
            return wire.counted_from_s(env) - started, True
    return 0.0, False


# What is compared because it was asked for: the losses that --loss-pattern finds, the files that --artifact names.


@dataclass(frozen=True)
class Unhooked:
    """What is compared beside the trainings; ``errors`` say what was requested and is missing.

    ``named`` are the paths of the files among it.
    """

    parts: tuple[Training, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    named: frozenset[str] = frozenset()
    errors: tuple[RunError, ...] = ()
    warnings: tuple[Warning, ...] = ()


class Watch:
    """Created before a run starts, asked after it ended.

    ``patterns`` are paths or globs, relative to ``cwd``; the results folder ``results`` is never searched. What
    ``ignore`` matches is left out.
    """

    def __init__(
        self,
        loss: re.Pattern[str] | None,
        patterns: Sequence[str],
        cwd: Path,
        results: Path,
        ignore: Sequence[str] = (),
    ) -> None:
        self._loss, self._ignore = loss, ignore
        self._cwd = cwd
        self._files = [Files(pattern, cwd, results) for pattern in patterns]

    def look(self, folder: Path) -> Unhooked:
        """Return what the run with its logs in ``folder`` printed and wrote."""
        losses = printed.read(folder / "stdout.log", self._loss) if self._loss else printed.Printed()
        errors, warnings = [losses.error], []
        contents: dict[str, Contents] = {}
        for files in self._files:
            written = files.written()
            errors.append(written.error)
            warnings.append(written.warning)
            for name, path in written.files.items():
                if is_ignored(name, self._ignore):
                    continue
                try:
                    contents[name] = read(path)
                except UnusableError as error:
                    errors.append(ArtifactUnusable(path=name, detail=str(error)))
        trainings = (losses.training, _files(contents) if contents else None)
        return Unhooked(
            parts=tuple(part for part in trainings if part is not None),
            artifacts=tuple(_artifact(name, content) for name, content in sorted(contents.items())),
            named=frozenset(str(self._cwd / name) for name in contents),
            errors=tuple(error for error in errors if error is not None),
            warnings=tuple(warning for warning in warnings if warning is not None),
        )


def _files(contents: dict[str, Contents]) -> Training:
    """Return files as a training without steps: their bytes, and what they hold, are at step 0."""
    parts = tuple(
        f"{digest} {name}: {part}" if part else f"{digest} {name}"
        for name, content in sorted(contents.items())
        for part, digest in (*((part, digest) for part, digest in content.values if part), ("", content.digest))
    )
    totals = [content.total for content in contents.values() if content.total is not None]
    final = FinalState(
        digest=hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest(),
        sum=as_number(wire.add_up(totals)) if totals else None,
    )
    return Training(framework=Stage.ARTIFACT.value, digests={Stage.ARTIFACT: {0: parts}}, final=final)


def of_outputs(left: Outputs) -> Unhooked:
    """Return what stands for the training of a run that is compared by what left it alone: the results in its files."""
    contents = {
        file.name: Contents(
            compare.digest(file) if file.values else file.sha256,
            tuple((value.name, value.digest) for value in file.values[:MOST_VALUES] if value.role is Role.RESULT),
        )
        for file in left.files
        if file.by != compare.LOG and not file.problem
    }
    return Unhooked(parts=(_files(contents),))


def _artifact(name: str, content: Contents) -> Artifact:
    return Artifact(path=name, by="bytes", digest=content.digest, sum_of_weights=as_number(content.total))
