"""Commands on a real terminal."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping

from tests.process.conftest import Project


def terminal_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a terminal, with ``env``."""
    return {**os.environ, "TERM": "xterm", **(env or {})}


@contextlib.contextmanager
def a_terminal(columns: int) -> Iterator[tuple[int, int]]:
    """Yield the two ends of a terminal with so many columns: that of who looks, and that of programs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def seen(ours: int) -> str:
    """Return all that programs write to a terminal until the last of them closes it."""
    found = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 65536):
            found += part
    return found.decode().replace("\r\n", "\n")


def on_a_terminal(project: Project, *words: str, columns: int = 80, env: Mapping[str, str] | None = None) -> str:
    """Return what a command writes to a terminal, stdout and stderr together."""
    with a_terminal(columns) as (ours, theirs):
        done = subprocess.Popen(
            project.command(*words),
            cwd=project.folder,
            env=terminal_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        text = seen(ours)
        done.wait(timeout=120)
    return text
