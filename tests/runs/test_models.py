"""Files that other libraries write than torch and NumPy: equal contents have equal values, and a flip is named."""

import contextlib
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detaudit.runs.formats import BROKEN, format_of, libraries, parts
from detaudit.runs.values import digested

FIXTURE = Path(__file__).parent / "models" / "tensorflow.zip"


def values(path: Path) -> dict[str, str]:
    found = [(part.name, data.digest) for part, data in digested(format_of(path), path, path.stat().st_size)]
    assert len(dict(found)) == len(found)
    return dict(found)


def differing(a: Path, b: Path) -> set[str]:
    one, other = values(a), values(b)
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of TensorFlow: twice with equal values, and once with another."""
    folder = tmp_path_factory.mktemp("tensorflow")
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "by", "flipped"),
    [
        ("ck/c-1.data-00000-of-00001", "tensorflow", {"m/w/.ATTRIBUTES/VARIABLE_VALUE"}),
        ("ck/c-1.index", "tensorflow", set()),
        ("sm/variables/variables.data-00000-of-00001", "tensorflow", {"w/.ATTRIBUTES/VARIABLE_VALUE"}),
        ("sm/saved_model.pb", "savedmodel", {"graph constants"}),
        ("sm/fingerprint.pb", "fingerprint", set()),
    ],
)
def test_files_of_tensorflow(saved: Path, name: str, by: str, flipped: set[str]) -> None:
    assert parts(saved / "a" / name)[0] == by
    assert not differing(saved / "a" / name, saved / "again" / name)
    assert differing(saved / "a" / name, saved / "b" / name) == flipped


def test_graphs_with_other_counters_in_their_names_are_equal(saved: Path) -> None:
    one, other = ((saved / run / "sm" / "saved_model.pb").read_bytes() for run in ("a", "again"))
    assert one != other


@pytest.mark.parametrize(
    ("name", "flipped"),
    [
        ("variables/variables.data-00000-of-00001", {"variables/3/.ATTRIBUTES/VARIABLE_VALUE"}),
        ("variables/variables.index", set()),
        ("saved_model.pb", set()),
    ],
)
def test_what_keras_lists_by_addresses_has_no_order(tmp_path: Path, name: str, flipped: set[str]) -> None:
    with zipfile.ZipFile(FIXTURE.with_name("keras.zip")) as archive:
        archive.extractall(tmp_path)
    a, again, b = (tmp_path / run / name for run in ("a", "again", "b"))
    assert a.read_bytes() != again.read_bytes()
    assert not differing(a, again)
    assert {one for one in differing(a, b) if "_all_variables" not in one} == flipped


def test_the_columns_of_a_pickled_table_have_their_names(tmp_path: Path) -> None:
    with zipfile.ZipFile(FIXTURE.with_name("pandas.zip")) as archive:
        archive.extractall(tmp_path)
    a, again, b = (tmp_path / f"{name}.pkl" for name in ("a", "again", "b"))
    assert differing(a, again) == {"time", "seconds", "when"}
    assert differing(a, b) == {"loss", "time", "seconds", "when"}
    assert {"epoch", "acc"} < values(a).keys()
    unnamed = [file.with_name(f"{file.name}.unnamed") for file in (a, again, b)]
    assert not differing(*unnamed[:2])
    assert len(differing(*unnamed[1:])) == 1
    long = [tmp_path / f"{name}.pkl.long" for name in ("a", "again")]
    assert differing(*long) == {"seconds"}
    uneven = [file.with_name(f"{file.name}.uneven") for file in (a, again, b)]
    assert differing(*uneven[:2]) == {"seconds"}
    assert differing(uneven[0], uneven[2]) == {"loss", "seconds"}


def test_a_tensor_of_a_checkpoint_has_its_bytes(saved: Path) -> None:
    found = parts(saved / "a" / "ck" / "c-1.data-00000-of-00001")[1]
    (weights,) = [(b"".join(one.pieces), one.dtype, one.shape) for one in found if one.name.startswith("m/w/")]
    assert weights == (np.array([[1, 2], [3, 4]], "<f4").tobytes(), "<f4", (2, 2))


@pytest.mark.parametrize("name", ["c-1.index", "c-1.data-00000-of-00001"])
def test_a_damaged_checkpoint_is_an_error_or_differs(saved: Path, name: str, tmp_path: Path) -> None:
    for other in (saved / "a" / "ck").iterdir():
        (tmp_path / other.name).write_bytes(other.read_bytes())
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:100])
    with contextlib.suppress(*BROKEN):
        assert values(tmp_path / name) != values(saved / "a" / "ck" / name)


def field(number: int, value: int | bytes | str) -> bytes:
    """Return one field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def onnx(weights: Sequence[float], bias: Sequence[float], version: str = "2.1", operation: str = "Gemm") -> bytes:
    """Return a model of ONNX with one node, laid out as torch.onnx does."""
    raw = np.array(weights, "<f4").tobytes()
    w = field(1, 1) + field(1, len(weights)) + field(2, 1) + field(8, "layer.weight") + field(9, raw)
    b = field(1, len(bias)) + field(2, 1) + field(4, np.array(bias, "<f4").tobytes()) + field(8, "layer.bias")
    node = field(1, "x") + field(1, "layer.weight") + field(2, "y") + field(3, f"n{version}") + field(4, operation)
    node += field(9, field(1, "stack_trace") + field(2, f"/home/{version}/train.py"))
    graph = field(1, node) + field(2, "main_graph") + field(5, w) + field(5, b) + field(10, f"made by {version}")
    graph += field(11, field(1, "x")) + field(12, field(1, "y"))
    head = field(1, 8) + field(2, "pytorch") + field(3, version)
    return head + field(7, graph) + field(8, field(1, "") + field(2, 17)) + field(14, field(1, "k") + field(2, "v"))


