"""The event log of one process: a row for each stage of a step, and lines for all else."""

from __future__ import annotations

import os
import sys
from _thread import RLock  # threading has not been imported yet
from binascii import unhexlify

from ... import private, redact, wire
from . import guard

# Append to a file of the recorder, even after the script closed all descriptors, as a daemon does at its start.


_OPTIONS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class LogFile:
    """A file that only grows. Its descriptor is used only as long as it is one of this file.

    Otherwise the script has closed it, and its number may be that of a file of the script, which must not be touched.
    """

    def __init__(self, path: str, *, new: bool = False) -> None:
        """Open the file. Raises OSError, FileExistsError if it is to be ``new`` and exists."""
        self.path = path
        self._attach(private.opener(path, _OPTIONS | (os.O_EXCL if new else 0)))

    def _attach(self, descriptor: int) -> None:
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self._file, self._size = (status.st_dev, status.st_ino), status.st_size

    def _is_own(self) -> bool:
        known = self._size  # before the system is asked: a signal handler may append meanwhile
        try:
            status = os.fstat(self._descriptor)
        except OSError as error:
            guard.pass_on(error)
            return False
        if (status.st_dev, status.st_ino) != self._file:
            return False
        if status.st_size < known:
            raise OSError("the file was cut")
        self._size = status.st_size
        return True

    @property
    def size(self) -> int:
        """Its size in bytes. Raises OSError if the script cut it, or if it cannot be opened again."""
        if not self._is_own():
            self._attach(private.opener(self.path, _OPTIONS))
        return self._size

    def append(self, data: bytes) -> None:
        """Append bytes with one system call. Raises OSError if not all of them could be written."""
        before = self.size
        if os.write(self._descriptor, data) < len(data):
            raise OSError("not all of it could be written")
        self._size = max(self._size, before + len(data))  # at the least: a signal handler may have appended too

    def close(self) -> None:
        """Close the file."""
        try:
            if self._is_own():
                os.close(self._descriptor)
        except OSError as error:
            guard.pass_on(error)


# Which of the processes of a distributed job this is, by the variables of what started it.


