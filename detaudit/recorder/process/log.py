"""The event log of one process: lines, one write a step."""

from __future__ import annotations

import os
import sys

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
        self._file = status.st_dev, status.st_ino

    def _is_own(self) -> bool:
        try:
            status = os.fstat(self._descriptor)
        except OSError as error:
            guard.pass_on(error)
            return False
        return (status.st_dev, status.st_ino) == self._file

    def append(self, text: str) -> None:
        """Append ASCII text with one system call. Raises OSError if not all of it could be written."""
        if not self._is_own():
            self._attach(private.opener(self.path, _OPTIONS))
        data = text.encode("ascii")
        if os.write(self._descriptor, data) < len(data):
            raise OSError("not all of a line could be written")

    def close(self) -> None:
        """Close the file."""
        if self._is_own():
            os.close(self._descriptor)


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
    from collections.abc import Callable
    from typing import Any


try:
    from _json import encode_basestring_ascii as _quote  # the C half of json, without its imports
except ImportError:  # such as on PyPy
    from json.encoder import py_encode_basestring_ascii as _quote

_MOST_TROUBLES = 20


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
    """Writes the lines of this process. A failure to write raises nothing, and shows as a missing ``bye``."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = ""
        self._file: LogFile | None = None
        self._failed = False
        self._pid = os.getpid()
        self._troubles = 0
        self._identity: list[int] = []

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
        self._put(encode(line) + "\n")

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
        if self._file is not None:
            self._file.close()
        self._file, self._failed, self._pid, self._troubles = None, False, os.getpid(), 0

    def write(self, *lines: dict[str, object]) -> None:
        """Append the lines with one system call."""
        self.append("".join([encode(line) + "\n" for line in lines]))

    def append(self, text: str) -> None:
        """Append whole lines of JSON with one system call."""
        if self._pid != os.getpid():  # a fork that ran no hook
            self.reopen()
        if self._file is None:
            if not self._failed:
                self.hello()
        elif not self._identity and (identity := _identity()):  # a spawned child gets its identity after its start
            self._identity = identity
            text = encode({"k": "identity", "identity": self._identity}) + "\n" + text
        self._put(text)

    def _put(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.append(text)
        except OSError as error:
            guard.pass_on(error)
            # Stop writing, or more lines would follow one that may be torn. The log then counts as incomplete.
            self._file.close()
            self._file, self._failed = None, True

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
    """The events of one framework that are not written yet, as lines of the event log."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        self._lines: list[tuple[int, str]] = []

    def add(self, lane: int, step: int, stage: str, digest: str, value: float | None) -> None:
        """Add an event."""
        # This runs at every step, and digests and float.hex() need no escaping.
        shown = "null" if value is None else f'"{float(value).hex()}"'
        of_lane = f'"lane":{lane},' if lane else ""
        self._lines.append(
            (
                step,
                f'{{"k":"event","fw":"{self._framework}",{of_lane}"step":{step},"stage":"{stage}",'
                f'"digest":"{digest}","value":{shown}}}\n',
            )
        )

    def add_line(self, step: int, fields: dict[str, Any]) -> None:
        """Add another line, which is written with a step; with the first one if ``step`` is 0."""
        self._lines.append((step, encode(fields) + "\n"))

    def clear(self, after: int = -1) -> None:
        """Drop the events of all steps after this one; by default, all events."""
        self._lines = [(step, line) for step, line in self._lines if step <= after]

    def through(self, steps: int) -> str:
        """Return and drop the lines up to this step.

        The others are kept: a backward pass without an update, such as a probe for a batch size, is no step.
        """
        if not steps or not self._lines:
            return ""
        lines, self._lines = self._lines, [(step, line) for step, line in self._lines if step > steps]
        if self._lines:
            return "".join([line for step, line in lines if step <= steps])
        return "".join([line for _, line in lines])
