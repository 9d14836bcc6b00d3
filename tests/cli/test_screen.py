"""Where the width of lines comes from, and whether they have colors."""

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from io import StringIO
from typing import TextIO

import pytest

from detaudit.cli import screen


@pytest.fixture(autouse=True)
def no_name_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM", raising=False)


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 72 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
    with open(theirs, "w") as stream:
        yield stream
    os.close(ours)


def test_a_pipe_has_no_width() -> None:
    assert screen.width(StringIO()) is None


def test_the_width_of_a_terminal(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    assert screen.width(terminal) == 72
    monkeypatch.setenv("COLUMNS", "0")
    assert screen.width(terminal) == 72
    monkeypatch.setenv("COLUMNS", "100")
    assert screen.width(terminal) == 100
    assert screen.width(StringIO()) == 100


def test_a_terminal_that_does_not_say_its_width(terminal: TextIO) -> None:
    fcntl.ioctl(terminal.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    assert screen.width(terminal) == screen.FALLBACK


def test_a_closed_stdout_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert screen.width() is None


def test_stdout_is_asked_unless_another_stream_is_named(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", terminal)
    assert screen.width() == 72


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"TERM": "xterm"}, None),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, None),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, None),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colors(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: bool | None) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert screen.color() is expected
