"""The rows of databases are read, and what was there before can be left out."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.runs.formats import sqlite, tables
from tests.runs.formats.reading import differing, is_refused_or_read, mutated, mutations, parts, texts, written


def database(path: Path, losses: tuple[float, ...] = (0.5, 0.25)) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, loss REAL, model BLOB)")
        connection.execute("CREATE TABLE steps (run INTEGER REFERENCES runs(id), name TEXT)")
        connection.execute("CREATE VIEW best AS SELECT min(loss) FROM runs")
        add(connection, losses)
    return path


def add(connection: sqlite3.Connection, losses: tuple[float, ...]) -> None:
    for loss in losses:
        run = connection.execute("INSERT INTO runs (loss, model) VALUES (?, x'00')", (loss,)).lastrowid
        connection.execute("INSERT INTO steps VALUES (?, 'a')", (run,))


def test_rows_are_named_by_table_and_column(tmp_path: Path) -> None:
    by, found = parts(database(tmp_path / "a"))
    assert by == "sqlite"
    assert found["table runs: row 2, loss"] == ("number", "0.25", b"0.25")
    assert found["table runs: row 2, model"] == ("", "", b"\0")
    assert found["table steps: row 1, name"] == ("text", "a", b"a")
    assert "CREATE VIEW best" in found["schema: view best"][1]


def test_a_change_is_named(tmp_path: Path) -> None:
    one = database(tmp_path / "1")
    assert differing(one, database(tmp_path / "2")) == []
    assert differing(one, database(tmp_path / "3", (0.5, 0.26))) == ["table runs: row 2, loss"]


def test_a_name_of_a_metric_says_what_its_value_is_and_bytes_may_be_json(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a")) as connection, connection:
        connection.execute("CREATE TABLE metrics (run TEXT, metric_name TEXT, metric_value REAL, config BLOB)")
        values = ("a", "fit_time", 0.5, b'{"lr": 0.1, "made": "today"}')
        connection.execute("INSERT INTO metrics VALUES (?, ?, ?, ?)", values)
    found = texts(tmp_path / "a")
    assert found["table metrics: row 1, fit_time, metric_value"] == "0.5"
    assert found["table metrics: row 1, config"] == '{"lr": 0.1, "made": "today"}'


def test_nothing_is_written_beside_it_and_its_log_is_read(tmp_path: Path) -> None:
    path = database(tmp_path / "a b?#.db")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        add(writer, (0.125,))
        writer.commit()
        before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
        assert f"{path.name}-wal" in before
        assert texts(path)["table runs: row 3, loss"] == "0.125"
        assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_what_each_run_added_is_equal_although_its_ids_are_not(tmp_path: Path) -> None:
    path = database(tmp_path / "a")
    added = []
    for _ in range(2):
        known = sqlite.rows(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            add(connection, (0.75,))
        added.append({part.name: part.text for part in read(sqlite.parts(path, known)) if "row" in part.name})
    assert added[0] == added[1]
    assert added[0] == {
        "table runs: row 1, id": "added 1",
        "table runs: row 1, loss": "0.75",
        "table runs: row 1, model": "",
        "table steps: row 1, run": "added 1",
        "table steps: row 1, name": "a",
    }


def read(found: Iterator[Any]) -> Iterator[Any]:
    for part in found:
        b"".join(part.pieces)
        yield part


def test_a_row_that_was_changed_is_one_that_was_added(tmp_path: Path) -> None:
    path = database(tmp_path / "a")
    known = sqlite.rows(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET loss = 0.1 WHERE id = 1")
    found = {part.name: part.text for part in sqlite.parts(path, known)}
    assert found["table runs: row 1, loss"] == "0.1"
    assert found["table runs: row 1, id"] == "1"
    assert "table steps: row 1, run" not in found


def test_a_large_table_is_read_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 5)
    one, other = database(tmp_path / "1"), database(tmp_path / "2", (0.5, 0.26))
    assert differing(one, other) == ["table runs: rows 1 to 2, loss"]


VALUES: st.SearchStrategy[Any] = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES |= st.binary(max_size=9)
VALUES |= st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)


@settings(max_examples=12)  # each starts a process or more
@given(st.lists(VALUES, max_size=9))
def test_any_rows_are_read(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("a")
    paths = [folder / "1", folder / "2"]
    for path in paths:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE t (a)")
            connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in rows])
    assert len(parts(paths[0])[1]) == 1 + len(rows)
    assert differing(*paths) == []
    known = sqlite.rows(paths[0])
    assert sum(known["t"].values()) == len(rows)
    assert [part.name for part in sqlite.parts(paths[1], known)] == ["schema: table t"]


@settings(max_examples=30)  # each starts a process or more
@given(mutations())
def test_a_damaged_database_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("a")
    is_refused_or_read(written(folder / "b", mutated(database(folder / "a").read_bytes(), changes)))