_VARIABLES = (
    ("RANK", "WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun of Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # mpirun of MPICH and Intel MPI
)
"""The variables with the rank and the number of ranks, of each kind of launcher; mpirun may start a torchrun."""


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None


def attempt() -> int:
    """Return how often an elastic torchrun started its workers before: 0 the first time."""
    return _number("TORCHELASTIC_RESTART_COUNT") or 0


def rank_and_world() -> tuple[int | None, int | None]:
    """Return the rank of this process and the number of ranks, None for what no launcher says."""
    rank, world = next((names for names in _VARIABLES if _number(names[0]) is not None), _VARIABLES[0])
    return _number(rank), _number(world)


# Write the event log of one process: append-only, one write per step, silent if it cannot write.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Optional

    Row = tuple[int, int, str, str, Optional[float]]
    """Step, lane, stage, digest and value; the digest may have a space and a name behind it."""


try:
    from _json import encode_basestring_ascii as _quote  # the C half of json, without its imports
except ImportError:  # such as on PyPy
    from json.encoder import py_encode_basestring_ascii as _quote

_MOST_TROUBLES = 20

_MOST_NAMES = 1024
"""Names whose number is kept; one that comes back later gets another."""

_HEX = 32
"""The length of a digest. If more follows, that is a space and a name."""

_PACK, _STAGES, _HAS_VALUE = wire.ROW.pack, wire.STAGE_NUMBERS, wire.HAS_VALUE


def encode(value: object) -> str:
    """Return ``value`` as JSON. Floats must already be text, because JSON cannot spell all of them."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([encode(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([_quote(str(key)) + ":" + encode(item) for key, item in value.items()]) + "}"
    text = _quote(str(value))
    # JSON with a lone surrogate, such as in a file name that is not UTF-8, could not be decoded.
    return text if "\\ud" not in text else _quote(str(value).encode("utf-8", "backslashreplace").decode())


def _lines(*lines: dict[str, Any]) -> str:
    return "".join([encode(line) + "\n" for line in lines])


def _identity() -> list[int]:
    # The number of this child of its multiprocessing parent, the same in every run, as its process ID is not.
    process = sys.modules.get("multiprocessing.process")
    return list(process.current_process()._identity) if process is not None else []


def _stat() -> list[str]:
    """Return what the system says of this process after its name, see wire.addresses."""
    try:
        descriptor = os.open("/proc/self/stat", os.O_RDONLY)
    except OSError as error:
        guard.pass_on(error)
        return []
    try:
        return os.read(descriptor, 4096).decode("ascii", "replace").rpartition(")")[2].split()
    finally:
        os.close(descriptor)


class Sink:
    """Writes the event log of this process. A failure to write raises nothing, and shows as a missing ``bye``."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = ""
        self._file: LogFile | None = None
        self._forget()

    def _forget(self) -> None:
        self._pid, self._troubles, self._failed = os.getpid(), 0, False
        self._identity: list[int] = []
        self._rows: LogFile | None = None
        self._trainings: dict[tuple[str, int], int] = {}
        self._names: dict[str, int] = {}
        self._numbers = 0
        self._lock = RLock()  # a signal handler may come back to it

    @property
    def started(self) -> bool:
        """Whether this process has an event log."""
        return self._file is not None

    @property
    def path(self) -> str:
        """The event log of this process, which is created if necessary."""
        if self._pid != os.getpid():
            self.reopen()
        if self._file is None and not self._failed:
            self.hello()
        return self._path

    def hello(self) -> None:
        """Open the event log and identify this process in its first line."""
        self._file = self._open()
        self._failed = self._file is None
        self._identity = _identity()
        stat = _stat()
        rank, world = rank_and_world()
        line = {
            "k": "hello",
            "schema": wire.SCHEMA,
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "argv": redact.command(getattr(sys, "orig_argv", None) or [sys.executable, *getattr(sys, "argv", [])]),
            "python": sys.version.split()[0],
            "rank": rank,
            "world": world,
            "attempt": attempt(),
            "identity": self._identity,
            "program": list(wire.addresses(stat)),
            "started": wire.started(stat),
        }
        self._put(_lines(line))

    def _open(self) -> LogFile | None:
        for number in range(1000):  # a process that calls exec keeps its ID and opens another log
            path = os.path.join(self._directory, "%d.%d%s" % (os.getpid(), number, wire.LOG_SUFFIX))
            try:
                file = LogFile(path, new=True)
                self._path = path
                return file
            except FileExistsError as error:
                guard.pass_on(error)
            except OSError as error:
                guard.pass_on(error)
                break
        return None

    def reopen(self) -> None:
        """Detach a forked child from the log of its parent. Its own log is created with its first line."""
        self._close()
        self._forget()

    def _close(self) -> None:
        for file in (self._file, self._rows):
            if file is not None:
                file.close()
        self._file = self._rows = None

    def write(self, *lines: dict[str, object]) -> None:
        """Append the lines with one system call."""
        self.write_rows("", (), _lines(*lines))

    def write_rows(self, framework: str, rows: Iterable[Row], text: str = "") -> None:
        """Append the rows of a framework with one system call, after whole lines of JSON and what the rows point to."""
        if self._pid != os.getpid():  # a fork that ran no hook
            self.reopen()
        trainings, names = self._trainings, self._names
        with self._lock:
            if self._file is None:
                if not self._failed:
                    self.hello()
            elif not self._identity and (identity := _identity()):  # a spawned child gets its identity after its start
                self._identity = identity
                text = _lines({"k": "identity", "identity": self._identity}) + text
            numbers: dict[tuple[str, int] | str, int] = {}
            packed = b"".join(
                [
                    _PACK(
                        step,
                        trainings.get((framework, lane)) or self._number((framework, lane), numbers),
                        0
                        if (alone := len(digest) == _HEX)
                        else names.get(digest[_HEX:]) or self._number(digest[_HEX:], numbers),
                        _STAGES[stage],
                        0 if (without := value is None) else _HAS_VALUE,
                        unhexlify(digest if alone else digest[:_HEX]),
                        0.0 if without else value,
                    )
                    for step, lane, stage, digest, value in rows
                ]
            )
            if numbers:
                self._introduce(numbers, text)
                self._put(rows=packed)
            else:
                self._put(text, packed)

    def _introduce(self, numbers: dict[tuple[str, int] | str, int], text: str) -> None:
        """Append lines, and those of numbers that rows are about to point to."""
        for key, number in numbers.items():
            line = {"k": "name", "n": number, "text": key[1:]}
            if isinstance(key, tuple):
                line = {"k": "training", "n": number, "fw": key[0], "lane": key[1]}
            text += _lines(line)
        self._put(text)
        for key, number in numbers.items():  # not before their lines are written, if a signal handler raises
            if isinstance(key, tuple):
                self._trainings[key] = number
                continue
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[key] = number

    def _number(self, key: tuple[str, int] | str, numbers: dict[tuple[str, int] | str, int]) -> int:
        """Return the number of a training or a name whose line is not written yet."""
        if key not in numbers:
            self._numbers = numbers[key] = self._numbers + 1
        return numbers[key]

    def _put(self, text: str = "", rows: bytes = b"") -> None:
        if self._file is None:
            return
        try:
            if text:
                self._file.append(text.encode("ascii"))
            if rows:
                if self._rows is None:
                    self._rows = LogFile(self._path[: -len(wire.LOG_SUFFIX)] + wire.ROWS_SUFFIX)
                self._rows.append(rows)
        except OSError as error:
            guard.pass_on(error)
            # Stop writing, or more would follow what may be torn. The log then counts as incomplete.
            self._close()
            self._failed = True

    def bye(self, how: str, started: int) -> None:
        """Write the line that marks an orderly end, see wire.py."""
        try:
            rows = self._rows.size // wire.ROW.size if self._rows is not None and self._pid == os.getpid() else 0
        except OSError as error:
            guard.pass_on(error)
            return
        self.write({"k": "bye", "how": how, "started": started, "rows": rows})

    def trouble(self, where: str, error: BaseException) -> None:
        """Record that the recorder failed, up to a maximum number of times.

        It did not if a signal handler of the script raised this error, which is raised again.
        """
        guard.pass_on(error)
        self._troubles += 1
        if self._troubles <= _MOST_TROUBLES:
            self.write({"k": "trouble", "where": where, "error": f"{type(error).__name__}: {error}"[:500]})

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception, which never reaches the script; but see ``trouble``."""
        try:
            function()
        except Exception as error:
            self.trouble(where, error)


# Hold the events of one training until their step has ended.


class PendingEvents:
    """The rows and lines of one training that are not written yet."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._lines: list[tuple[int, str]] = []

    def add(self, *row: Any) -> None:
        """Add a row."""
        self._rows.append(row)

    def add_line(self, step: int, fields: dict[str, Any]) -> None:
        """Add a line, which is written with a step; with the first one if ``step`` is 0."""
        self._lines.append((step, _lines(fields)))

    def clear(self, after: int = -1) -> None:
        """Drop what belongs to the steps after this one; by default, all of it."""
        self._rows = [row for row in self._rows if row[0] <= after]
        self._lines = [line for line in self._lines if line[0] <= after]

    def through(self, steps: int) -> tuple[Sequence[Row], str]:
        """Return and drop the rows and the lines up to this step.

        The others are kept: a backward pass without an update, such as a probe for a batch size, is no step.
        """
        if not steps:
            return (), ""
        rows, self._rows, text = self._rows, [row for row in self._rows if row[0] > steps], ""
        if self._rows:
            rows = [row for row in rows if row[0] <= steps]
        if self._lines:
            lines, self._lines = self._lines, [line for line in self._lines if line[0] > steps]
            text = "".join([line for step, line in lines if step <= steps])
        return rows, text
