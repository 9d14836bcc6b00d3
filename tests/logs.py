"""Event logs that tests write: each row is a line of a list, and becomes one of the file of rows."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from detaudit import wire
from detaudit.runs.live_log import Growing, News
from detaudit.runs.log_rows import rows_of

Line = dict[str, Any]


def hexed(text: str) -> str:
    """Return the digest of a row that stands for a short text, which may have a space and a name behind it."""
    digest, space, name = text.partition(" ")
    if not re.fullmatch("[0-9a-f]{32}", digest):
        digest = digest.encode().ljust(16, b"\0").hex()
    return digest + space + name


def row(step: int, stage: str, digest: str, value: float | None = None, fw: str = "torch", lane: int = 0) -> Line:
    """Return a row as a line, see ``write_log``."""
    return {"k": "row", "fw": fw, "lane": lane, "step": step, "stage": stage, "digest": digest, "value": value}


def as_lines(framework: str, rows: Iterable[Any]) -> list[Line]:
    """Return rows that a sink was given as lines."""
    names = ("step", "lane", "stage", "digest", "value")
    return [{"k": "row", "fw": framework, **dict(zip(names, row, strict=True))} for row in rows]


class Writer:
    """Writes the two files of an event log, as the recorder does."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._numbers: dict[object, int] = {}
        self._rows = 0

    def write(self, *lines: Line) -> None:
        """Append lines and rows, each to its file."""
        texts: list[Line] = []
        rows: list[bytes] = []
        for line in lines:
            if line["k"] == "row":
                fw, lane, name = line["fw"], line.get("lane", 0), hexed(line["digest"])[33:]
                training = self._number(texts, (fw, lane), {"k": "training", "fw": fw, "lane": lane})
                named = self._number(texts, name, {"k": "name", "text": name}) if name else 0
                digest, value = bytes.fromhex(hexed(line["digest"])[:32]), line.get("value")
                number = 0.0 if value is None else value
                stage = wire.STAGE_NUMBERS[line["stage"]]
                rows.append(wire.ROW.pack(line["step"], training, named, stage, int(value is not None), digest, number))
                self._rows += 1
            else:
                texts.append({**line, **({"rows": line.get("rows", self._rows)} if line["k"] == "bye" else {})})
        with self.log.open("a") as file:
            file.writelines(json.dumps(text, separators=(",", ":")) + "\n" for text in texts)
        if rows:
            with rows_of(self.log).open("ab") as binary:
                binary.writelines(rows)

    def _number(self, texts: list[Line], key: object, line: Line) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            texts.append({**line, "n": self._numbers[key]})
        return self._numbers[key]


def write_log(log: Path, lines: Iterable[Line]) -> Path:
    """Write a whole event log, and return its path."""
    log.parent.mkdir(parents=True, exist_ok=True)
    for path in (log, rows_of(log)):
        path.unlink(missing_ok=True)
    log.touch()
    Writer(log).write(*lines)
    return log


def news(folder: Path, *lines: Line) -> News:
    """Return what is new in an event log to which these lines were written, in a new folder below this one."""
    run = folder / str(len(list(folder.iterdir())))
    write_log(run / wire.LOGS / "7.0.jsonl", lines)
    ((_, found),) = Growing(run).new()
    return found
