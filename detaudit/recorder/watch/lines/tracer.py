"""Records which lines of the user's own code run in each step, and what they assign."""

from __future__ import annotations

import sys
import threading

from ...process import frames
from .names import Lines
from .record import Record
from .values import can_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from ..stream import OpStream
    from .names import Name

    Trace = Callable[[FrameType, str, Any], Any]

_MOST_CODES = 20_000
_MISSING = object()


def install(stream: OpStream) -> None:
    """Trace this process: its threads from their start, and the thread that trains while the window is open."""
    if sys.gettrace() is not None or getattr(threading, "_trace_hook", None) is not None:
        stream.trouble("lines", RuntimeError("a debugger or a coverage tool traces this process already"))
        return
    tracer = Tracer(stream)
    threading.settrace(tracer.call)
    stream.when_open(tracer.opened)
    stream.when_over(tracer.finish, tracer.forget)


class _Frame:
    """Traces one frame of the user's code. The frame itself is not kept: it holds the user's objects."""

    __slots__ = ("_known", "_line", "_lines", "_tracer")

    def __init__(self, tracer: Tracer, lines: Lines, line: int) -> None:
        self._tracer, self._lines, self._line = tracer, lines, line
        self._known: dict[str, str] = {}

    def trace(self, frame: FrameType, event: str, result: Any) -> Trace:
        """Take notice of what Python says about this frame."""
        if self._tracer.stream.open and event in ("line", "return"):
            try:
                if event == "line":
                    self._begins(frame)
                else:
                    self._returns(frame, result)
            except Exception as error:
                self._tracer.failed(error)
        return self.trace

    def enters(self, frame: FrameType) -> None:
        """Look at the arguments of a call."""
        self._look(frame, self._lines.first, self._lines.arguments)

    def _begins(self, frame: FrameType) -> None:
        line, tracer = frame.f_lineno, self._tracer
        if self._line:
            self._look(frame, self._line, self._lines.between(self._line, line))
        record = tracer.record()
        record.turn(tracer.stream.step(False))
        record.paths.add((self._lines.file, line))
        self._line = line

    def _returns(self, frame: FrameType, result: Any) -> None:
        self._look(frame, self._line, self._lines.between(self._line, 0))
        lines, record = self._lines, self._tracer.record()
        if result is not None and lines.gives and record.is_due(lines.file, self._line, lines.gives):
            told = record.values.told(lines.gives, result)
            if ":" in told.digest:
                record.assigned(lines.file, self._line, lines.gives, told)

    def _look(self, frame: FrameType, line: int, names: list[Name]) -> None:
        file, record = self._lines.file, self._tracer.record()
        for name in names:
            if record.is_due(file, line, name.text):
                value = _value(frame, name)
                if value is not _MISSING and (name.stored or can_change(value)):
                    self._compare(record, line, name, value)

    def _compare(self, record: Record, line: int, name: Name, value: Any) -> None:
        """Write what a name holds where it was assigned to, or turns out to hold something else than before."""
        file = self._lines.file
        known = self._tracer.globals.setdefault(file, {}) if name.in_globals else self._known
        told, before = record.values.told(name.text, value), known.get(name.text)
        known[name.text] = told.digest
        # What is known by its type alone is told once; what is only used, where it changed since it was looked at.
        if told.digest == before and not (name.stored and ":" in told.digest):
            return
        if name.stored or before is not None:
            record.assigned(file, line, name.text, told)


def _value(frame: FrameType, name: Name) -> Any:
    space: Any = frame.f_globals if name.in_globals else frame.f_locals
    if not name.of:
        return space.get(name.text, _MISSING)
    held = space.get(name.of, _MISSING)
    try:  # past properties, which are the user's code
        return object.__getattribute__(held, "__dict__").get(name.text[len(name.of) + 1 :], _MISSING)
    except (AttributeError, TypeError):
        return _MISSING


class Tracer:
    """The trace functions of a process, and the records of its threads."""

    def __init__(self, stream: OpStream) -> None:
        self.stream = stream
        self.globals: dict[str, dict[str, str]] = {}
        self._codes: dict[int, Lines] = {}
        self.forget()

    def forget(self) -> None:
        """Start anew, as in a forked child, where the thread that forked is the only one."""
        self._local = threading.local()
        self._records: list[Record] = []
        self._named: dict[str, int] = {}

    def record(self) -> Record:
        """Return the record of this thread."""
        record: Record | None = getattr(self._local, "record", None)
        if record is None:
            self._let_go()
            name = threading.current_thread().name
            count = self._named[name] = self._named.get(name, 0) + 1
            record = self._local.record = Record(self.stream, name if count == 1 else "%s#%d" % (name, count))
            self._records.append(record)
        return record

    def _let_go(self) -> None:
        """Write the records of threads that have ended."""
        ended = [record for record in self._records if record.has_ended]
        self._records = [record for record in self._records if record not in ended]
        for record in ended:
            record.write(ended=True)

    def call(self, frame: FrameType, event: str, _: Any) -> Trace | None:
        """Decide whether a frame that begins, or goes on, is traced. Python calls this for every function."""
        file = frame.f_code.co_filename
        if event != "call" or not frames.is_users(file) or file[:1] == "<":
            return None
        try:
            trace = frame.f_trace
            if isinstance(getattr(trace, "__self__", None), _Frame):  # a generator that goes on
                return trace
            traced = _Frame(self, self._lines(frame.f_code), 0)
            if self.stream.open:
                traced.enters(frame)
            return traced.trace
        except Exception as error:
            self.failed(error)
            return None

    def _lines(self, code: CodeType) -> Lines:
        # Code is not looked up as itself: its hash is that of all its constants.
        lines = self._codes.get(id(code))
        if lines is None:
            if len(self._codes) >= _MOST_CODES:
                self._codes = {}
            lines = self._codes[id(code)] = Lines(code)
        return lines

    def failed(self, error: Exception) -> None:
        """Record a failure; hand on what a signal handler of the user's raised in the midst of ours."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is not None and frames.is_users(traceback.tb_frame.f_code.co_filename):
            raise error
        self.stream.trouble("lines", error)

    def opened(self, is_open: bool) -> None:
        """Begin or end tracing in the thread that trains."""
        if is_open:
            self._follow(sys._getframe(1))
            sys.settrace(self.call)
        elif self._records:
            self._let_go()
            for record in self._records:
                record.write()
            if self._is_traced():
                sys.settrace(None)

    def _follow(self, frame: FrameType | None) -> None:
        """Trace the functions that are running already."""
        while frame is not None:
            file = frame.f_code.co_filename
            if frames.is_users(file) and file[:1] != "<" and frame.f_trace is None:
                frame.f_trace = _Frame(self, self._lines(frame.f_code), frame.f_lineno).trace
            frame = frame.f_back

    def _is_traced(self) -> bool:
        ours = sys.gettrace() == self.call
        if not ours:
            self.stream.trouble("lines", RuntimeError("something else began to trace this process"))
        return ours

    def finish(self) -> None:
        """Write what is left before the process ends."""
        if self.stream.open:
            self._let_go()
            for record in self._records:
                record.write(ended=record.is_main)
            self._is_traced()
        self.stream.flush()
