"""Read a file in a process of its own, because a library in C may crash or hang on one that is damaged.

A library that is missing here is looked for in the interpreter that ``interpreter`` names, such as that of the script.
"""

import importlib.util
import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO, NoReturn

from detaudit.launch import processes
from detaudit.runs.formats import BROKEN, Part, libraries

SECONDS = 60.0
"""How long the next piece may take."""

ALONE = 600
"""How many seconds a fork lives on that nobody kills."""

_MOST = 2**20

interpreter: ContextVar[str] = ContextVar("interpreter", default="")
"""The path of the Python that is asked for libraries that are missing here, ``""`` for none."""

_SAFE = ("-I", "-B", "-X", "utf8")
"""Neither variables nor the working directory say what is imported, and no bytecode is written."""


def by_library(kind: str, path: Path) -> Iterator[Part]:
    """Yield what a reader of ``libraries`` yields, here or in the other interpreter.

    Raises what ``parts`` does, and ModuleNotFoundError if neither has the library.
    """
    library, read = libraries.READERS[kind]
    if _is_here(library):
        importlib.import_module(library)  # once, and not in each fork
        yield from parts(
            lambda: (
                Part(name, pieces, dtype, tuple(shape), text) for name, dtype, shape, text, pieces in read(str(path))
            )
        )
    elif interpreter.get():
        yield from _by_interpreter(interpreter.get(), kind, path)
    else:
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)


def _is_here(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ValueError:  # it was set to None
        return False


def _by_interpreter(python: str, kind: str, path: Path) -> Iterator[Part]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DETAUDIT"))}
    ours, theirs = os.pipe()
    with open(ours, "rb", buffering=0) as received:
        with open(theirs, "wb") as sent, processes.lock:
            child = subprocess.Popen(
                [python, *_SAFE, libraries.__file__, kind, str(path.absolute())],
                cwd="/",
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=sent,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            processes.keep(child.pid)
        try:
            yield from _received(received.fileno())
        finally:
            child.kill()
            child.wait()
            processes.forget(child.pid)


def parts(read: Callable[[], Iterator[Part]]) -> Iterator[Part]:
    """Yield the parts that ``read`` yields in a fork of this process.

    Raises what it raises, as OSError or ValueError, and ValueError if it crashes or hangs.
    """
    ours, theirs = os.pipe()
    with processes.lock:
        child = os.fork()
        if not child:
            _send(theirs, read)
        processes.keep(child)
    os.close(theirs)
    try:
        yield from _received(ours)
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        processes.forget(child)


def _send(descriptor: int, read: Callable[[], Iterator[Part]]) -> NoReturn:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ALONE)
        with open(descriptor, "wb") as file:
            try:
                for part in read():
                    head = [part.name, part.dtype, part.shape, part.text]
                    _put(file, libraries.PART, json.dumps(head).encode())
                    for piece in part.pieces:
                        _put(file, libraries.PIECES, piece)
                _put(file, libraries.END, b"")
            except BROKEN as error:
                kind = "file" if isinstance(error, OSError) else "value"
                _put(file, libraries.ERROR, json.dumps([kind, "", str(error)]).encode())
    finally:
        os._exit(0)


def _put(file: IO[bytes], kind: bytes, data: bytes) -> None:
    signal.alarm(ALONE)
    libraries.put(file, kind, data)


def _received(descriptor: int) -> Iterator[Part]:
    kind, data = _frame(descriptor)

    def pieces() -> Iterator[bytes]:
        nonlocal kind, data
        while (kind := (frame := _frame(descriptor))[0]) == libraries.PIECES:
            yield frame[1]
        data = frame[1]

    while kind == libraries.PART:
        name, dtype, shape, text = json.loads(data)
        rest = pieces()
        yield Part(name, rest, dtype, tuple(shape), text)
        for _ in rest:  # what was not read
            pass
    if kind == libraries.ERROR:
        of, library, message = json.loads(data)
        if of == "library":
            raise ModuleNotFoundError(message, name=library)
        raise OSError(message) if of == "file" else ValueError(message)


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
