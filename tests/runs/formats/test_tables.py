"""Tables are read cell by cell, large ones by blocks."""

import csv
import datetime
import io
import math
import struct
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.runs import formats
from detaudit.runs.formats import apart, libraries, tables
from tests.runs.formats.reading import differing, is_refused_or_read, mutated, mutations, parts, texts, written

TABLE = "id,target\n1,3.41\n2,0.5\n3,0.25\n"


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        TABLE.replace(",", "\t"),
        TABLE.replace(",", ";"),
        TABLE.replace("\n", "\r\n"),
        "name,city\nann,rome\nbob,oslo\n",
        ",loss\n0,0.5\n1,\n",
        '"a,b",c\n"x\ny",1\n"z",2\n',
        "1,2\n3,4\n",
        "a\tb\nc d\te f\n",
        "accuracy,0.79\n",
    ],
)
def test_a_table_is_recognized(text: str, tmp_path: Path) -> None:
    assert parts(written(tmp_path / "a", text))[0] == "csv"


@pytest.mark.parametrize(
    "text", ["a,b\n", "a,b\n1,2,3\n", "Hello, you\nBye, you\n", "a\nb\n", "x: 1, y: 2\nx: 1, z: 3\n", "a,b\n1,2\n3\n"]
)
def test_other_text_is_no_table(text: str, tmp_path: Path) -> None:
    assert parts(written(tmp_path / "a.csv", text))[0] != "csv"


def test_cells_are_named_by_row_and_column(tmp_path: Path) -> None:
    assert texts(written(tmp_path / "a", TABLE)) == {
        "columns": "id, target",
        "row 1, id": "1",
        "row 1, target": "3.41",
        "row 2, id": "2",
        "row 2, target": "0.5",
        "row 3, id": "3",
        "row 3, target": "0.25",
    }
    assert list(texts(written(tmp_path / "b", "1,2\n3,4\n"))) == [
        "row 1, column 1",
        "row 1, column 2",
        "row 2, column 1",
        "row 2, column 2",
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("accuracy,0.79\n", ["row 1, column 1", "row 1, accuracy"]),
        ("loss,3,4\n", ["row 1, column 1", "row 1, loss, value 1", "row 1, loss, value 2"]),
        ("metric,value\ntrain_time,3\n", ["columns", "row 1, metric", "row 1, train_time, value"]),
        ("model,mse\nsvm time,3\n", ["columns", "row 1, model", "row 1, mse"]),
        ("id,value\nc0d98bdb-fd5c-47a0-9142-e831a2dc615a,3\n", ["columns", "row 1, id", "row 1, value"]),
        ("run_id,value\nbrisk-fox-12,3\n", ["columns", "row 1, run_id", "row 1, value"]),
        ("at,2026-11-30 22:58:33.601\nauc,3\n", ["row 1, column 1", "row 1, at", "row 2, column 1", "row 2, auc"]),
        ("run,3f2a91bc\nauc,3\n", ["row 1, column 1", "row 1, run", "row 2, column 1", "row 2, auc"]),
        ("day,2026-11-30\nauc,3\n", ["columns", "row 1, day", "row 1, auc, 2026-11-30"]),
        (",0\nfit_time,3\n", ["row 1, column 1", "row 1, column 2", "row 2, column 1", "row 2, fit_time"]),
    ],
)
def test_a_row_names_its_cells_if_the_column_does_not(tmp_path: Path, text: str, names: list[str]) -> None:
    assert list(texts(written(tmp_path / "a", text))) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            '#{"t_start": 1764316967.3, "env_id": "CartPole-v1"}\nr,l,t\n9.0,9,0.0329\n',
            ["comment 1", "columns", "row 1, r", "row 1, l", "row 1, t elapsed"],
        ),
        (
            "# epoch,fit time\n1.0,0.25\n2.0,0.5\n",
            ["comment 1", "row 1, epoch", "row 1, fit time", "row 2, epoch", "row 2, fit time"],
        ),
        (
            "step,metric,value\n1,epoch_time,0.25\n",
            ["columns", "row 1, step", "row 1, metric", "row 1, epoch_time, value"],
        ),
    ],
)
def test_comments_and_names_in_rows(tmp_path: Path, text: str, names: list[str]) -> None:
    by, read = parts(written(tmp_path / "a.csv", text))
    assert (by, [*read]) == ("csv", names)


