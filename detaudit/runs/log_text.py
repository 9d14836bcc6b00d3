"""An event log as text: its lines as they are, and one more for each of its rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from detaudit import wire
from detaudit.runs.log_records import DECODER, UNREADABLE, NameLine, TrainingLine
from detaudit.runs.log_rows import ROW, STAGES, Numbers, read, rows_of, size_of


def entries(log: Path) -> Iterator[dict[str, Any]]:
    """Yield what is in an event log, as far as it can be read: the rows are before the end of their training."""
    rows, numbers, lines = rows_of(log), Numbers(), list[dict[str, Any]]()
    total = size_of(rows) // ROW.itemsize
    try:
        for text in log.read_bytes().splitlines():
            line = DECODER.decode(text)
            if isinstance(line, TrainingLine | NameLine):
                numbers.take(line)
            else:
                lines.append(msgspec.json.decode(text))
    except (OSError, *UNREADABLE):
        pass
    start = 0
    for index, fields in enumerate(lines):
        if fields["k"] in ("final", "bye"):
            ends = (later.get("rows", 0) for later in lines[index:] if later["k"] == "bye")
            end = min(next(ends, total), total)
            yield from _rows(rows, start, end, numbers)
            start = max(start, end)
        yield fields
    yield from _rows(rows, start, total, numbers)


def _rows(path: Path, start: int, end: int, numbers: Numbers) -> Iterator[dict[str, Any]]:
    for raw in read(path, start, end):
        for step, training, name, stage, flags, digest, value in raw[: numbers.readable(raw)].tolist():
            fw, lane = numbers.trainings[training]
            fields = {"k": "row", "fw": fw, "lane": lane, "step": step, "stage": STAGES[stage], "digest": digest.hex()}
            named = {"name": numbers.names[name]} if name else {}
            yield {**fields, **named, **({"value": float(value).hex()} if flags & wire.HAS_VALUE else {})}