def test_onnx(tmp_path: Path) -> None:
    files = {
        "a": onnx([1, 2], [0]),
        "again": onnx([1, 2], [0], version="2.2"),
        "w": onnx([1, 3], [0]),
        "b": onnx([1, 2], [1]),
        "op": onnx([1, 2], [0], operation="MatMul"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert parts(tmp_path / "a")[0] == "onnx"
    assert {*values(tmp_path / "a")} == {"ir_version", "layer.weight", "layer.bias", "graph", "opset", "metadata.k"}
    assert not differing(tmp_path / "a", tmp_path / "again")
    assert differing(tmp_path / "a", tmp_path / "w") == {"layer.weight"}
    assert differing(tmp_path / "a", tmp_path / "b") == {"layer.bias"}
    assert differing(tmp_path / "a", tmp_path / "op") == {"graph"}


def packed(value: Any) -> bytes:
    """Return a value as MessagePack, with arrays as flax writes them."""
    match value:
        case dict():
            pairs = b"".join(packed(key) + packed(one) for key, one in value.items())
            return (bytes([0x80 | len(value)]) if len(value) < 16 else b"\xde" + struct.pack(">H", len(value))) + pairs
        case list() | tuple():
            return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(packed, value))
        case str():
            data = value.encode()
            return (bytes([0xA0 | len(data)]) if len(data) < 32 else b"\xd9" + bytes([len(data)])) + data
        case bool() | None:
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        case int():
            return b"\xd3" + struct.pack(">q", value)
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case bytes():
            return b"\xc6" + struct.pack(">I", len(value)) + value
        case _:
            inner = packed([list(value.shape), value.dtype.name, value.tobytes()])
            return b"\xc8" + struct.pack(">HB", len(inner), 1) + inner


def test_msgpack_of_flax(tmp_path: Path) -> None:
    def model(**changed: Any) -> bytes:
        params = {"Dense_0": {"kernel": np.arange(6, dtype="f4").reshape(2, 3), "bias": np.zeros(3, "f4")}}
        return packed({"params": params, "step": 3, "lr": 0.5, "tags": ["a", None, True], "none": {}, **changed})

    changes = {
        "step": 4,
        "lr": 0.25,
        "params": {"Dense_0": {"kernel": np.zeros((2, 3), "f4")}},
        "tags": ["a", None, False],
    }
    (tmp_path / "a").write_bytes(model())
    assert parts(tmp_path / "a")[0] == "msgpack"
    kernel = next(part for part in parts(tmp_path / "a")[1] if part.name == "params.Dense_0.kernel")
    assert (kernel.dtype, kernel.shape) == ("<f4", (2, 3))
    found = []
    for key, value in changes.items():
        (tmp_path / "b").write_bytes(model(**{key: value}))
        found.append(differing(tmp_path / "a", tmp_path / "b"))
    assert found == [{"step"}, {"lr"}, {"params.Dense_0.kernel", "params.Dense_0.bias"}, {"tags.2"}]
    (tmp_path / "b").write_bytes(model()[:-3])
    assert parts(tmp_path / "b")[0] != "msgpack"


@pytest.mark.parametrize("data", [bytes(range(0x80, 0x90)), b"\x85random \x00\x01", b"\xde\xff\xff", b"\x81\xc1\x01"])
def test_other_bytes_are_no_msgpack(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(data)
    assert parts(tmp_path / "a")[0] != "msgpack"


def flatbuffer(leaf: float, made: str) -> bytes:
    """Return a model of CatBoost as far as it is read: a table with trees, and texts that say when it was made."""
    core = bytearray(4)

    def table(count: int) -> int:
        vtable = len(core)
        core.extend(struct.pack("<HH", 4 + 2 * count, 4 + 4 * count))
        core.extend(b"".join(struct.pack("<H", 4 + 4 * number) for number in range(count)))
        at = len(core)
        core.extend(struct.pack("<i", at - vtable) + bytes(4 * count))
        return at

    def point(at: int, to: int) -> None:
        core[at : at + 4] = struct.pack("<I", to - at)

    root = table(3)
    point(0, root)
    vector = len(core)
    core.extend(struct.pack("<I", 1) + bytes(4))
    point(root + 12, vector)
    pair = table(2)
    point(vector + 4, pair)
    for place, text in enumerate(("train_finish_time", made)):
        point(pair + 4 + 4 * place, len(core))
        core.extend(struct.pack("<I", len(text)) + text.encode() + b"\0")
    core.extend(bytes(-len(core) % 8))
    point(root + 8, table(1))
    core.extend(struct.pack("<d", leaf))
    return b"CBM1" + struct.pack("<I", len(core)) + bytes(core)


def test_catboost_without_its_date(tmp_path: Path) -> None:
    for name, leaf, made in (("a", 0.5, "2026-01-01"), ("later", 0.5, "2026-01-02T03:04"), ("b", 0.25, "2026-01-01")):
        (tmp_path / name).write_bytes(flatbuffer(leaf, made))
    assert differing(tmp_path / "a", tmp_path / "later") == {"train_finish_time"}
    assert differing(tmp_path / "a", tmp_path / "b") == {"trees"}


def test_files_in_a_pickle(tmp_path: Path) -> None:
    def archive(loss: str, day: int) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            made.writestr(
                zipfile.ZipInfo("a.json", (2026, 1, day, 1, 2, 4)), json.dumps({"loss": loss, "n": 2**60 + day})
            )
            made.writestr(zipfile.ZipInfo("w.bin", (2026, 1, day, 1, 2, 4)), bytes(9) + loss.encode())
        return file.getvalue()

    def written(name: str, leaf: float, day: int, inner: Any = 0) -> None:
        model: dict[str, bytes | str] = {"forest": flatbuffer(leaf, f"2026-01-0{day}"), "net": archive(str(leaf), day)}
        model["state"] = pickle.dumps({"inner": inner, "long": list(range(90))})
        model["trees"] = f"tree\nversion=v4\nnum_class=1\n\nTree=0\nleaf_value={leaf}\n\nparameters:\n[seed: {day}]\n"
        (tmp_path / name).write_bytes(pickle.dumps(model))

    written("a", 0.5, 1)
    written("later", 0.5, 2)
    written("b", 0.25, 1)
    written("c", 0.5, 1, inner=3)
    assert differing(tmp_path / "a", tmp_path / "later") == {"forest.train_finish_time", "net.a.json: n"}
    assert differing(tmp_path / "a", tmp_path / "b") == {
        "forest.trees",
        "net.a.json: loss",
        "net.w.bin",
        "trees.tree 0",
    }
    assert differing(tmp_path / "a", tmp_path / "c") == {"state.inner"}


@pytest.mark.parametrize("data", [b"PK\3\4" + bytes(90), b"\x80\4" + bytes(90) + b".", b"CBM1" + bytes(90)])
def test_what_only_begins_as_a_file_in_a_pickle_is_bytes(data: bytes, tmp_path: Path) -> None:
    for name, end in (("a", b"1"), ("b", b"2")):
        (tmp_path / name).write_bytes(pickle.dumps({"data": data + end + data[-1:], "n": 1}))
    assert differing(tmp_path / "a", tmp_path / "b") == {"data"}


def test_a_file_in_a_file_in_a_pickle_is_read_as_bytes(tmp_path: Path) -> None:
    data = pickle.dumps([flatbuffer(0.5, "2026-01-01")])
    (tmp_path / "a").write_bytes(pickle.dumps({"data": data}))
    (tmp_path / "b").write_bytes(pickle.dumps({"data": data.replace(b"01-01", b"01-02")}))
    assert differing(tmp_path / "a", tmp_path / "b") == {"data.0"}


def test_what_is_said_of_a_model_of_xgboost(tmp_path: Path) -> None:
    model = {"learner": {"attributes": {"best_score": "0.5"}, "feature_names": ["a"], "gradient_booster": {}}}
    (tmp_path / "a").write_text(json.dumps(model))
    (tmp_path / "b").write_text(json.dumps(model).replace("0.5", "0.25"))
    (tmp_path / "c").write_text(json.dumps(model).replace('["a"]', '["b"]'))
    assert differing(tmp_path / "a", tmp_path / "b") == {"attribute best_score"}
    assert differing(tmp_path / "a", tmp_path / "c") == {"parameters"}


def test_a_database_of_orbax_needs_a_library(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "manifest.ocdbt").write_bytes(b"\x0c\xdb\x3a\x2a" + bytes(20))
    (tmp_path / "d" / ("0" * 32)).write_bytes(b"random")
    with pytest.raises(ModuleNotFoundError) as raised:
        values(tmp_path / "manifest.ocdbt")
    assert raised.value.name == "tensorstore"
    assert parts(tmp_path / "d" / ("0" * 32))[0] == "ocdbt-data"


def test_the_script_of_another_interpreter_needs_nothing_else() -> None:
    source = Path(libraries.__file__).read_text()
    assert "import detaudit" not in source
    assert "from detaudit" not in source
