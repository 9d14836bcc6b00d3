"""Read tables cell by cell, large ones by blocks of rows and columns: CSV and TSV, and what libraries read.

Parquet, Arrow, Feather and ORC need pyarrow, DuckDB duckdb, Stata pandas, and Avro fastavro or polars. What a file says
of the program that wrote it is left out.
"""

import csv
import hashlib
import itertools
import json
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from detaudit.outputs.measurements import is_span, names_a_run, names_parts, says_nothing
from detaudit.runs.formats import Part, apart, documents, unique
from detaudit.runs.formats import values as single
from detaudit.runs.formats.libraries import BINARY, LITERAL, METADATA
from detaudit.runs.formats.values import BLOCK, digest_of_block

MOST_CELLS = 200_000
"""Cells of a table that are compared one by one."""

MOST_COLUMNS = 256
"""Columns of a large table that are blocks of their own; of a wider one, so many are one block."""

MOST_OF_BLOCK = 2**20
"""Cells that are held in memory at a time, if a row has no more."""

MOST_BYTES_OF_BLOCK = 256 * 2**20

_DELIMITERS = ",\t;"
_SAMPLE = 100

Row = Sequence[Any]


def of_rows(
    rows: Iterable[Row], columns: Sequence[str], cell: Callable[[str, Any], Part], prefix: str = ""
) -> Iterator[Part]:
    """Yield the parts of a table: its cells, made by ``cell``, or blocks of it if it is large.

    A row may have more cells than there are columns, or fewer.
    """
    rows = iter(rows)
    names = _Names(columns)
    width = max(1, len(columns))
    small = list(itertools.islice(rows, MOST_CELLS // width + 1))
    if len(small) * width <= MOST_CELLS:
        for count, row in enumerate(small, 1):
            for index, value in enumerate(row):
                yield cell(f"{prefix}row {count}, {names.of(index, row)}", value)
        return
    rows = itertools.chain(small, rows)
    first, step = 1, max(1, min(BLOCK, MOST_OF_BLOCK // width))
    while block := list(itertools.islice(rows, step)):
        last = first + len(block) - 1
        yield from _blocks(block, f"{prefix}rows {first:,} to {last:,}, ", names)
        first = last + 1


class _Names:
    """The names of columns, also of those that have none."""

    def __init__(self, columns: Sequence[str]) -> None:
        counts: dict[str, int] = {}
        self._names = []
        self._columns = [column.strip() for column in columns]
        self._naming = next((at for at, one in enumerate(self._columns) if documents.is_naming(one)), 0)
        for index, column in enumerate(self._columns):
            name = single.printable(column) or f"column {index + 1}"
            counts[name] = counts.get(name, 0) + 1
            self._names.append(name if counts[name] == 1 else f"{name} ({counts[name]})")

    def __getitem__(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else f"column {index + 1}"

    def of(self, index: int, row: Row) -> str:
        """Return the name of a cell of a row, of which another one says what it is if the column does not.

        That is the one in a column such as ``metric``, else the first.
        """
        column = self._columns[index] if index < len(self._columns) else ""
        at = self._naming
        label = _label(row[at:], self._columns[at]) if index > at and says_nothing(column) else ""
        if not label:
            return self[index]
        if column:
            return f"{_kind(self._columns[at])}{label}, {self[index]}"
        return label if len(self._columns) == 2 else f"{label}, value {index}"


def _kind(column: str) -> str:
    """Return what the cells of a column are, before their names, if it says so in a word: ``function augment``."""
    return f"{column} " if names_parts(column) else ""


def _label(row: Row, column: str = "") -> str:
    """Return the first cell of a row if it may name what follows it, else nothing: no other run has the name of one."""
    first = row[0] if len(row) > 1 else None
    label = first.strip() if isinstance(first, str) else ""
    return label if single.LABEL.fullmatch(label) and not names_a_run(column, label) else ""


def _blocks(rows: list[Row], prefix: str, names: _Names) -> Iterator[Part]:
    columns = list(itertools.zip_longest(*rows, fillvalue=_MISSING))
    step = 1 if len(columns) <= MOST_COLUMNS else MOST_COLUMNS
    for first in range(0, len(columns), step):
        block = columns[first : first + step]
        name = prefix + (names[first] if step == 1 else f"columns {first + 1:,} to {first + len(block):,}")
        if step == 1 and (floats := _floats(block[0])) is not None:
            yield Part(name, iter([floats]), "<f8", (len(rows),))
        else:
            digest = hashlib.blake2b(repr(block).encode("utf-8", "surrogatepass"), digest_size=16)
            yield digest_of_block(name, digest.digest(), len(rows) * len(block), False)


def _floats(cells: Sequence[Any]) -> bytes | None:
    """Return a column as 64-bit floats, None if it holds anything that these do not tell apart."""
    kinds = set(map(type, cells))
    if kinds <= {int, float}:
        numbers = list(cells)
        if any(type(one) is int and abs(one) >= 2**53 for one in numbers):
            return None
    elif kinds == {str}:
        text = "".join(cells)
        if not text.isascii() or "_" in text:  # float would read other digits, and 1_000
            return None
        try:
            numbers = list(map(float, cells))
        except ValueError:
            return None
        if max(map(len, cells)) > _MOST_DIGITS and any(
            len(cell) > _MOST_DIGITS and cell.strip() != repr(number)
            for cell, number in zip(cells, numbers, strict=True)
        ):
            return None
    else:
        return None
    floats = array("d", numbers)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tobytes()


_MOST_DIGITS = 15
"""Any two decimals with so many digits are different floats."""


class _Missing:
    def __repr__(self) -> str:
        return "missing"


_MISSING = _Missing()


# -------------------------------------------------------------------------------------------------------- CSV and TSV


def is_csv(head: bytes, path: Path) -> bool:
    """Return whether this is a table: each row has as many cells as the first, and it is neither a log nor prose."""
    return bool(_delimiter(head, path.stat().st_size <= len(head)))


def header_of(path: Path) -> bytes:
    """Return the line with the names of columns of a CSV file, nothing if it has none, or is no such file."""
    with path.open("rb") as file:
        head = file.read(64 * 2**10)
    delimiter = _delimiter(head, path.stat().st_size <= len(head))
    lines = head.splitlines(keepends=True)
    comments = list(itertools.takewhile(lambda line: line.startswith(b"#"), lines))
    line = next(iter(lines[len(comments) :]), b"")
    try:
        names = list(csv.reader([line.decode()], delimiter=delimiter, strict=True)) if delimiter else []
    except (UnicodeDecodeError, csv.Error):
        return b""
    return b"".join([*comments, line]) if _has_header(names) else b"".join(comments)


def csv_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Rows are counted from 1, without the header."""
    return unique(_csv_parts(path))


def _csv_parts(path: Path) -> Iterator[Part]:
    with path.open("rb") as file:
        head = file.read(64 * 2**10)
    delimiter = _delimiter(head, path.stat().st_size <= len(head))
    if not delimiter:
        raise ValueError("it is no table")
    with documents.opened(path) as text:
        lines = documents.lines(text)
        comments, lines = _comments(lines)
        for count, comment in enumerate(comments, 1):
            yield single.text(f"comment {count}", comment)
        # numpy.savetxt writes names into a comment.
        names = next(csv.reader(comments[-1:], delimiter=delimiter), [])
        yield from of_texts(_rows(lines, delimiter), names=names, since=comments)


def of_texts(
    rows: Iterator[list[str]], prefix: str = "", names: Sequence[str] = (), since: Sequence[str] = ()
) -> Iterator[Part]:
    """Yield the parts of a table whose cells are texts, and whose first row may have the names of columns.

    If it has not, these are ``names`` if there are as many. ``since`` are texts that may say what a column counts from.
    """
    first = list(itertools.islice(rows, _SAMPLE))
    columns: Sequence[str] = ()
    if _has_header(first):
        columns, *first = first
        yield single.text(f"{prefix}columns", ", ".join(columns))
    elif first and len(names) == len(first[0]):
        columns = names
    width = max(map(len, [columns, *first]), default=0)
    named = [*(_since(column, since) for column in columns), *[""] * (width - len(columns))]
    yield from of_rows(itertools.chain(first, rows), named, single.number_or_text, prefix)


def _comments(lines: Iterator[str]) -> tuple[list[str], Iterator[str]]:
    """Return the comments that a table begins with, without their marks, and an iterator of the lines after them."""
    comments: list[str] = []
    for line in lines:
        if not line.startswith("#") or len(comments) >= _SAMPLE:
            return comments, itertools.chain([line], lines)
        comments.append(line.lstrip("#").strip())
    return comments, lines


def _since(column: str, comments: Iterable[str]) -> str:
    """Return the name of a column; one that counts from a start that a comment has is a time.

    ``#{"t_start": 1764316967.3}`` is what the monitors of Stable-Baselines3 begin with, whose column ``t`` follows it.
    """
    return f"{column} elapsed" if column and any(f'"{column}_start"' in comment for comment in comments) else column


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    size = 0

    def limited() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line)
            if size > MOST_BYTES_OF_BLOCK:
                raise ValueError("its rows are too long")
            yield line

    try:
        for count, row in enumerate(csv.reader(limited(), delimiter=delimiter, strict=True)):
            if count % BLOCK == 0:
                size = 0
            if row:
                yield row
    except csv.Error as error:
        raise ValueError(f"it is no table: {error}") from error


_LOG = re.compile(
    r"[\[(<]?(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d,\d{3}\D|[IWEF]\d{4} \d\d:|"
    r"(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b)"
)
_PLAIN = re.compile(r"[\w .%/()#@+*$<>|&'\[\]-]{0,64}")


def _delimiter(head: bytes, complete: bool) -> str:
    """Return what separates the cells of a table that begins with these bytes, ``""`` if they begin none."""
    encoding = documents.encoding_of(head)
    if not encoding:
        return ""
    lines = head.decode(encoding, "replace").splitlines(keepends=True)
    if not complete:
        lines = lines[:-1]
    lines = list(itertools.dropwhile(lambda line: line.startswith("#"), lines))
    if any(map(_LOG.match, lines[:_SAMPLE])):
        return ""
    return next((one for one in _DELIMITERS if _is_table(lines, one)), "")


def _is_table(lines: list[str], delimiter: str) -> bool:
    if not any(delimiter in line for line in lines[:1]):
        return False
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return False
    if not rows or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return False
    if len(rows) == 1:
        return bool(_label(rows[0])) and all(map(single.NUMERAL.fullmatch, rows[0][1:]))
    if delimiter == "\t" or any(map(_is_numeric, zip(*rows[1:], strict=True))):
        return True
    cells = itertools.chain.from_iterable(rows)
    return all(map(_PLAIN.fullmatch, rows[0])) and not any(cell.startswith(" ") for cell in cells)


def _is_numeric(column: Sequence[str]) -> bool:
    cells = [cell for cell in column if cell.strip()]
    return bool(cells) and all(map(single.NUMERAL.fullmatch, cells))


_OF_RUN = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?=[0-9-]*[a-f])(?=[a-f-]*\d)[0-9a-f]{8}(?:(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12})?"
)


def _has_header(rows: list[list[str]]) -> bool:
    if not rows or any(single.NUMERAL.fullmatch(cell) or is_span(cell) for cell in rows[0]):
        return False
    if len(rows[0]) == 2 and _OF_RUN.fullmatch(rows[0][1].strip()):
        return False  # a name and what it is: created, 2026-11-30 22:58:33
    named = [cell.strip() for cell in rows[0] if cell.strip()]
    return len(named) >= len(rows[0]) - 1 and len(set(named)) == len(named)


# ------------------------------------------------------------------------------------------------------- by libraries


def is_parquet(head: bytes, path: Path) -> bool:
    """Return whether this is a Parquet file: https://parquet.apache.org/docs/file-format/."""
    return head.startswith(b"PAR1")


def is_arrow(head: bytes, path: Path) -> bool:
    """Return whether this is an Arrow file, which is Feather's version 2, or a stream of it.

    https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format; a stream begins with a message, whose size
    follows the mark.
    """
    return head.startswith((b"ARROW1\0\0", b"FEA1")) or (head.startswith(b"\xff\xff\xff\xff") and head[6:8] == b"\0\0")


def is_duckdb(head: bytes, path: Path) -> bool:
    """Return whether this is a database of DuckDB, whose version is a number of 8 bytes.

    https://duckdb.org/docs/stable/internals/storage
    """
    return head[8:12] == b"DUCK" and head[16:20] == bytes(4)


def is_orc(head: bytes, path: Path) -> bool:
    """Return whether this is an ORC file, which ends with its name and a length.

    https://orc.apache.org/specification/ORCv1/
    """
    if not head.startswith(b"ORC"):
        return False
    with path.open("rb") as file:
        file.seek(-min(4, path.stat().st_size), os.SEEK_END)
        return file.read(3) == b"ORC"


def orc_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_of_columns(apart.by_library("orc", path)))


def is_avro(head: bytes, path: Path) -> bool:
    """Return whether this is an Avro file, whose blocks end with random bytes.

    https://avro.apache.org/docs/1.12.0/specification/#object-container-files
    """
    return head.startswith(b"Obj\1")


def avro_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_of_columns(apart.by_library("avro", path)))


def is_stata(head: bytes, path: Path) -> bool:
    """Return whether this is a table of Stata, of release 13 or later: https://www.stata.com/help.cgi?dta."""
    return head.startswith(b"<stata_dta><header>") or (
        path.suffix == ".dta" and head[:1] in (b"\x71", b"\x72", b"\x73")
    )


def stata_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_of_columns(apart.by_library("stata", path)))


def duckdb_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_by_duckdb(path))


def _by_duckdb(path: Path) -> Iterator[Part]:
    for table, sent in itertools.groupby(apart.by_library("duckdb", path), key=lambda part: part.name):
        if table.startswith("view "):
            yield from sent
        else:
            yield from _of_columns(sent, f"table {single.printable(table)}: ")


def parquet_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_of_columns(apart.by_library("parquet", path)))


