"""One saved call, repeated under one condition."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import subprocess
import sys
import time

# Fill memory with a pattern whenever it is allocated, by glibc's own means.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


_M_PERTURB = -6
"""From malloc.h. Allocated memory is filled with the complement of the lowest byte of the value, and 0 turns it off.

The caches of threads are not filled: glibc.malloc.tcache_count=0 in GLIBC_TUNABLES turns them off.
"""


class Filling:
    """Fills memory with one of ``bytes`` after the other, or leaves it as it is if there are none."""

    def __init__(self, fills: Sequence[int]) -> None:
        self.bytes = tuple(fills) or (-1,)
        self._number = 0
        self._option: Callable[[int, int], int] | None = ctypes.CDLL(None).mallopt if fills else None

    def next(self, fill_device: Callable[[int], None]) -> str:
        """Use the next byte for what is allocated from now on, and return it in hexadecimal, ``""`` for none."""
        byte = self.bytes[self._number % len(self.bytes)]
        self._number += 1
        if self._option is None:
            return ""
        self._option(_M_PERTURB, byte ^ 0xFF)
        fill_device(byte)
        return "%02x" % byte

    def stop(self) -> None:
        """Leave memory as it is."""
        if self._option is not None:
            self._option(_M_PERTURB, 0)


# Repeat a call under one condition, count how often each result comes out, and write that as JSON.


_MOST_ERROR = 500


def main(path: str) -> None:
    """Do what the request at ``path`` says. The result is there even if the call cannot be made."""
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    sys.path[:] = request["call"]["path"]
    result: dict[str, Any] = {}
    try:
        result = _repeated(request)
    except Exception as error:
        result = {"failed": _text(error)}
    with open(request["result"], "w", encoding="utf-8") as file:
        json.dump(result, file)


def _repeated(request: dict[str, Any]) -> dict[str, Any]:
    framework = importlib.import_module(f".{request['call']['framework']}_call", __package__)
    call = framework.Call(request["call"], request["folder"], request["condition"])
    with _busy(request["busy"], request["condition"]["load"]):
        series = {"own": _series(call.own, call, request)}
        if call.may_differentiate and not series["own"]["error"]:
            series["gradient"] = _series(call.gradient, call, request)
    return {**series, "threads": call.threads}


@contextlib.contextmanager
def _busy(script: str, processes: int) -> Iterator[None]:
    """Keep CPUs busy inside this block: not while a framework is imported, which would take several times as long."""
    words = [sys.executable, "-I", "-S", script, str(os.getpid())]
    started = [subprocess.Popen(words) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _series(repeat: Callable[[], str | None], call: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Repeat until so many repeats are done, or so many seconds after the first one, which may import modules.

    Each byte is used at least twice.
    """
    filling = Filling(request["condition"]["fills"])
    counts: dict[str, dict[str, int]] = {}
    least, until = 2 * len(filling.bytes), float("inf")
    try:
        for number in range(max(least, request["repeats"])):
            if time.monotonic() > until and number >= least:
                break
            fill = filling.next(call.fill)
            digest = repeat()
            if digest is None:
                return {"counts": {}, "error": ""}
            series = counts.setdefault(fill, {})
            series[digest] = series.get(digest, 0) + 1
            until = min(until, time.monotonic() + request["seconds"])
    except Exception as error:
        return {"counts": counts, "error": _text(error)}
    finally:
        filling.stop()
    return {"counts": counts, "error": ""}


def _text(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return os.linesep.join(text.splitlines())[:_MOST_ERROR]
