"""Bad input, by the thousand: a loop that feeds it, and mutations of real samples that make it.

FUZZ_INPUTS is how many inputs all kinds together get under ``make test-fuzz``, FUZZ_SEED what they are made from. A
failure names its kind, seed and number; with FUZZ_INPUT set to that number, only this input is made again.
"""

import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import FrameType
from typing import Any, NoReturn, TypeVar

import pytest

T = TypeVar("T")

TOTAL = int(os.environ.get("FUZZ_INPUTS", "1_000_000"))
SEED = os.environ.get("FUZZ_SEED", "0")
ONLY = os.environ.get("FUZZ_INPUT")

QUICK = 250
"""Inputs of each kind in every test run."""

SECONDS = 60.0
"""An input that takes longer hangs; they take milliseconds, but the machine may be busy."""

MOST_MEMORY = 512 * 1024
"""KiB by which one input may raise the memory of the process."""

SHARES = {
    "event logs": 38,
    "instrumentation logs": 6,
    "lock files": 20,
    "audits": 6,
    "recipes": 1,
    "project files": 1,
    "archives": 9,
    "arrays": 9,
    "pickles": 9,
    "reports": 1,
}
"""The kinds of input, each with its part in a hundred."""


def profiles(kind: str, part: float = 1.0) -> pytest.MarkDecorator:
    """Run a test with few inputs, and with its part of the share of ``kind`` under the mark ``fuzz``."""
    share = round(TOTAL * SHARES[kind] / sum(SHARES.values()) * part)
    amounts = [pytest.param(QUICK, id="quick"), pytest.param(share, id="all", marks=pytest.mark.fuzz)]
    return pytest.mark.parametrize("inputs", amounts)


class HangError(AssertionError):
    """An input takes too long."""


