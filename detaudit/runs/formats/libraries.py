"""Read formats that need a library, in a process of its own; also run as a script, by an interpreter that has it.

So this file imports nothing of detaudit, and runs on Python 3.9. A part is ``(name, dtype, shape, text, pieces)``, see
``formats.Part``.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any


PIECE = 4 * 2**20
MOST_CHUNK = 2**30
"""Bytes: h5py unpacks a chunk as a whole."""

MOST_TEXTS = 100_000
MOST_SHOWN = 4096
"""Characters of a text that is shown."""

PART, PIECES, END, ERROR = b"P", b"D", b"E", b"X"
"""What a frame is: a part, its next bytes, the end, or what went wrong. Each is followed by its size."""


def hdf5(path: str) -> Iterator[Any]:
    """Yield the datasets, links and attributes of an HDF5 file."""
    import h5py

    size = os.path.getsize(path)
    with h5py.File(path, "r") as root:
        objects = {"": root}

        def visit(name: str, item: Any) -> None:
            objects[name] = item

        root.visititems(visit)  # follows no soft or external links
        for name, item in sorted(objects.items()):
            if isinstance(item, h5py.Dataset):
                _check(item, size)
                pieces, shown = (_slabs(item, ()), "") if not item.dtype.hasobject else _texts(item[()])
                dtype = "text" if shown else item.dtype.str
                yield name, dtype, list(item.shape or ()), shown, pieces
        for name, item in sorted(objects.items()):
            for key in sorted(item) if isinstance(item, h5py.Group) else ():
                link = item.get(key, getlink=True)
                if isinstance(link, (h5py.SoftLink, h5py.ExternalLink)):
                    pieces, shown = _texts(f"link to {getattr(link, 'filename', '')}{link.path}")
                    yield f"{name}/{key}".lstrip("/"), "text", [], shown, pieces
        for name, item in sorted(objects.items()):
            for key in sorted(item.attrs):
                yield _attribute(f"{name}@{key}", item.attrs, key)


def _check(dataset: Any, size: int) -> None:
    import h5py

    if dataset.is_virtual or dataset.external:
        raise ValueError("it keeps data in other files")
    if dataset.chunks and math.prod(dataset.chunks) * dataset.dtype.itemsize > MOST_CHUNK:
        raise ValueError("its chunks are too large")
    if dataset.nbytes > MOST_CHUNK and dataset.nbytes > 2000 * size:  # more than compression can do
        raise ValueError("it declares far more data than it holds")
    if dataset.dtype.hasobject and (h5py.check_string_dtype(dataset.dtype) is None or dataset.size > MOST_TEXTS):
        raise ValueError(f"{dataset.name} holds neither numbers nor a few texts")


def _slabs(dataset: Any, at: Any) -> Iterator[bytes]:
    """Yield the elements below the index ``at`` in C order, up to PIECE bytes at a time."""
    if dataset.shape is None:  # an empty dataspace
        return
    rest = dataset.shape[len(at) :]
    if not rest:
        yield dataset[at].tobytes()
        return
    row = math.prod(rest[1:]) * dataset.dtype.itemsize
    if row > PIECE:
        for index in range(rest[0]):
            yield from _slabs(dataset, (*at, index))
        return
    step = PIECE // max(row, 1)
    for start in range(0, rest[0] if row else 0, step):
        rows = (*at, slice(start, start + step))
        yield dataset[rows].tobytes()


def _texts(value: Any) -> Any:
    """Return the bytes of texts, and the one text if it is one."""
    texts = [value] if isinstance(value, (bytes, str)) else list(value.reshape(-1))
    coded = [one.encode("utf-8", "surrogateescape") if isinstance(one, str) else bytes(one) for one in texts]
    shown = coded[0].decode("utf-8", "backslashreplace") if isinstance(value, (bytes, str)) else ""
    pieces = iter([b"".join(len(one).to_bytes(8, "little") + one for one in coded)])
    return pieces, shown if len(shown) <= MOST_SHOWN else ""


def _attribute(name: str, attributes: Any, key: str) -> Any:
    import h5py

    value = attributes[key]
    if isinstance(value, (bytes, str)):
        pieces, shown = _texts(value)
        return name, "text" if shown else "", [], shown, pieces
    if isinstance(value, h5py.Empty):
        return name, "", [], "", iter([b""])
    if value.dtype.hasobject:
        if h5py.check_string_dtype(attributes.get_id(key).dtype) is None:
            return name, "", [], "", iter([b"a reference"])
        return name, "", list(value.shape), "", _texts(value)[0]
    if value.shape == () and value.dtype.kind in "iuf":
        shown = repr(value.item())
        return name, "number", [], shown, iter([shown.encode()])
    return name, value.dtype.str, list(value.shape), "", iter([value.tobytes()])


def ocdbt(path: str) -> Iterator[Any]:
    """Yield the arrays in a database of tensorstore's OCDBT driver, by its file ``manifest.ocdbt``."""
    import tensorstore  # type: ignore[import-not-found]

    base = "file://" + os.path.dirname(os.path.abspath(path)) + "/"
    store = tensorstore.KvStore.open({"driver": "ocdbt", "base": base}).result()
    keys = sorted(key.decode("utf-8", "backslashreplace") for key in store.list().result())
    marks = ("/.zarray", "/zarr.json")
    arrays = [key for key in keys if key.endswith(marks)]
    below = tuple(key.rpartition("/")[0] + "/" for key in arrays)
    for key in arrays:
        name, _, mark = key.rpartition("/")
        kvstore = {"driver": "ocdbt", "base": base, "path": name + "/"}
        driver = "zarr" if mark == ".zarray" else "zarr3"
        array = tensorstore.open({"driver": driver, "kvstore": kvstore}, open=True, read=True).result()
        if array.dtype.numpy_dtype.hasobject:
            raise ValueError("an array in it holds no numbers")
        kind = array.dtype.name if array.dtype.numpy_dtype.kind == "V" else array.dtype.numpy_dtype.str
        yield name, kind, list(array.shape), "", _rows(array)
    for key in keys:
        if not key.startswith(below):
            yield key, "", [], "", iter([store.read(key).result().value])


