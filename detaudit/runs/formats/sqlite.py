"""Read the tables of SQLite databases, in a process of their own; views and virtual tables are not run.

A database with a write-ahead log or a journal is read from a copy with it, any other as one that nobody changes: see
https://www.sqlite.org/uri.html#uriimmutable. Nothing is written beside it.
"""

import contextlib
import hashlib
import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from detaudit.runs.formats import PIECE, Part, Rows, apart, journals, pieces, tables, unique
from detaudit.runs.formats import values as single
from detaudit.runs.formats.values import printable

MOST_ROWS = 2_000_000
"""Rows of a database whose digests are kept."""

MOST_COPIED = 4 * 2**30

_MAGIC = b"SQLite format 3\0"
_SIZE = 16


def is_sqlite(head: bytes, path: Path) -> bool:
    """Return whether this is a database: https://www.sqlite.org/fileformat2.html#magic_header_string."""
    return head.startswith(_MAGIC)


def parts(path: Path, without: Rows | None = None) -> Iterator[Part]:
    """See Format.parts. Rows come in the order of their IDs.

    Those in ``without``, as ``rows`` returns it, are left out. What is left then counts from 1, and so do the IDs that
    SQLite gave to it, and references to them; if it is empty, all rows are such.
    """
    return unique(apart.parts(lambda: _parts(path, without)))


def _parts(path: Path, without: Rows | None) -> Iterator[Part]:
    with _opened(path) as database:
        for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name"):
            yield single.text(printable(f"schema: {kind} {name}"), str(sql))
        table_names = [table for table in _tables(database) if without is None or table != _SEQUENCES]
        newest = {table: _newest(database, table, (without or {}).get(table, {})) for table in table_names}
        for table in table_names:
            cursor = _rows(database, table)
            columns = [str(column[0]) for column in cursor.description]
            added = _added(database, table, cursor, without, newest) if without is not None else cursor
            yield from tables.of_rows(added, columns, _cell, f"table {printable(table)}: ")


_SEQUENCES = "sqlite_sequence"


class _Added(str):
    """An ID that SQLite gave to a row, counted from the newest that was there before."""

    __slots__ = ()


def _cell(name: str, value: Any) -> Part:
    """Return a value as a part; bytes that are a document of JSON are a text."""
    if isinstance(value, bytes) and value[:1] in (b"{", b"["):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(value)
            return single.text(name, value.decode())
    return single.literal(name, value) if isinstance(value, _Added) else tables.cell(name, value)


def _added(
    database: sqlite3.Connection, table: str, cursor: sqlite3.Cursor, without: Rows, newest: Mapping[str, int]
) -> Iterator[list[Any]]:
    left_out = Counter(without.get(table, {}))
    ids = _ids(database, table)
    for row in cursor:
        if not _taken(left_out, row):
            yield [_from(value, newest.get(ids.get(index, ""))) for index, value in enumerate(row)]


def _from(value: Any, newest: int | None) -> Any:
    return _Added(f"added {value - newest}") if newest is not None and type(value) is int and value > newest else value


def _newest(database: sqlite3.Connection, table: str, known: Mapping[bytes, int]) -> int:
    """Return the largest of the IDs of those rows that are known."""
    column = next((index for index, other in _ids(database, table).items() if other == table), None)
    if column is None:
        return 0
    return max((row[column] for row in _rows(database, table) if _digest(row) in known), default=0)


def _ids(database: sqlite3.Connection, table: str) -> dict[int, str]:
    """Return the places of columns that hold the ID of a row of this table, or of one it refers to, and its table.

    https://www.sqlite.org/lang_createtable.html#rowid says which column is the ID.
    """
    columns = database.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,)).fetchall()
    places = {str(name): index for index, (name, _, _) in enumerate(columns)}
    keys = [index for index, (_, kind, key) in enumerate(columns) if key and str(kind).upper() == "INTEGER"]
    id_columns = {}
    for other, column in database.execute('SELECT "table", "from" FROM pragma_foreign_key_list(?)', (table,)):
        if column in places:
            id_columns[places[column]] = str(other)
    if len(keys) == 1 and sum(1 for _, _, key in columns if key) == 1:
        id_columns.setdefault(keys[0], table)
    return id_columns


def _taken(left_out: Counter[bytes], row: tuple[Any, ...]) -> bool:
    digest = _digest(row)
    left_out[digest] -= 1
    return left_out[digest] >= 0


def rows(path: Path) -> dict[str, Counter[bytes]]:
    """Return the digests of all rows, by table. Raises as Format.parts does, ValueError also if there are too many."""

    def digests() -> Iterator[Part]:
        count = 0
        with _opened(path) as database:
            for table in _tables(database):
                table_digests = b"".join(map(_digest, _limited(_rows(database, table), MOST_ROWS - count)))
                count += len(table_digests) // _SIZE
                yield Part(table, (table_digests[at : at + PIECE] for at in range(0, len(table_digests), PIECE)))

    counts = {}
    for part in apart.parts(digests):
        data = b"".join(part.pieces)
        counts[part.name] = Counter(data[at : at + _SIZE] for at in range(0, len(data), _SIZE))
    return counts


def _limited(cursor: Iterator[tuple[Any, ...]], most: int) -> Iterator[tuple[Any, ...]]:
    for count, row in enumerate(cursor):
        if count >= most:
            raise ValueError("it has too many rows")
        yield row


def _digest(row: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def _tables(database: sqlite3.Connection) -> list[str]:
    """Return the tables that hold rows of their own."""
    cursor = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND sql NOT LIKE 'CREATE VIRTUAL%' "
        "ORDER BY name"
    )
    return [str(name) for (name,) in cursor]


def _rows(database: sqlite3.Connection, table: str) -> sqlite3.Cursor:
    quoted = table.replace('"', '""')
    return database.execute(f'SELECT * FROM "{quoted}" NOT INDEXED')  # noqa: S608 - a name cannot be a parameter


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database. Raises ValueError for whatever SQLite does not like about it."""
    with contextlib.ExitStack() as stack:
        beside = journals(path)
        source, options = path.absolute(), "mode=ro&immutable=1"
        if beside:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="detaudit-")))
            source, options = folder / "copy", "mode=rw"
            for one in (path, *beside):
                _copy(one, folder / f"copy{one.name.removeprefix(path.name)}")
        try:
            database = sqlite3.connect(f"file:{quote(str(source))}?{options}", uri=True, isolation_level=None)
            stack.callback(database.close)
            database.text_factory = _text
            database.execute("PRAGMA trusted_schema = OFF")  # https://www.sqlite.org/security.html
            database.execute("PRAGMA cell_size_check = ON")
            database.execute("PRAGMA mmap_size = 0")
            yield database
        except sqlite3.Error as error:
            raise ValueError(str(error)) from error


def _copy(source: Path, target: Path) -> None:
    if source.stat().st_size > MOST_COPIED:
        raise ValueError("it is too large to be copied with its log")
    with source.open("rb") as file, target.open("wb") as copy:
        for piece in pieces(file):
            copy.write(piece)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
