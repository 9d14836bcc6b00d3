"""Write the event log of one process: append-only, one write per step, silent if it cannot write."""

from __future__ import annotations

import os
import sys

from ... import redact, wire
from . import handlers
from .log_file import LogFile
from .ranks import attempt, rank_and_world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
        handlers.pass_on(error)
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
                found = LogFile(path, new=True)
                self._path = path
                return found
            except FileExistsError as error:
                handlers.pass_on(error)
            except OSError as error:
                handlers.pass_on(error)
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
        elif not self._identity and (found := _identity()):  # a spawned child gets its identity after its start
            self._identity = found
            text = encode({"k": "identity", "identity": self._identity}) + "\n" + text
        self._put(text)

    def _put(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.append(text)
        except OSError as error:
            handlers.pass_on(error)
            # Stop writing, or more lines would follow one that may be torn. The log then counts as incomplete.
            self._file.close()
            self._file, self._failed = None, True

    def trouble(self, where: str, error: BaseException) -> None:
        """Record that the recorder failed, up to a maximum number of times.

        It did not if a signal handler of the script raised this error, which is raised again.
        """
        handlers.pass_on(error)
        self._troubles += 1
        if self._troubles <= _MOST_TROUBLES:
            self.write({"k": "trouble", "where": where, "error": f"{type(error).__name__}: {error}"[:500]})

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception, which never reaches the script; but see ``trouble``."""
        try:
            function()
        except Exception as error:
            self.trouble(where, error)