def _rows(array: Any) -> Iterator[bytes]:
    if not array.shape:
        yield array.read().result().tobytes()
        return
    row = max(1, math.prod(array.shape[1:]) * array.dtype.numpy_dtype.itemsize)
    step = max(1, 16 * PIECE // row)
    for start in range(0, array.shape[0], step):
        data = array[start : min(start + step, array.shape[0])].read().result().tobytes()
        for at in range(0, len(data), PIECE):
            yield data[at : at + PIECE]


BINARY, LITERAL = "\0bytes", "\0literal"
"""Keys of objects in JSON that stand for what JSON has not."""

METADATA = "\0metadata"
"""The part with what a file says of a table beside its rows: pairs of a name and a text, in JSON."""

ROWS = 4096
"""Rows of a table that are sent at a time."""


def parquet(path: str) -> Iterator[Any]:
    """Yield the columns of a Parquet file, as ``_table`` does."""
    from pyarrow import parquet as reader

    file = reader.ParquetFile(path, memory_map=False)
    return _table(file.schema_arrow, file.iter_batches(batch_size=ROWS, use_threads=False))


def arrow(path: str) -> Iterator[Any]:
    """Yield the columns of an Arrow file, a stream or Feather's first version, as ``_table`` does."""
    from pyarrow import feather, ipc

    with open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        if start.startswith(b"FEA1"):
            table = feather.read_table(path, use_threads=False, memory_map=False)
            yield from _table(table.schema, table.to_batches(max_chunksize=ROWS))
        elif start == b"ARROW1":
            source = ipc.open_file(file)
            batches = (source.get_batch(index) for index in range(source.num_record_batches))
            yield from _table(source.schema, batches)
        else:
            stream = ipc.open_stream(file)
            yield from _table(stream.schema, stream)


def orc(path: str) -> Iterator[Any]:
    """Yield the columns of an ORC file, as ``_table`` does."""
    from pyarrow import orc as reader

    file = reader.ORCFile(path)
    return _table(file.schema, map(file.read_stripe, range(file.nstripes)))


def avro(path: str) -> Iterator[Any]:
    """Yield the columns of an Avro file, as ``_table`` does, by the first of two libraries that is installed."""
    try:
        import fastavro
    except ImportError:
        import polars

        frame = polars.read_avro(path)
        columns = [[name, str(kind)] for name, kind in frame.schema.items()]
        rows, metadata = iter(frame.iter_rows()), {}
    else:
        file = open(path, "rb")  # noqa: SIM115 - until this process ends
        reader = fastavro.reader(file)
        columns = [[field["name"], json.dumps(field["type"])] for field in reader.writer_schema["fields"]]
        rows = (tuple(record.get(name) for name, _ in columns) for record in reader)
        metadata = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    yield _sent("columns", columns)
    yield from _described(metadata)
    while block := list(itertools.islice(rows, ROWS)):
        yield _sent("rows", _in_columns(block))


def stata(path: str) -> Iterator[Any]:
    """Yield the columns of a Stata file, as ``_table`` does; its header has the time at which it was written."""
    import pandas

    with pandas.read_stata(path, chunksize=ROWS, preserve_dtypes=False, convert_categoricals=False) as blocks:
        for number, block in enumerate(blocks):
            if not number:
                columns = [[str(name), str(kind)] for name, kind in block.dtypes.items()]
                yield _sent("columns", columns)
                said = {"label": blocks.data_label, **blocks.variable_labels()}
                for name, labels in blocks.value_labels().items():
                    said[f"{name} labels"] = json.dumps({str(code): label for code, label in labels.items()})
                yield from _described({name: one for name, one in said.items() if one})
            yield _sent("rows", [block[name].tolist() for name in block])


def _table(schema: Any, batches: Any) -> Iterator[Any]:
    """Yield the names and types of columns in JSON, then rows of a table, as lists of columns in JSON."""
    columns = [[field.name, str(field.type)] for field in schema]
    yield _sent("columns", columns)
    yield from _described(schema.metadata or {})
    for field in schema:
        yield from _described(field.metadata or {}, field.name)
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            rows = batch.slice(start, ROWS)
            yield _sent("rows", [rows.column(index).to_pylist() for index in range(rows.num_columns)])


def duckdb(path: str) -> Iterator[Any]:
    """Yield the columns of each table of a DuckDB database and then its rows, as ``_table`` does, by the table's name.

    Of a view, only how it is made. Nothing but the file is read.
    """
    import duckdb as library

    database = library.connect(path, read_only=True)
    database.execute("SET enable_external_access = false")
    tables = "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE NOT internal ORDER BY ALL"
    views = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    for name, sql in database.execute(views).fetchall():
        yield f"view {name}", "text", [], sql[:MOST_SHOWN], iter([sql.encode()])
    for schema, table, _ in database.execute(tables).fetchall():
        quoted = ".".join('"' + one.replace('"', '""') + '"' for one in (schema, table))
        rows = database.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - a name cannot be a parameter
        name = table if schema == "main" else f"{schema}.{table}"
        yield _sent(name, [[column[0], str(column[1])] for column in rows.description])
        while block := rows.fetchmany(ROWS):
            yield _sent(name, _in_columns(block))


def _described(metadata: Any, column: str = "") -> Iterator[Any]:
    """Yield what a file says of a table or of one of its columns, but for the versions of pandas and of its writer."""
    pairs = []
    for name, value in sorted((_decoded(name), _decoded(value)) for name, value in metadata.items()):
        if name == "pandas":  # https://pandas.pydata.org/docs/development/developer.html
            said = {key: one for key, one in json.loads(value).items() if key not in ("creator", "pandas_version")}
            value = json.dumps(said)
        pairs.append([f"{column}@{name}", value])
    if pairs:
        yield _sent(METADATA, pairs)


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _sent(name: str, value: Any) -> Any:
    """Return a part that is JSON: the columns of a table, or rows of it as lists of columns."""
    return name, "", [], "", iter([json.dumps(value, default=_coded).encode()])


def _in_columns(rows: Any) -> list[list[Any]]:
    return list(map(list, zip(*rows)))  # noqa: B905 - Python 3.9 has no strict


def _coded(value: Any) -> Any:
    return {BINARY: value.hex()} if isinstance(value, bytes) else {LITERAL: str(value)}  # such as a date


READERS = {
    "hdf5": ("h5py", hdf5),
    "ocdbt": ("tensorstore", ocdbt),
    "parquet": ("pyarrow", parquet),
    "arrow": ("pyarrow", arrow),
    "duckdb": ("duckdb", duckdb),
    "orc": ("pyarrow", orc),
    "stata": ("pandas", stata),
    "avro": ("fastavro", avro),
}
"""The library that a format needs, and what reads it."""


def put(file: IO[bytes], kind: bytes, data: bytes) -> None:
    """Write one frame."""
    file.write(kind + len(data).to_bytes(8, "little") + data)


def main() -> None:
    """Read the file whose format and path are arguments, and write its parts to stdout."""
    sent = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no part
    kind, path = sys.argv[1:]
    try:
        for name, dtype, shape, text, pieces in READERS[kind][1](path):
            put(sent, PART, json.dumps([name, dtype, shape, text]).encode())
            for piece in pieces:
                put(sent, PIECES, piece)
        put(sent, END, b"")
    except ImportError as error:
        put(sent, ERROR, json.dumps(["library", READERS[kind][0], str(error)]).encode())
    except Exception as error:  # noqa: BLE001 - whatever a library raises for a damaged file
        kind = "file" if isinstance(error, OSError) else "value"
        put(sent, ERROR, json.dumps([kind, "", f"{type(error).__name__}: {error}"]).encode())
    sent.flush()


if __name__ == "__main__":
    main()