def arrow_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_of_columns(apart.by_library("arrow", path)))


def _of_columns(sent: Iterator[Part], prefix: str = "") -> Iterator[Part]:
    """Yield the parts of a table that a library read: first its columns with their types, then rows by columns."""
    columns = [(str(name), str(of)) for name, of in json.loads(b"".join(next(sent).pieces))]
    yield single.text(f"{prefix}columns", ", ".join(f"{name} ({of})" for name, of in columns))
    for is_said, some in itertools.groupby(sent, key=lambda part: part.name == METADATA):
        if is_said:
            for name, value in (pair for part in some for pair in json.loads(b"".join(part.pieces))):
                yield from documents.of_text(f"{prefix}{single.printable(name)}", value)
        else:
            rows = (row for part in some for row in zip(*json.loads(b"".join(part.pieces)), strict=True))
            yield from of_rows(rows, [name for name, _ in columns], cell, prefix)


def cell(name: str, value: Any) -> Part:
    """Return a value of a database or of a typed column as a part."""
    if isinstance(value, bool) or value is None:
        return single.literal(name, {True: "true", False: "false", None: "null"}[value])
    if isinstance(value, int | float):
        return single.number(name, repr(value))
    if isinstance(value, str):
        return single.text(name, value)
    if isinstance(value, bytes):
        return single.opaque(name, value)
    if isinstance(value, dict) and LITERAL in value:
        return single.literal(name, value[LITERAL])
    if isinstance(value, dict) and BINARY in value:
        return single.opaque(name, bytes.fromhex(value[BINARY]))
    return single.literal(name, json.dumps(value, default=repr))  # such as a date, or a list
