"""Read a file in a process of its own, because a library in C may crash or hang on one that is damaged."""

import json
import os
import select
import signal
from collections.abc import Callable, Iterator
from typing import IO, NoReturn

from detaudit.auditor.evidence.formats import BROKEN, Part
from detaudit.launch import orphans

SECONDS = 60.0
"""How long the next piece may take."""

ALONE = 600
"""How many seconds a fork lives on that nobody kills."""

_MOST = 2**20
_PART, _PIECE, _END, _ERROR = b"P", b"D", b"E", b"X"


def parts(read: Callable[[], Iterator[Part]]) -> Iterator[Part]:
    """Yield the parts that ``read`` yields in a fork of this process.

    Raises what it raises, as OSError or ValueError, and ValueError if it crashes or hangs.
    """
    ours, theirs = os.pipe()
    with orphans.lock:
        child = os.fork()
        if not child:
            _send(theirs, read)
        orphans.keep(child)
    os.close(theirs)
    try:
        yield from _received(ours)
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        orphans.forget(child)


def _send(descriptor: int, read: Callable[[], Iterator[Part]]) -> NoReturn:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ALONE)
        with open(descriptor, "wb") as file:
            try:
                for part in read():
                    _put(file, _PART, json.dumps([part.name, part.dtype, part.shape]).encode())
                    for piece in part.pieces:
                        _put(file, _PIECE, piece)
                _put(file, _END, b"")
            except BROKEN as error:
                _put(file, _ERROR, json.dumps([isinstance(error, OSError), str(error)]).encode())
    finally:
        os._exit(0)


def _put(file: IO[bytes], kind: bytes, data: bytes) -> None:
    signal.alarm(ALONE)
    file.write(kind + len(data).to_bytes(8, "little") + data)


def _received(descriptor: int) -> Iterator[Part]:
    kind, data = _frame(descriptor)

    def pieces() -> Iterator[bytes]:
        nonlocal kind, data
        while (kind := (frame := _frame(descriptor))[0]) == _PIECE:
            yield frame[1]
        data = frame[1]

    while kind == _PART:
        name, dtype, shape = json.loads(data)
        yield Part(name, pieces(), dtype, tuple(shape))
    if kind == _ERROR:
        of_file, message = json.loads(data)
        raise OSError(message) if of_file else ValueError(message)


def _frame(descriptor: int) -> tuple[bytes, bytes]:
    head = _taken(descriptor, 9)
    return head[:1], _taken(descriptor, int.from_bytes(head[1:], "little"))


def _taken(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not select.select([descriptor], [], [], SECONDS)[0]:
            raise ValueError("reading it takes too long")
        piece = os.read(descriptor, min(_MOST, size - len(data)))
        if not piece:
            raise ValueError("reading it crashed")
        data += piece
    return bytes(data)
