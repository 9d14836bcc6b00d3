"""A reader that crashes or hangs does so alone."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from detaudit.runs.formats import Part, apart


def two() -> Iterator[Part]:
    yield Part("a", iter([b"1" * 3_000_000, b"2"]), "<f4", (2, 3))
    yield Part("é", iter([]), "", ())


def test_parts_come_as_they_are() -> None:
    found = [(part.name, part.dtype, part.shape, b"".join(part.pieces)) for part in apart.parts(two)]
    assert found == [("a", "<f4", (2, 3), b"1" * 3_000_000 + b"2"), ("é", "", (), b"")]


def fails(error: Exception) -> Callable[[], Iterator[Part]]:
    def read() -> Iterator[Part]:
        yield from two()
        raise error

    return read


def crashes() -> Iterator[Part]:
    yield from two()
    os.kill(os.getpid(), signal.SIGKILL)


def hangs() -> Iterator[Part]:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    time.sleep(1000)
    yield from two()


@pytest.mark.parametrize(
    ("read", "kind", "message"),
    [
        (fails(OSError("no file")), OSError, "no file"),
        (fails(KeyError("x")), ValueError, "'x'"),
        (crashes, ValueError, "reading it crashed"),
        (hangs, ValueError, "reading it takes too long"),
    ],
)
def test_what_goes_wrong_is_an_error(
    read: Callable[[], Iterator[Part]], kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "SECONDS", 0.5)
    with pytest.raises(kind, match=message):
        [list(part.pieces) for part in apart.parts(read)]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_fork_ends_even_if_nobody_kills_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "ALONE", 1)
    with pytest.raises(ValueError, match="reading it crashed"):
        list(apart.parts(hangs))


def test_a_reader_that_is_given_up_is_ended() -> None:
    found = apart.parts(two)
    next(found)
    found.close()  # type: ignore[attr-defined]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