def test_a_change_is_named(tmp_path: Path) -> None:
    one = written(tmp_path / "1", TABLE)
    assert differing(one, one) == []
    assert differing(one, written(tmp_path / "2", TABLE.replace("0.25", "0.26"))) == ["row 3, target"]
    assert "columns" in differing(one, written(tmp_path / "3", "target,id\n3.41,1\n0.5,2\n0.25,3\n"))


def test_a_large_table_is_read_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    monkeypatch.setattr(tables, "BLOCK", 4)
    lines = [f"{n},{n / 8},{'abc'[n % 3]}\n" for n in range(6)]
    one = written(tmp_path / "1", "id,target,name\n" + "".join(lines))
    _, found = parts(one)
    assert list(found) == ["columns"] + [
        f"rows {rows}, {column}" for rows in ("1 to 4", "5 to 6") for column in ("id", "target", "name")
    ]
    assert found["rows 5 to 6, target"] == ("<f8", "", struct.pack("<2d", 0.5, 0.625))
    lines[5] = "5,0.626,c\n"
    assert differing(one, written(tmp_path / "2", "id,target,name\n" + "".join(lines))) == ["rows 5 to 6, target"]
    lines[5] = "5,0.625,b\n"
    assert differing(one, written(tmp_path / "2", "id,target,name\n" + "".join(lines))) == ["rows 5 to 6, name"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.1234567890123456789", "0.1234567890123456788"), ("9007199254740993", "9007199254740992"), ("", "nan")],
)
def test_numbers_that_floats_do_not_tell_apart_are_compared_by_their_digits(
    one: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 3)
    text = "id,target\n1,{}\n2,0.5\n"
    first, second = (written(tmp_path / "a", text.format(one)), written(tmp_path / "b", text.format(other)))
    assert differing(first, second) == ["rows 1 to 2, target"]


def test_a_wide_table_is_read_by_blocks_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    monkeypatch.setattr(tables, "MOST_COLUMNS", 4)
    path = written(tmp_path / "1", "1,2,3,4,5,6\n" * 2)
    assert list(parts(path)[1]) == ["rows 1 to 2, columns 1 to 4", "rows 1 to 2, columns 5 to 6"]


def test_a_row_that_differs_in_length_far_below_is_read(tmp_path: Path) -> None:
    one = written(tmp_path / "1", "a,b\n" + "1,2\n" * 20_000)
    other = written(tmp_path / "2", "a,b\n" + "1,2\n" * 19_999 + "1,2,3\n")
    assert differing(one, other) == ["row 20000, column 3"]


CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=9) | st.floats().map(repr)


@given(st.lists(st.tuples(st.integers().map(str), CELLS), min_size=1, max_size=9), st.sampled_from(",\t;"))
def test_any_table_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([("id", "target"), *rows])
    by, found = parts(written(tmp_path_factory.mktemp("a") / "a", text.getvalue()))
    assert by == "csv"
    cells = {f"row {n}, {name}": row[at] for n, row in enumerate(rows, 1) for at, name in enumerate(("id", "target"))}
    assert {name: data.decode() for name, (_, _, data) in found.items() if name != "columns"} == cells


@given(mutations())
def test_a_damaged_table_is_at_least_a_text(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", mutated(TABLE.encode() * 3, changes)))


def test_a_row_without_end_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "a,b\n" + "1,2\n" * 20_000 + '"' + "1,2\n" * 100_000)
    with pytest.raises(ValueError, match="it is no table: field larger than"):
        parts(path)


PARQUET = b"PAR1" + bytes(8) + b"PAR1"


def test_without_pyarrow_its_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for data in (PARQUET, b"ARROW1\0\0" + bytes(20), b"FEA1" + bytes(20)):
        with pytest.raises(ModuleNotFoundError) as error:
            parts(written(tmp_path / "a", data))
        assert error.value.name == "pyarrow"


class Column:
    """A column of a batch as pyarrow has it, as far as it is used."""

    def __init__(self, cells: list[object]) -> None:
        self._cells = cells

    def to_pylist(self) -> list[object]:
        return self._cells


class Schema(list[Any]):
    metadata: dict[bytes, bytes]


