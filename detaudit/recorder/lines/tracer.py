"""Record which lines of user code ran in a step, and which files they opened."""

from __future__ import annotations

import os
import sys
import threading
import weakref

from ..process import frames
from ..training import digest
from .values import Lines, Values, can_change

# Record which line of user code reads which file below the working directory.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ..process.stream import OpStream
    from .values import Description


_MOST = 1000


def install_opened(stream: OpStream) -> None:
    """Write each file that is opened for reading, once per line of code; see ``opened`` in wire.py."""
    root = os.getcwd() + os.sep
    seen: set[tuple[str, str, int]] = set()

    def opened(path: Any, flags: Any, frame: FrameType | None) -> None:
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int) or flags & (os.O_WRONLY | os.O_CREAT):
            return
        name = os.path.join(root, os.fsdecode(path))
        user_frame = frames.user_frame(frame) if name.startswith(root) and len(seen) < _MOST else None
        if user_frame is None:
            return
        file, line = frames.location(user_frame)
        key = (name[len(root) :], file, line)
        if key not in seen and not name.endswith((".py", ".pyc")):
            seen.add(key)
            stream.write("opened", path=key[0], file=file, line=line)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and stream.open:
            try:
                opened(arguments[0], arguments[2], sys._getframe().f_back)  # Python opens the script without a frame
            except Exception as error:
                stream.trouble("open", error)

    sys.addaudithook(hook)


# Record which lines a thread ran in a step, as sequences without repeated lines, each written once and counted.

if TYPE_CHECKING:
    from typing import Any

    from ..process.stream import OpStream

    Place = tuple[str, int]

_MOST_SEQUENCES = 20_000
"""Sequences of one step. A loop whose iterations run the same lines is one sequence, no matter how often it runs."""

_MOST_PLACES = 200_000
"""Lines that are kept in memory to recognize sequences. A thread that exceeds this starts to number them again."""

_MASK = (1 << 64) - 1


class Paths:
    """The lines that one thread ran in the current step."""

    def __init__(self, stream: OpStream, thread: str) -> None:
        self._stream, self._thread = stream, thread
        self.lines = 0
        self._sequence: dict[Place, None] = {}
        self._known: dict[tuple[Place, ...], int] = {}
        self._places = 0
        self._ran: list[list[int]] = []
        self._more, self._rest = 0, 0
        self._ended = False

    def add(self, location: Place) -> None:
        """Add the line that runs next."""
        self.lines += 1
        self._ended = False
        if self._more:
            self._roll(location)
            return
        if location in self._sequence:
            self._close()
        self._sequence[location] = None

    def _roll(self, location: Place) -> None:
        self._more += 1
        self._rest = (
            self._rest * 0x9E3779B97F4A7C15 + digest.small(b"%d %s" % (location[1], _bytes(location[0])))
        ) & _MASK

    def _close(self) -> None:
        """Count the sequence that ends here. If there is no room left, only digest it."""
        sequence, self._sequence = tuple(self._sequence), {}
        if not sequence:
            return
        number = self._known.get(sequence)
        if number is not None and self._ran and self._ran[-1][0] == number:
            self._ran[-1][1] += 1
        elif len(self._ran) >= _MOST_SEQUENCES or self._places > 2 * _MOST_PLACES:
            for location in sequence:
                self._roll(location)
        else:
            self._ran.append([self._number(sequence) if number is None else number, 1])

    def _number(self, sequence: tuple[Place, ...]) -> int:
        number = self._known[sequence] = len(self._known)
        self._places += len(sequence)
        files: list[tuple[str, list[int]]] = []
        for file, line in sequence:
            if not files or files[-1][0] != file:
                files.append((file, []))
            files[-1][1].append(line)
        self._stream.write("path", thread=self._thread, id=number, lines=files)
        return number

    def write(self, step: int, ended: bool = False) -> None:
        """Write the lines that ran since the last call. Set ``ended`` if this thread has ended."""
        self._close()
        if self._ran or self._more or ended > self._ended:
            fields: dict[str, Any] = {"thread": self._thread, "step": step, "paths": self._ran}
            if self._more:
                fields["more"] = [self._more, "%016x" % self._rest]
            if ended:
                fields["ended"] = self._ended = True
            self._stream.write("line", **fields)
        self._ran, self._more, self._rest = [], 0, 0
        if self._places > _MOST_PLACES:
            self._known, self._places = {}, 0


def _bytes(file: str) -> bytes:
    return file.encode("utf-8", "surrogateescape")


