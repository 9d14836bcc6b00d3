"""A job of a scan: a JSON file that says what to repeat, answered by lines of JSON.

A job has ``framework``, ``device`` and ``lines``, the file that is extended. One that ``lists`` types of elements is
answered by a line ``item`` for each operation and type that there is, after a line ``framework`` with the version and
the number of threads. Any other has ``items`` (``[operation, type]``), ``phases`` (``name``, ``threads``, ``switch``,
``repeats``, ``seconds``), ``samples`` (numbers, or null for a choice), ``sizes`` (how an earlier job enlarged each
sample) and ``keep``, the folder for results that differ. One with a ``log`` is about the calls in it, which one step of
a script made (``noted`` and ``step``, see wire.py): their places in it are the numbers of the samples. The lines of a
job are, for each item, in this order:

``begin``: the item, before anything of it runs; a process that dies names it by this line
``case``: one direction of one sample: ``op``, ``dtype``, ``sample``, ``direction``, ``size``, ``inputs`` (a digest),
    ``shapes``, ``phases`` (by name ``results``, how often each digest was seen, or the ``error`` of the switch), and if
    results of the first phase differ ``kept``: ``part``, ``dtype``, ``shape`` and the ``files`` with its bytes
``skipped``: why a sample was not repeated
``end``: the item, after everything
"""

from __future__ import annotations

import importlib
import json
import os
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .parts import Parts

FRAMEWORKS = ("torch", "tensorflow")
"""Each is a folder here with a module ``cases``."""

FEWEST = 2
"""Repetitions that a phase has however long they take."""

MOST_KEPT = 4
"""Different results of which the bytes are kept."""

LONGEST_ERROR = 300
"""Characters of an error that are written."""


class Lines:
    """The answer: lines of JSON, each written at once, because the next operation may end the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if os.fstat(self._file).st_size:
            os.write(self._file, b"\n")  # a full disk may have cut off the last line of an earlier process

    def write(self, kind: str, value: object) -> None:
        """Write one line."""
        os.write(self._file, (json.dumps({kind: value}) + "\n").encode())


def main(path: str) -> None:
    """Do the job in this file."""
    warnings.simplefilter("ignore")
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    lines = Lines(job["lines"])
    own = ".step" if "log" in job else ".cases"
    cases = importlib.import_module("." + job["framework"] + own, __package__)
    scanned = cases.start(job["log"]) if "log" in job else cases.start(job["device"], job.get("phases", []))
    lines.write("framework", {"version": scanned.version, "threads": scanned.threads})
    if "lists" in job:
        for item in scanned.items(job["lists"]):
            lines.write("item", item)
        return
    for op, dtype in job["items"]:
        lines.write("begin", [op, dtype])
        _item(job, scanned, lines, op, dtype)
        lines.write("end", [op, dtype])


def _item(job: dict[str, Any], scanned: Any, lines: Lines, op: str, dtype: str) -> None:
    try:
        for case in scanned.cases(op, dtype, job["samples"], job["sizes"]):
            _sample(job, scanned, lines, case)
    except Exception as error:
        lines.write("skipped", {"op": op, "dtype": dtype, "error": _text(error)})


def _sample(job: dict[str, Any], scanned: Any, lines: Lines, case: Any) -> None:
    try:
        for direction, call in case.directions():
            lines.write("case", _case(job, scanned, case, direction, call))
    except Exception as error:
        lines.write("skipped", {"op": case.op, "dtype": case.dtype, "error": _text(error)})


def _case(job: dict[str, Any], scanned: Any, case: Any, direction: str, call: Callable[[], Any]) -> dict[str, Any]:
    """Repeat one direction of a sample in each phase."""
    row = {"op": case.op, "dtype": case.dtype, "sample": case.sample, "direction": direction, "size": case.size}
    row.update(inputs=case.inputs, shapes=case.shapes, phases={})
    for number, phase in enumerate(job["phases"]):
        repetitions = Repetitions(call, scanned.parts)
        try:
            with scanned.phase(phase["threads"], phase["switch"]):
                repetitions.run(phase["repeats"], phase["seconds"])
        except Exception as error:
            if not phase["switch"]:  # it fails by itself
                raise
            row["phases"][phase["name"]] = {"error": _text(error)}
            continue
        row["phases"][phase["name"]] = {"results": repetitions.counts}
        if number == 0 and job["keep"] and len(repetitions.counts) > 1:
            name = "%s-%s-%s-%s" % (case.op.replace("/", "-"), case.dtype, case.sample, direction)
            row["kept"] = repetitions.keep(os.path.join(job["keep"], name))
    return row


class Repetitions:
    """What a call returned, each time that it was repeated: how often each digest was seen."""

    def __init__(self, call: Callable[[], Any], parts: Callable[[Any], Parts]) -> None:
        self._call, self._parts = call, parts
        self.counts: dict[str, int] = {}
        self._kept: list[list[Any]] = []

    def run(self, repeats: int, seconds: float) -> None:
        """Repeat the call, fewer times if it takes longer than that."""
        end = time.monotonic() + seconds
        for number in range(repeats):
            if number >= FEWEST and time.monotonic() > end:
                return
            parts = self._parts(self._call())
            digest = parts.digest()
            if digest not in self.counts and len(self._kept) < MOST_KEPT:
                self._kept.append(parts.copies())
            self.counts[digest] = self.counts.get(digest, 0) + 1

    def keep(self, path: str) -> dict[str, Any] | None:
        """Write the first part that differs, of each of the results that are held."""
        for index, (name, dtype, shape, data) in enumerate(self._kept[0]):
            others = [result[index] for result in self._kept[1:] if len(result) > index]
            others = [part for part in others if part[1:3] == (dtype, shape) and part[3] != data]
            if others:
                files = []
                for number, part in enumerate([(name, dtype, shape, data), *others]):
                    files.append("%s-%d.bin" % (path, number))
                    with open(files[-1], "wb") as file:
                        file.write(part[3])
                return {"part": name, "dtype": dtype, "shape": list(shape), "files": files}
        return None


def _text(error: BaseException) -> str:
    message = str(error).partition("\n")[0]
    return "%s: %s" % (type(error).__name__, message[:LONGEST_ERROR])