class Batch:
    num_columns = 2

    def __init__(self, rows: list[tuple[object, object]]) -> None:
        self._rows, self.num_rows = rows, len(rows)

    def slice(self, start: int, count: int) -> "Batch":
        return Batch(self._rows[start : start + count])

    def column(self, place: int) -> Column:
        return Column([row[place] for row in self._rows])


def test_rows_of_pyarrow_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class File:
        def __init__(self, path: str, memory_map: bool) -> None:
            described = {b"auc": b"0.5", b"pandas": b'{"creator": {"version": "25"}, "columns": [{"name": "loss"}]}'}
            loss = types.SimpleNamespace(name="loss", type="double", metadata={b"mean": b"0.5 s"})
            self.schema_arrow = Schema([loss, types.SimpleNamespace(name="data", type="binary", metadata=None)])
            self.schema_arrow.metadata = described

        def iter_batches(self, batch_size: int, use_threads: bool) -> list[Batch]:
            return [Batch([(0.5, b"\0\1"), (math.inf, None)]), Batch([(-1, "x"), (True, complex(1, 2))])]

    pyarrow, parquet = types.ModuleType("pyarrow"), types.ModuleType("pyarrow.parquet")
    pyarrow.__dict__["parquet"], parquet.__dict__["ParquetFile"] = parquet, File
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    monkeypatch.setattr(apart, "_is_here", lambda library: True)
    by, found = parts(written(tmp_path / "a", PARQUET))
    assert by == "parquet"
    assert found == {
        "columns": ("text", "loss (double), data (binary)", b"loss (double), data (binary)"),
        "@auc": ("number", "0.5", b"0.5"),
        "@pandas.columns[0].name": ("text", "loss", b"loss"),
        "loss@mean": ("text", "0.5 s", b"0.5 s"),
        "row 1, loss": ("number", "0.5", b"0.5"),
        "row 1, data": ("", "", b"\0\1"),
        "row 2, loss": ("number", "inf", b"inf"),
        "row 2, data": ("text", "null", b"\0null"),
        "row 3, loss": ("number", "-1", b"-1"),
        "row 3, data": ("text", "x", b"x"),
        "row 4, loss": ("text", "true", b"\0true"),
        "row 4, data": ("text", "(1+2j)", b"\0(1+2j)"),
    }


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    assert not is_refused_or_read(written(tmp_path / "a", PARQUET))