# Record the lines and assignments of one thread in the current step.


_MOST_ASSIGNED = 2_000
"""Values that are written at most per thread and step."""

_ALWAYS = 12
"""A name is checked after a line this many times per step, then at each power of two."""


class Record:
    """The lines and assignments of one thread in the current step."""

    def __init__(self, stream: OpStream, name: str) -> None:
        thread = threading.current_thread()
        self._thread, self.is_main = weakref.ref(thread), thread is threading.main_thread()
        self._stream, self._name = stream, name
        self.paths, self.values = Paths(stream, name), Values()
        self._begin(stream.step(False))

    def _begin(self, step: int) -> None:
        self._step = step
        self._assigned = 0
        self._checks: dict[tuple[str, int, str], int] = {}

    def enter_step(self, step: int) -> None:
        """Write the previous step, if ``step`` is a new one."""
        if step != self._step:
            self.write()
            self._begin(step)

    def write(self, ended: bool = False) -> None:
        """Write the lines that ran since the last call."""
        self.paths.write(self._step, ended)

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended."""
        thread = self._thread()
        return thread is None or not thread.is_alive()

    def is_due(self, file: str, line: int, name: str) -> bool:
        """Count a check of a name after a line, and return whether to do it; see _ALWAYS."""
        key = file, line, name
        count = self._checks[key] = self._checks.get(key, 0) + 1
        return (count <= _ALWAYS or count & (count - 1) == 0) and self._assigned < _MOST_ASSIGNED

    def assigned(self, file: str, line: int, name: str, description: Description) -> None:
        """Write the value of a name after a line."""
        self._assigned += 1
        number, (digest, bag, text) = self._stream.next_number(), description
        position = {"thread": self._name, "at": self.paths.lines, "step": self._step, "file": file, "line": line}
        self._stream.write("assigned", n=number, **position, name=name, digest=digest, bag=bag, text=text)


# Record which lines of user code run in each step, and what they assign.

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from ..process.stream import OpStream
    from .values import Name

    Trace = Callable[[FrameType, str, Any], Any]

_MOST_CODES = 20_000
_MISSING = object()


def install(stream: OpStream) -> None:
    """Trace this process: new threads from their start, and the training thread while the window is open."""
    if sys.gettrace() is not None or getattr(threading, "_trace_hook", None) is not None:
        stream.trouble("lines", RuntimeError("cannot record lines: a debugger or a coverage tool traces this process"))
        return
    tracer = Tracer(stream)
    threading.settrace(tracer.call)
    stream.when_open(tracer.opened)
    stream.when_over(tracer.finish, tracer.forget)


class _Frame:
    """Traces one frame of user code, without keeping the frame, which holds the user's objects."""

    __slots__ = ("_known", "_line", "_lines", "_tracer")

    def __init__(self, tracer: Tracer, lines: Lines, line: int) -> None:
        self._tracer, self._lines, self._line = tracer, lines, line
        self._known: dict[str, str] = {}

    def trace(self, frame: FrameType, event: str, result: Any) -> Trace:
        """Handle an event that Python reports for this frame."""
        if self._tracer.stream.open and event in ("line", "return"):
            try:
                if event == "line":
                    self._on_line(frame)
                else:
                    self._on_return(frame, result)
            except Exception as error:
                self._tracer.failed(error)
        return self.trace

    def on_call(self, frame: FrameType) -> None:
        """Record the arguments of a call."""
        self._check(frame, self._lines.first, self._lines.arguments)

    def _on_line(self, frame: FrameType) -> None:
        line, tracer = frame.f_lineno, self._tracer
        if self._line:
            self._check(frame, self._line, self._lines.between(self._line, line))
        record = tracer.record()
        record.enter_step(tracer.stream.step(False))
        record.paths.add((self._lines.file, line))
        self._line = line

    def _on_return(self, frame: FrameType, result: Any) -> None:
        self._check(frame, self._line, self._lines.between(self._line, 0))
        lines, record = self._lines, self._tracer.record()
        if result is not None and lines.returns and record.is_due(lines.file, self._line, lines.returns):
            description = record.values.describe(lines.returns, result)
            if ":" in description.digest:
                record.assigned(lines.file, self._line, lines.returns, description)

    def _check(self, frame: FrameType, line: int, names: list[Name]) -> None:
        file, record = self._lines.file, self._tracer.record()
        for name in names:
            if record.is_due(file, line, name.text):
                value = _value(frame, name)
                if value is not _MISSING and (name.stored or can_change(value)):
                    self._compare(record, line, name, value)

    def _compare(self, record: Record, line: int, name: Name, value: Any) -> None:
        """Write the value of a name if the line assigned it, or if it differs from the value at the last check."""
        file = self._lines.file
        known = self._tracer.globals.setdefault(file, {}) if name.in_globals else self._known
        description, before = record.values.describe(name.text, value), known.get(name.text)
        known[name.text] = description.digest
        # Values known only by type are reported once; values that are only read, when they have changed.
        if description.digest == before and not (name.stored and ":" in description.digest):
            return
        if name.stored or before is not None:
            record.assigned(file, line, name.text, description)


