"""Read what a run prints through a pipe, keep it in a file of limited size, and record it as text.

The run writes to the pipe, never to the file: it can neither overwrite what it printed before, nor make the file larger
than it may be. A thread reads the pipe at once, so the run waits only while its output comes faster than it is read.
"""

import contextlib
import fcntl
import os
import select
import threading
import time
from pathlib import Path

from detaudit import private
from detaudit.model.outputs import Text
from detaudit.outputs.text import Recorder

LIMIT = 64 * 2**20
"""Maximum size of a log in bytes. Of a longer output, the end is kept."""

TAIL = 2**20
_CUT = b"[detaudit: "
_NOTICE = 100
_CHUNK = 2**20
_PIPE = 2**20
"""Bytes that a run can print before it waits for the reader; unprivileged users may not ask for more on Linux."""

_DRAIN_S = 5.0
"""Seconds for which a process that cannot be ended, and goes on printing, is listened to after the end of the run."""


class Log:
    """The log of one stream, and its text. A run writes to ``input``, a descriptor that only its processes inherit."""

    def __init__(self, path: Path, recorder: Recorder) -> None:
        """Start to read. Raises OSError if the file cannot be written."""
        self._file = _BoundedFile(path)
        self._recorder = recorder
        self._error: BaseException | None = None
        self.text: Text | None = None
        output, self.input = os.pipe()
        self._open = True
        self._wake, self._waker = os.pipe()
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE)
        os.set_blocking(output, False)
        self._thread = threading.Thread(target=self._read, args=(output,), name=f"reader of {path.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End, once all is read that processes of the run printed. Those that still hold the pipe are not awaited.

        Raises OSError if not all could be written, unless something else was raised.
        """
        self.started()
        os.close(self._waker)
        self._thread.join()
        os.close(self._wake)
        if kind is None:
            self.check()

    def started(self) -> None:
        """Note that the run has the descriptor, so that its own end is also the end of the pipe."""
        if self._open:
            self._open = False
            os.close(self.input)

    def check(self) -> None:
        """Raise OSError if the log cannot be written: nothing that the run prints is kept any more."""
        if self._error is not None:
            raise self._error

    def _read(self, output: int) -> None:
        try:
            with self._file:
                self._read_all(output)
            self.text = self._recorder.finish()
        except BaseException as error:  # noqa: BLE001  (raised by check)
            self._error = error
        finally:
            os.close(output)

    def _read_all(self, output: int) -> None:
        ready = select.poll()
        ready.register(output, select.POLLIN)
        ready.register(self._wake, select.POLLIN)
        until: float | None = None
        while until is None or time.monotonic() < until:
            if until is None and any(one == self._wake for one, _ in ready.poll()):
                until = time.monotonic() + _DRAIN_S
            try:
                data = os.read(output, _CHUNK)
            except BlockingIOError:
                if until is not None:
                    return
                continue
            if not data:
                return
            self._file.write(data)
            self._recorder.feed(data)


class _BoundedFile:
    """A file that is cut to its end whenever it is too long, with a notice of how much is missing in front."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b", buffering=0, opener=private.opener)  # noqa: SIM115
        self._size = self._dropped = 0

    def __enter__(self) -> "_BoundedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        """Append. Raises OSError if it cannot be written."""
        for at in range(0, len(data), TAIL):
            self._append(data[at : at + TAIL])

    def _append(self, data: bytes) -> None:
        if self._size + len(data) > LIMIT:
            start = _NOTICE if self._dropped else 0
            kept = os.pread(self._file.fileno(), TAIL, max(start, self._size - TAIL))
            self._dropped += self._size - start - len(kept)
            self._file.truncate(0)
            self._file.seek(0)
            self._size = 0
            self._put(self._notice())
            self._put(kept)
        self._put(data)

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = self._file.write(view)
            self._size += written
            view = view[written:]

    def _notice(self) -> bytes:
        line = _CUT + b"%d bytes of output were dropped]" % self._dropped
        return line.ljust(_NOTICE - 1) + b"\n"


def was_cut(log: Path) -> bool:
    """Return whether a log is incomplete. Raises OSError if it cannot be read."""
    with log.open("rb") as file:
        return file.read(len(_CUT)) == _CUT