def fuzz(kind: str, inputs: int, make: Callable[[Random], T], check: Callable[[T], object]) -> None:
    """Make that many inputs, and check each: in bounded time and memory, without side effects."""
    for number in range(inputs) if ONLY is None else [int(ONLY)]:
        made = make(Random(f"{kind} {SEED} {number}"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            with limited(), watched():
                check(made)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown < MOST_MEMORY, f"took {grown} KiB of memory"
        except BaseException:
            print(f"{kind}: FUZZ_SEED={SEED} FUZZ_INPUT={number} makes this input: {repr(made)[:2000]}")
            raise


@contextmanager
def limited() -> Iterator[None]:
    """Raise HangError in what takes too long."""

    def late(number: int, frame: FrameType | None) -> NoReturn:
        raise HangError(f"took more than {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


FORBIDDEN = ("pickle.", "os.", "shutil.", "subprocess.", "socket.", "ctypes.", "webbrowser.", "ftplib.", "urllib.")
ALLOWED = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.fork", "os.kill", "os.register_at_fork")
TEMPORARY = tempfile.gettempdir()
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Watch:
    """What has happened since it was set: events of sys.audit that reading a file never needs."""

    events: list[str] | None = None

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.events is None:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(flags, int) and flags & WRITING and not _is_temporary(path):
                self.events.append(f"open {path!r} {mode} {flags:o}")
        elif event.startswith(FORBIDDEN) and event not in ALLOWED and not _removes_temporary(event, arguments):
            self.events.append(f"{event} {arguments!r}")


def _is_temporary(path: Any) -> bool:
    """Whether this is a temporary file without a name, or one of detaudit."""
    return path == TEMPORARY or (isinstance(path, str) and path.startswith(os.path.join(TEMPORARY, "detaudit-")))


def _removes_temporary(event: str, arguments: tuple[Any, ...]) -> bool:
    return event == "os.remove" and _is_temporary(arguments[0])


WATCH = Watch()
sys.addaudithook(WATCH)


@contextmanager
def watched() -> Iterator[None]:
    """Fail if anything is written, started or loaded from a pickle meanwhile."""
    events: list[str] = []
    WATCH.events = events
    try:
        yield
    finally:
        WATCH.events = None
    assert not events, events


HOSTILE: tuple[str, ...] = (
    "",
    "\x00",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x08\x08\x7f",
    "a\rb",
    "a\nb",
    "a\n::error::x",
    "::error file=x::y",
    "##[error]x",
    "\u202egpj.exe",
    "\u2066x\u2069",
    "\u2028",
    "\ud800",
    "\udcff",
    "\uffff",
    "é字🎉",
    "<script>alert(1)</script>",
    "<!--",
    "]]>",
    "&amp;",
    "a|b",
    "`",
    "```",
    "[x](javascript:y)",
    "# h",
    "---",
    "../../x",
    "/etc/passwd",
    "a" * 300,
    "x" * 5000,
    "%0A%s{0}{a.b}",
    "nan",
    "1e999",
    "0x1p+9999",
    "-0x1.8p-3",
    "²",
    "\u0661",
    "2020-13-45",
    "=",
    "!!python/object:os.system",
    "*a",
)
"""Texts that break what is careless."""

NUMBERS: tuple[Any, ...] = (0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**64), 10**30, 1e308, -1e-320, 0.5, True)
TOKENS = (
    b"NaN",
    b"Infinity",
    b"1e999",
    b"-0",
    b"9" * 400,
    b"9" * 5000,
    b"null",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\n",
    b"\r\n",
    b'"',
    b"{}",
    b"[]",
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"\xef\xbb\xbf",
    b"<!ENTITY a 'b'>",
)
_DIGITS = re.compile(rb"\d+")


def text(random: Random) -> str:
    """Return a hostile text, or a few in a row."""
    return "".join(random.choice(HOSTILE) for _ in range(random.choice((1, 1, 1, 2, 3))))


def value(random: Random) -> Any:
    """Return any value that JSON and YAML can write."""
    match random.randrange(8):
        case 0 | 1 | 2:
            return text(random)
        case 3 | 4:
            return random.choice(NUMBERS)
        case 5:
            return None
        case 6:
            return [text(random), random.choice(NUMBERS)]
        case _:
            return {text(random): random.choice(NUMBERS)}


def bent(random: Random, data: bytes, samples: Sequence[bytes] = ()) -> bytes:
    """Return bytes with one to three mutations."""
    for _ in range(random.choice((1, 1, 2, 3))):
        data = _bent(random, data, samples)
    return data


def _bent(random: Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    at = random.randrange(len(data) + 1)
    other = min(len(data), at + random.choice((1, 1, 4, 16, 200)))
    match random.randrange(11):
        case 0:
            return data[:at]
        case 1 | 2:
            return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :] if at < len(data) else data
        case 3:
            return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
        case 4:
            return data[:at] + data[other:]
        case 5:
            return data[:other] + data[at:other] * random.choice((1, 1, 2, 50)) + data[other:]
        case 6 | 7:
            token = random.choice(TOKENS) if random.random() < 0.6 else text(random).encode(errors="surrogatepass")
            return data[:at] + token + data[other if random.random() < 0.5 else at :]
        case 8:
            return _renumbered(random, data)
        case 9:
            packed = random.choice((0, 1, 0x7F, 0xFF, 2**31, 2**32 - 1, 2**62, 2**64 - 1)).to_bytes(8, "little")
            width = random.choice((1, 2, 4, 8))
            return data[:at] + packed[:width] + data[at + width :]
        case _:
            found = random.choice(samples) if samples else data
            return data[:at] + found[random.randrange(len(found) + 1) :]


def _renumbered(random: Random, data: bytes) -> bytes:
    found = list(_DIGITS.finditer(data))
    if not found:
        return data
    one = random.choice(found)
    return data[: one.start()] + str(random.choice(NUMBERS)).encode() + data[one.end() :]


def changed(random: Random, tree: Any) -> Any:
    """Return a tree of dicts and lists in which one to three values are replaced, left out, repeated or added."""
    for _ in range(random.choice((1, 1, 2, 3))):
        tree = _changed(random, tree)
    return tree


def _changed(random: Random, tree: Any) -> Any:
    if not isinstance(tree, dict | list) or not tree or random.random() < 0.02:
        return value(random)
    place = random.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
    copied: Any = tree.copy()
    if isinstance(tree[place], dict | list) and tree[place] and random.random() < 0.85:
        copied[place] = _changed(random, tree[place])
        return copied
    match random.randrange(6):
        case 0:
            del copied[place]
        case 1 if isinstance(copied, list):
            copied.insert(place, copied[place])
        case 1:
            copied[text(random)] = copied[place]
        case 2 if isinstance(copied[place], str):
            copied[place] += text(random)
        case _:
            copied[place] = value(random)
    return copied