def _value(frame: FrameType, name: Name) -> Any:
    space: Any = frame.f_globals if name.in_globals else frame.f_locals
    if not name.of:
        return space.get(name.text, _MISSING)
    owner = space.get(name.of, _MISSING)
    try:  # without calling properties, which are user code
        return object.__getattribute__(owner, "__dict__").get(name.text[len(name.of) + 1 :], _MISSING)
    except (AttributeError, TypeError):
        return _MISSING


class Tracer:
    """Traces a process, and keeps the records of its threads."""

    def __init__(self, stream: OpStream) -> None:
        self.stream = stream
        self.globals: dict[str, dict[str, str]] = {}
        self._codes: dict[int, Lines] = {}
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child, where the thread that forked is the only one."""
        self._local = threading.local()
        self._records: list[Record] = []
        self._named: dict[str, int] = {}

    def record(self) -> Record:
        """Return the record of this thread."""
        record: Record | None = getattr(self._local, "record", None)
        if record is None:
            self._write_ended()
            name = threading.current_thread().name
            count = self._named[name] = self._named.get(name, 0) + 1
            record = self._local.record = Record(self.stream, name if count == 1 else "%s#%d" % (name, count))
            self._records.append(record)
        return record

    def _write_ended(self) -> None:
        """Write the records of threads that have ended."""
        ended = [record for record in self._records if record.has_ended]
        self._records = [record for record in self._records if record not in ended]
        for record in ended:
            record.write(ended=True)

    def call(self, frame: FrameType, event: str, _: Any) -> Trace | None:
        """Decide whether to trace a frame that starts or resumes. Python calls this for every function."""
        file = frame.f_code.co_filename
        file = file if file[:1] != "<" else frames.file_of(frame)
        if event != "call" or not frames.is_user_code(file) or file[:1] == "<":
            return None
        try:
            trace = frame.f_trace
            if isinstance(getattr(trace, "__self__", None), _Frame):  # a generator that resumes
                return trace
            traced = _Frame(self, self._lines(frame.f_code, file), 0)
            if self.stream.open:
                traced.on_call(frame)
            return traced.trace
        except Exception as error:
            self.failed(error)
            return None

    def _lines(self, code: CodeType, file: str) -> Lines:
        # Not keyed by the code itself, whose hash includes all its constants.
        lines = self._codes.get(id(code))
        if lines is None:
            if len(self._codes) >= _MOST_CODES:
                self._codes = {}
            lines = self._codes[id(code)] = Lines(code, file)
        return lines

    def failed(self, error: Exception) -> None:
        """Record a failure, or raise it again if it came from user code: a signal handler may run inside the tracer."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is not None and frames.is_user_code(frames.file_of(traceback.tb_frame)):
            raise error
        self.stream.trouble("lines", error)

    def opened(self, is_open: bool) -> None:
        """Start or stop tracing in the training thread."""
        if is_open:
            self._trace_running(sys._getframe().f_back)
            sys.settrace(self.call)
        elif self._records:
            self._write_ended()
            for record in self._records:
                record.write()
            if self._is_traced():
                sys.settrace(None)

    def _trace_running(self, frame: FrameType | None) -> None:
        """Trace the functions that are running already."""
        while frame is not None:
            file = frames.file_of(frame)
            if frames.is_user_code(file) and file[:1] != "<" and frame.f_trace is None:
                frame.f_trace = _Frame(self, self._lines(frame.f_code, file), frame.f_lineno).trace
            frame = frame.f_back

    def _is_traced(self) -> bool:
        ours = sys.gettrace() == self.call
        if not ours:
            self.stream.trouble("lines", RuntimeError("the script replaced the trace function of this process"))
        return ours

    def finish(self) -> None:
        """Write the remaining records before the process ends."""
        if self.stream.open:
            self._write_ended()
            for record in self._records:
                record.write(ended=record.is_main)
            self._is_traced()
        self.stream.flush()