@pytest.mark.filterwarnings("ignore:.*[Ff]eather:DeprecationWarning", "ignore:.*[Ff]eather:FutureWarning")
def test_real_files_of_pyarrow(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pyarrow.table({"loss": [0.5, None, 0.25], "name": ["a", "b", "c"]})
    parquet.write_table(table, tmp_path / "a")
    feather.write_feather(table, str(tmp_path / "b"))
    feather.write_feather(table, str(tmp_path / "c"), version=1)
    with pyarrow.ipc.new_stream(str(tmp_path / "d"), table.schema) as stream:
        stream.write_table(table)
    for name, by in (("a", "parquet"), ("b", "arrow"), ("c", "arrow"), ("d", "arrow")):
        assert formats.parts(tmp_path / name)[0] == by
        assert texts(tmp_path / name)["row 3, loss"] == "0.25"
    other = pyarrow.table({"loss": [0.5, None, 0.26], "name": ["a", "b", "c"]})
    parquet.write_table(other, tmp_path / "e", compression="zstd")
    assert differing(tmp_path / "a", tmp_path / "e") == ["row 3, loss"]
    for name, auc in (("f", "0.5"), ("g", "0.75")):
        field = pyarrow.field("loss", pyarrow.float64(), metadata={"mean": auc})
        schema = pyarrow.schema([field], metadata={"auc": auc, "curve": f"[0, {auc}]", "same": "x"})
        parquet.write_table(pyarrow.table({"loss": [0.5]}, schema), tmp_path / name)
    assert differing(tmp_path / "f", tmp_path / "g") == ["@auc", "@curve[1]", "loss@mean"]


COLUMNS: dict[str, list[Any]] = {"loss": [0.5, 0.25], "name": ["a", "b"]}


def test_tables_of_stata(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    at = datetime.datetime(2026, 1, 2, 3, 4)
    pandas.DataFrame(COLUMNS).to_stata(tmp_path / "a.dta", write_index=False, time_stamp=at)
    pandas.DataFrame(COLUMNS).to_stata(tmp_path / "b.dta", write_index=False, time_stamp=at.replace(day=3))
    pandas.DataFrame(COLUMNS).to_stata(tmp_path / "c.dta", write_index=False, version=118, time_stamp=at)
    for name in ("a", "c"):
        assert parts(tmp_path / f"{name}.dta")[0] == "stata"
        assert texts(tmp_path / f"{name}.dta")["row 2, loss"] == "0.25"
    assert (tmp_path / "a.dta").read_bytes() != (tmp_path / "b.dta").read_bytes()
    assert differing(tmp_path / "a.dta", tmp_path / "b.dta") == []
    for name, auc in (("d", 0.5), ("e", 0.75)):
        frame = pandas.DataFrame(COLUMNS | {"kind": pandas.Categorical(["p", f"q {auc}"])})
        labels = {"loss": f"mean {auc}"}
        frame.to_stata(tmp_path / f"{name}.dta", write_index=False, data_label=f"auc {auc}", variable_labels=labels)
    assert differing(tmp_path / "d.dta", tmp_path / "e.dta") == ["@kind labels.1", "@label", "@loss"]


def test_tables_of_avro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastavro = pytest.importorskip("fastavro")
    fields = [{"name": "loss", "type": "double"}, {"name": "name", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "runs", "fields": fields})
    for name, loss in (("a", 0.5), ("b", 0.5), ("c", 0.75)):
        with (tmp_path / name).open("wb") as file:
            rows = [{"loss": loss, "name": "a"}, {"loss": 0.25, "name": "b"}]
            fastavro.writer(file, schema, rows, metadata={"auc": str(loss)})
    assert parts(tmp_path / "a")[0] == "avro"
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()  # what ends its blocks is random
    assert differing(tmp_path / "a", tmp_path / "b") == []
    assert differing(tmp_path / "a", tmp_path / "c") == ["@auc", "row 1, loss"]
    pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    _, rows = libraries.avro(str(tmp_path / "c"))
    assert b"".join(rows[4]) == b'[[0.75, 0.25], ["a", "b"]]'


def test_tables_of_orc(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import orc

    for name, loss in (("a", 0.5), ("b", 0.75)):
        orc.write_table(pyarrow.table(COLUMNS | {"loss": [loss, 0.25]}), str(tmp_path / name))
    assert parts(tmp_path / "a")[0] == "orc"
    assert differing(tmp_path / "a", tmp_path / "b") == ["row 1, loss"]


def test_tables_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")

    def made(path: Path, loss: float) -> Path:
        with duckdb.connect(str(path)) as database:
            database.execute(
                "CREATE TABLE runs AS SELECT * FROM (VALUES (1, 0.5::DOUBLE, 'a'), (2, ?, 'b')) t(i, loss, n)", [loss]
            )
            database.execute("CREATE TABLE blobs AS SELECT 'x'::BLOB AS data, DATE '2026-01-02' AS day")
            database.execute("CREATE VIEW best AS SELECT min(loss) FROM runs")
            database.execute("CREATE SCHEMA other")
            database.execute("CREATE TABLE other.blobs AS SELECT 3 AS i")
        return path

    one = made(tmp_path / "1", 0.25)
    by, found = parts(one)
    assert by == "duckdb"
    assert found["table runs: row 2, loss"] == ("number", "0.25", b"0.25")
    assert found["table blobs: row 1, data"] == ("", "", b"x")
    assert found["table blobs: row 1, day"][1] == "2026-01-02"
    assert found["table other.blobs: row 1, i"] == ("number", "3", b"3")
    assert "view best" in found
    before = one.read_bytes()
    assert differing(one, made(tmp_path / "2", 0.25)) == []
    assert differing(one, made(tmp_path / "3", 0.26)) == ["table runs: row 2, loss"]
    assert one.read_bytes() == before
    assert not is_refused_or_read(written(tmp_path / "4", before[: len(before) // 2]))


@pytest.mark.parametrize("text", ["ORCHARD 0.5\n", "LITTLE  DUCK 0.5\n", "Obj 0.5\n"])
def test_a_text_that_begins_like_a_table_is_a_text(tmp_path: Path, text: str) -> None:
    assert formats.parts(written(tmp_path / "a", text))[0] == "text"
