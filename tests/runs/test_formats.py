"""Files are read value by value: a changed element is seen, and named, and no pickle is ever loaded."""

import contextlib
import gzip
import io
import json
import pickle
import random
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io  # type: ignore[import-untyped]
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from detaudit.runs import files
from detaudit.runs.formats import BROKEN, PIECE, UnusableError, format_of, npy, npz, parts
from detaudit.runs.values import digested

TENSORS = st.dictionaries(st.text(min_size=1, max_size=8), st.binary(min_size=1, max_size=40), min_size=1, max_size=4)


class Explodes:
    """Raises when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('a pickle was loaded')",))


def values(path: Path) -> dict[str, str]:
    """Return the digests of what a file holds, by their names."""
    found = [(part.name, data.digest) for part, data in digested(format_of(path), path, path.stat().st_size)]
    assert len(dict(found)) == len(found)
    return dict(found)


def digest(path: Path) -> dict[str, str]:
    return values(path)


def differing(a: Path, b: Path) -> set[str]:
    one, other = values(a), values(b)
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def total(path: Path) -> float | None:
    return files.read(path).total


def safetensors(tensors: dict[str, bytes], metadata: str = "", backwards: bool = False) -> bytes:
    """Return a file in which each tensor is a row of bytes."""
    header: dict[str, Any] = {"__metadata__": {"saved": metadata}} if metadata else {}
    data = b""
    for name, raw in sorted(tensors.items(), reverse=backwards):
        header[name] = {"dtype": "U8", "shape": [len(raw)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats") / "model.safetensors"


def written(file: Path, data: bytes) -> dict[str, str]:
    file.write_bytes(data)
    return digest(file)


@given(TENSORS, st.data())
@settings(deadline=None)
def test_safetensors_any_changed_bit_is_seen(file: Path, tensors: dict[str, bytes], data: st.DataObject) -> None:
    before = written(file, safetensors(tensors))
    name = data.draw(st.sampled_from(sorted(tensors)))
    raw = bytearray(tensors[name])
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert written(file, safetensors({**tensors, name: bytes(raw)})) != before


@given(TENSORS, st.text(max_size=9), st.booleans())
@settings(deadline=None)
def test_safetensors_metadata_is_text_and_the_order_has_no_effect(
    file: Path, tensors: dict[str, bytes], text: str, backwards: bool
) -> None:
    plain, other = written(file, safetensors(tensors)), written(file, safetensors(tensors, text, backwards))
    assert plain == {name: one for name, one in other.items() if name != "__metadata__.saved"}


@given(TENSORS, st.data())
@settings(deadline=None)
def test_safetensors_damaged_anywhere_is_refused_or_differs(
    file: Path, tensors: dict[str, bytes], data: st.DataObject
) -> None:
    whole = safetensors(tensors)
    before = written(file, whole)
    size = data.draw(st.integers(1, len(whole) - 1))
    with contextlib.suppress(*BROKEN):
        assert written(file, whole[:size]) != before
    with pytest.raises(ValueError, match="bytes"):
        written(file, whole + b"x")
    garbled = whole[:size] + bytes([whole[size] ^ 1]) + whole[size + 1 :]
    with contextlib.suppress(*BROKEN):
        assert written(file, garbled) != before


def test_safetensors_cut_off_in_the_header_are_still_recognized(file: Path) -> None:
    whole = safetensors({"a": b"1234"})
    header = int.from_bytes(whole[:8], "little")
    assert header > 16
    for size in (9, 16, 8 + header, len(whole) - 1):
        with pytest.raises(ValueError):  # noqa: PT011
            written(file, whole[:size])


def test_safetensors_that_overlap_are_refused(file: Path) -> None:
    tensor = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    text = json.dumps({"a": tensor, "b": tensor}).encode()
    with pytest.raises(ValueError, match="one after another"):
        written(file, struct.pack("<Q", len(text)) + text + b"1234")


def test_safetensors_as_its_own_library_writes_it(tmp_path: Path) -> None:
    weights = {"b": np.arange(6, dtype="f4").reshape(2, 3) / 7, "a": np.array([1.5], "f2"), "n": np.array([9])}
    save_file(weights, tmp_path / "a.safetensors", metadata={"saved": "today"})
    save_file(weights, tmp_path / "b.safetensors", metadata={"saved": "tomorrow"})
    assert differing(tmp_path / "a.safetensors", tmp_path / "b.safetensors") == {"__metadata__.saved"}
    assert [*values(tmp_path / "a.safetensors")] == ["a", "b", "n", "__metadata__.saved"]
    assert total(tmp_path / "a.safetensors") == pytest.approx(float(weights["b"].sum(dtype="f8")) + 1.5, abs=1e-12)


@pytest.mark.parametrize("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
def test_sums_of_every_type_of_float(tmp_path: Path, dtype: str) -> None:
    array = np.random.default_rng(0).normal(size=1000).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    assert total(tmp_path / "a.npy") == pytest.approx(float(array.astype("f8").sum()), abs=1e-9)


def test_sums_of_what_is_no_float_or_not_understood(tmp_path: Path) -> None:
    np.save(tmp_path / "ints.npy", np.arange(3))
    np.save(tmp_path / "long.npy", np.ones(3, dtype=np.longdouble))
    np.save(tmp_path / "inf.npy", np.array([np.inf, -np.inf]))
    assert total(tmp_path / "ints.npy") is None
    assert total(tmp_path / "long.npy") is None
    assert np.isnan(total(tmp_path / "inf.npy") or 0)


def test_npz_packed_or_not_and_at_any_time(tmp_path: Path) -> None:
    arrays = {"w": np.ones((20, 3)), "b": np.zeros(3), "objects": np.array([Explodes(), {}], dtype=object)}
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    np.savez_compressed(tmp_path / "b.npz", **arrays)  # type: ignore[arg-type]
    with zipfile.ZipFile(tmp_path / "a.npz") as old, zipfile.ZipFile(tmp_path / "c.npz", "w") as new:
        for member in reversed(old.infolist()):
            new.writestr(zipfile.ZipInfo(member.filename, (2030, 1, 1, 0, 0, 0)), old.read(member))
    assert digest(tmp_path / "a.npz") == digest(tmp_path / "b.npz") == digest(tmp_path / "c.npz")
    assert total(tmp_path / "a.npz") == 60
    arrays["b"][1] = -0.0
    np.savez(tmp_path / "d.npz", **arrays)  # type: ignore[arg-type]
    assert differing(tmp_path / "d.npz", tmp_path / "a.npz") == {"b"}


def test_npy_shape_type_and_order_count(tmp_path: Path) -> None:
    zeros = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), order="F"), np.zeros((2, 3), dtype="i8")]
    for number, array in enumerate(zeros):
        np.save(tmp_path / f"{number}.npy", array)
    assert len({digest(tmp_path / f"{number}.npy")[""] for number in range(4)}) == 4


@pytest.mark.parametrize("protocol", range(2, 6))
def test_an_array_with_its_axes_in_another_order_is_read_from_a_pickle(protocol: int, tmp_path: Path) -> None:
    """NumPy 2.4 gives protocol 5 the order of the axes too."""
    array = np.arange(24.0).reshape(2, 3, 4)
    other = array.transpose(1, 0, 2).copy().transpose(1, 0, 2)
    for name, one in (("a", array.transpose(1, 2, 0)), ("b", array.transpose(1, 2, 0)), ("c", other), ("d", array)):
        (tmp_path / name).write_bytes(pickle.dumps({"x": one}, protocol))
    assert differing(tmp_path / "a", tmp_path / "b") == set()
    assert differing(tmp_path / "a", tmp_path / "c") == {"x"}
    assert total(tmp_path / "a") == 276


def checkpoint() -> dict[str, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1).to(torch.bfloat16))
    return {"model": model.state_dict(), "epoch": 3}


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("zipped", [True, False])
def test_torch_under_any_name(tmp_path: Path, protocol: int, zipped: bool) -> None:
    saved = checkpoint()
    for name in ("a.pth.tar", "b", "c.csv"):
        torch.save(saved, tmp_path / name, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
        assert parts(tmp_path / name)[0] == "torch"
    found = values(tmp_path / "a.pth.tar")
    assert found == values(tmp_path / "b") == values(tmp_path / "c.csv")
    assert {"model.0.weight", "model.1.bias", "epoch"} <= found.keys()
    expected = sum(float(t.double().sum()) for t in saved["model"].values())
    assert total(tmp_path / "b") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("zipped", [True, False])
def test_torch_names_what_differs(tmp_path: Path, zipped: bool) -> None:
    saved = checkpoint()
    torch.save(saved, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    with torch.no_grad():
        saved["model"]["1.weight"][0, 2] *= -1
    torch.save(saved, tmp_path / "b.pt", _use_new_zipfile_serialization=zipped)
    torch.save({**saved, "epoch": 4}, tmp_path / "c.pt", _use_new_zipfile_serialization=zipped)
    assert differing(tmp_path / "a.pt", tmp_path / "b.pt") == {"model.1.weight"}
    assert differing(tmp_path / "b.pt", tmp_path / "c.pt") == {"epoch"}


def test_torchscript_by_its_code_and_constants(tmp_path: Path) -> None:
    class Shifted(torch.nn.Module):
        def __init__(self, by: float) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.by = by

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight + self.by

    for name, by in (("a.pt", 0.5), ("b.pt", 0.25)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(Shifted(by), torch.ones(3))  # type: ignore[no-untyped-call]
            torch.jit.save(traced, tmp_path / name, _extra_files={"note": "kept"})
    found = differing(tmp_path / "a.pt", tmp_path / "b.pt")
    assert found
    # A class that is traced again gets another name.
    assert all(one.startswith(("code/", "constants", "types")) for one in found), found
    assert any(one.startswith(("code/", "constants")) for one in found), found
    assert "extra/note" in values(tmp_path / "a.pt")


def test_the_constants_of_torchscript_have_no_order(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(torch.nn.Linear(4, 3)), tmp_path / "a.pt")
    code = "code/__torch__/torch/nn/modules/linear.py"
    one, other = b"  in_features : Final[int] = 4\n", b"  out_features : Final[int] = 3\n"
    for name in ("b.pt", "c.pt"):
        with zipfile.ZipFile(tmp_path / "a.pt") as read, zipfile.ZipFile(tmp_path / name, "w") as written:
            for member in read.namelist():
                data = read.read(member)
                if member == f"a/{code}":
                    swapped = data.replace(one, b"?").replace(other, one).replace(b"?", other)
                    assert swapped != data
                    data = swapped if name == "b.pt" else data.replace(b" = 3", b" = 5")
                written.writestr(member, data)
    assert differing(tmp_path / "a.pt", tmp_path / "b.pt") == set()
    assert differing(tmp_path / "a.pt", tmp_path / "c.pt") == {code}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_the_scale_of_a_quantized_tensor_counts(tmp_path: Path) -> None:
    for name, scale in (("a.pt", 0.5), ("b.pt", 0.25)):
        made = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]) * scale, scale, 0, torch.qint8)
        torch.save({"weight": made}, tmp_path / name)
    assert differing(tmp_path / "a.pt", tmp_path / "b.pt") == {"weight.quantizer.1"}


def test_the_date_of_a_mat_file_is_apart(tmp_path: Path) -> None:
    def mat(name: str, date: str, value: float) -> Path:
        scipy.io.savemat(tmp_path / name, {"weights": np.array([value, 2.0])})
        data = (tmp_path / name).read_bytes()
        at = data.index(b"Created on: ") + 12
        (tmp_path / name).write_bytes(data[:at] + date.encode() + data[at + len(date) :])
        return tmp_path / name

    first = mat("a.mat", "Tue Nov 25 08:12:33 2025", 1.0)
    assert differing(first, mat("b.mat", "Tue Nov 25 08:12:34 2025", 1.0)) == {"header"}
    assert differing(first, mat("c.mat", "Tue Nov 25 08:12:33 2025", 1.5)) == {"weights"}


@pytest.mark.parametrize("compressed", [False, True])
def test_variables_of_a_mat_file_have_their_names_and_types(tmp_path: Path, compressed: bool) -> None:
    def mat(name: str, seconds: float) -> Path:
        held = {
            "seconds": seconds,
            "started": "Tüe",
            "losses": np.arange(6.0).reshape(2, 3),
            "kinds": np.array([1, 2], "<i4"),
        }
        held |= {"cells": np.array(["a", 1], dtype=object), "complex": np.array([1j])}
        scipy.io.savemat(tmp_path / name, held, do_compression=compressed)
        return tmp_path / name

    found = {part.name: part for part in parts(mat("a.mat", 0.5))[1]}
    assert (found["seconds"].dtype, found["seconds"].shape) == ("<f8", ())
    assert found["started"].text == "Tüe"
    assert (found["losses"].dtype, found["losses"].shape) == ("<f8", (2, 3))
    assert b"".join(found["losses"].pieces) == np.arange(6.0).reshape(2, 3).tobytes(order="F")
    assert (found["kinds"].dtype, found["kinds"].shape) == ("<i4", (1, 2))
    assert {"variable 5", "variable 6"} < found.keys()
    assert differing(tmp_path / "a.mat", mat("b.mat", 0.75)) - {"header"} == {"seconds"}
    data = (tmp_path / "a.mat").read_bytes()
    for size in range(130, len(data), 7):
        (tmp_path / "cut.mat").write_bytes(data[:size])
        with contextlib.suppress(*BROKEN):
            list(parts(tmp_path / "cut.mat")[1])


def test_torch_never_loads_the_structure(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2), "x": Explodes()}, tmp_path / "a.pt")
    assert total(tmp_path / "a.pt") == 2


def test_torch_types_without_a_known_sum(tmp_path: Path) -> None:
    small = torch.arange(6.0).reshape(2, 3).to(torch.float8_e4m3fn)
    torch.save({"w": torch.ones(2), "x": small[1:]}, tmp_path / "a.pt")
    torch.save({"w": torch.ones(2), "n": torch.ones(2, dtype=torch.int64)}, tmp_path / "b.pt")
    torch.save(
        {"w": torch.ones(2), "x": torch.cat([torch.ones(1, 3).to(small.dtype), small[1:]])[1:]}, tmp_path / "c.pt"
    )
    assert total(tmp_path / "a.pt") is None
    assert total(tmp_path / "b.pt") == 2
    assert not differing(tmp_path / "a.pt", tmp_path / "c.pt")


def test_whole_modules_and_parameters(tmp_path: Path) -> None:
    for name, units in (("a", 2.0), ("b", 3.0)):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout(0.5))
        with torch.no_grad():
            model.get_parameter("0.bias")[1] = units
        torch.save(model, tmp_path / name)
    assert differing(tmp_path / "a", tmp_path / "b") == {"0.bias"}


@pytest.mark.filterwarnings("ignore")
def test_a_distributed_checkpoint(tmp_path: Path) -> None:
    from torch.distributed.checkpoint.state_dict_saver import save

    for name, last in (("a", 1.0), ("again", 1.0), ("b", 2.0)):
        weights = {"w": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([0.5, last])}
        state = {"model": weights, "step": 3, "lr": 0.1}
        save(state, checkpoint_id=tmp_path / name, no_dist=True)
    file = "__0_0.distcp"
    assert parts(tmp_path / "a" / file)[0] == "torch"
    assert {"model.w", "model.b"} <= values(tmp_path / "a" / file).keys()
    assert not differing(tmp_path / "a" / file, tmp_path / "again" / file)
    assert differing(tmp_path / "a" / file, tmp_path / "b" / file) == {"model.b"}
    named = {"storage_meta.checkpoint_id", "storage_meta.save_id"}  # the folder, and a UUID
    assert differing(tmp_path / "a" / ".metadata", tmp_path / "again" / ".metadata") == named
    (tmp_path / "a" / ".metadata").unlink()
    assert len(values(tmp_path / "a" / file)) == len(values(tmp_path / "b" / file))


@pytest.mark.filterwarnings("ignore")
def test_an_exported_program(tmp_path: Path) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self, last: float) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(3, 2)
            with torch.no_grad():
                self.layer.bias[1] = last
            self.factor = last

        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(x) * 3.0

    for name, last in (("a", 1.0), ("again", 1.0), ("b", 2.0)):
        (tmp_path / name).mkdir()
        torch.export.save(torch.export.export(Scaled(last), (torch.ones(4, 3),)), tmp_path / name / "m.pt2")
    a, again, b = (tmp_path / name / "m.pt2" for name in ("a", "again", "b"))
    assert parts(a)[0] == "torch-export"
    assert not differing(a, again)
    (only,) = differing(a, b)
    assert "layer.bias" in only


PROTOCOLS = range(6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_value_of_a_pickle_has_its_path(tmp_path: Path, protocol: int) -> None:
    def saved(**changed: Any) -> Path:
        held = {
            "threshold": 0.5,
            "names": ["x", "y"],
            "deep": ({"count": 3, (1, "a"): None}, True),
            "labels": {"b", "a", "c"},
            "scalar": np.float32(0.1),
            "folder": Path("/tmp/x"),
            "weights": np.arange(3.0),
            "long": [0.5] * 2000,
            "bytes": b"abc",
            "big": 10**2000,
            **changed,
        }
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.any"
        path.write_bytes(pickle.dumps(held, protocol))
        assert parts(path)[0] == "pickle"
        return path

    first = saved()
    assert not differing(first, saved())
    assert not differing(first, saved(labels={"c", "b", "a"}))
    changes: dict[str, tuple[str, Any]] = {
        "threshold": ("threshold", np.nextafter(0.5, 1).item()),
        "names.1": ("names", ["x", "z"]),
        "deep.0.count": ("deep", ({"count": 4, (1, "a"): None}, True)),
        "deep.0.(1, 'a')": ("deep", ({"count": 3, (1, "a"): 0}, True)),
        "deep.1": ("deep", ({"count": 3, (1, "a"): None}, False)),
        "labels": ("labels", {"b", "a", "d"}),
        "scalar": ("scalar", np.float32(0.2)),
        "folder": ("folder", Path("/tmp/y")),
        "weights": ("weights", np.array([0.0, 1, 3])),
        "long": ("long", [0.5] * 1999 + [0.25]),
        "bytes": ("bytes", b"abd"),
        "big": ("big", 10**2000 + 1),
    }
    for name, (key, value) in changes.items():
        assert differing(first, saved(**{key: value})) == {name}


@pytest.mark.parametrize("protocol", [0, 1, 2])
@pytest.mark.parametrize("value", [0.5, "abc", [1], {"a": 1}, {1, 2}, (1, 2), 2**70])
def test_a_pickle_of_an_old_protocol_is_recognized(tmp_path: Path, protocol: int, value: Any) -> None:
    (tmp_path / "a").write_bytes(pickle.dumps(value, protocol))
    assert parts(tmp_path / "a")[0] == "pickle"


@pytest.mark.parametrize("words", [b"(hello).", b"I like it.", b"cats\nand\ndogs.", b"Loss: 1.", b"G12345678.", b"."])
def test_a_text_is_no_pickle(tmp_path: Path, words: bytes) -> None:
    (tmp_path / "a").write_bytes(words)
    assert format_of(tmp_path / "a") is None or format_of(tmp_path / "a").name != "pickle"  # type: ignore[union-attr]


@pytest.mark.parametrize(("one", "other"), [({"a": []}, {"b": []}), ({"x": 1, "a": {}}, {"x": 1}), ([1, []], [1, {}])])
def test_what_is_empty_in_a_pickle_is_there(one: Any, other: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pickle.dumps(one))
    (tmp_path / "b").write_bytes(pickle.dumps(other))
    assert differing(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").write_bytes(gzip.compress(pickle.dumps(one), mtime=1))
    (tmp_path / "d").write_bytes(gzip.compress(pickle.dumps(one), mtime=2))
    assert not differing(tmp_path / "c", tmp_path / "d")


def test_several_pickles_in_one_file(tmp_path: Path) -> None:
    for name, last in (("a", 1), ("b", 2)):
        (tmp_path / name).write_bytes(pickle.dumps({"loss": 1}) + pickle.dumps({"loss": last}))
    assert differing(tmp_path / "a", tmp_path / "b") == {"pickle 2.loss"}


def test_the_state_of_a_generator_in_a_pickle(tmp_path: Path) -> None:
    held = {
        "a": random.getstate(),
        "b": random.Random(1),
        "c": np.random.get_state(),
        "d": np.random.RandomState(1),
        "e": np.random.default_rng(1),
        "f": {"seed": 1},
    }
    for protocol in PROTOCOLS:
        (tmp_path / "a").write_bytes(pickle.dumps(held, protocol))
        others = {part.name for part in parts(tmp_path / "a")[1] if not part.generator}
        assert others == {"f.seed", "types"}


def test_npy_with_objects_and_several_arrays(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        with (tmp_path / name).open("wb") as file:
            np.save(file, np.ones(3))
            np.save(file, np.array([{"loss": value}, [1, "x"]], dtype=object))
    assert differing(tmp_path / "a", tmp_path / "b") == {"#2.0.loss"}


def test_files_larger_than_a_piece(tmp_path: Path) -> None:
    data = bytearray(np.ones(PIECE // 4 + 3, "f4").tobytes())
    (tmp_path / "a").write_bytes(data)
    data[-1] ^= 1
    (tmp_path / "b").write_bytes(data)
    assert digest(tmp_path / "a") != digest(tmp_path / "b")
    np.save(tmp_path / "a.npy", np.ones(PIECE // 4 + 3, "f4"))
    assert total(tmp_path / "a.npy") == PIECE // 4 + 3


def hdf5(path: Path, **datasets: Any) -> Path:
    with h5py.File(path, "w") as root:
        for name, data in datasets.items():
            root.create_dataset(f"layers/{name}", data=data, track_times=name == "timed")
    return path


def test_hdf5_by_its_datasets(tmp_path: Path) -> None:
    wide = np.arange(3 * (PIECE // 8 + 5), dtype="f8").reshape(3, -1)
    a = hdf5(tmp_path / "a.h5", w=wide, scalar=1.5, text=["a", "bc"], fixed=np.array([b"x"]), none=h5py.Empty("f4"))
    assert total(a) == wide.sum() + 1.5
    assert [*values(a)] == [f"layers/{name}" for name in ("fixed", "none", "scalar", "text", "w")]
    with h5py.File(tmp_path / "b.weights.h5", "w") as root, h5py.File(a) as old:
        root.create_dataset("later", data=1)
        old.copy("layers", root)
        del root["later"]
    assert values(tmp_path / "b.weights.h5") == values(a)
    wide[2, -1] += 1
    b = hdf5(tmp_path / "b.h5", w=wide, scalar=1.5, text=["a", "bd"], fixed=np.array([b"x"]), none=h5py.Empty("f4"))
    assert differing(a, b) == {"layers/w", "layers/text"}


def test_hdf5_links_say_what_they_lead_to(tmp_path: Path) -> None:
    for name, best in (("a.h5", "/epoch1"), ("b.h5", "/epoch2")):
        with h5py.File(hdf5(tmp_path / name, epoch1=np.ones(2), epoch2=np.zeros(2)), "a") as file:
            file["best"] = h5py.SoftLink(best)
            file["outer"] = h5py.ExternalLink("missing.h5", "/x")
    assert differing(tmp_path / "a.h5", tmp_path / "b.h5") == {"best"}
    assert "outer" in values(tmp_path / "a.h5")


def test_hdf5_attributes(tmp_path: Path) -> None:
    for name, units, rate in (("a", "m", 0.1), ("again", "m", 0.1), ("b", "s", 0.2)):
        with h5py.File(tmp_path / name, "w") as root:
            root["w"] = [1.0]
            root["w"].attrs["units"] = units
            root.attrs["rate"] = rate
            root.attrs["names"] = ["x", "y"]
            root.attrs["empty"] = h5py.Empty("f4")
            root.attrs["shape"] = np.array([1, 2])
    assert not differing(tmp_path / "a", tmp_path / "again")
    assert differing(tmp_path / "a", tmp_path / "b") == {"w@units", "@rate"}
    shown = {part.name: part.text for part in parts(tmp_path / "a")[1] if part.text}
    assert shown == {"w@units": "m", "@rate": "0.1"}


def test_hdf5_texts_keep_their_boundaries(tmp_path: Path) -> None:
    a, b = hdf5(tmp_path / "a.h5", text=["ab", "c"]), hdf5(tmp_path / "b.h5", text=["a", "bc"])
    assert digest(a) != digest(b)


def test_hdf5_never_reads_other_files_nor_what_is_only_declared(tmp_path: Path) -> None:
    hdf5(tmp_path / "other.h5", w=[1.0])
    with h5py.File(tmp_path / "link.h5", "w") as root:
        root["w"] = h5py.ExternalLink("other.h5", "layers/w")
    with_link = values(tmp_path / "link.h5")
    hdf5(tmp_path / "other.h5", w=[2.0])
    assert values(tmp_path / "link.h5") == with_link
    with h5py.File(tmp_path / "virtual.h5", "w") as root:
        layout = h5py.VirtualLayout((1,), "f8")
        layout[0] = h5py.VirtualSource(str(tmp_path / "other.h5"), "layers/w", (1,))[0]
        root.create_virtual_dataset("w", layout)
    with pytest.raises(ValueError, match="other files"):
        values(tmp_path / "virtual.h5")
    with h5py.File(tmp_path / "vast.h5", "w") as root:
        root.create_dataset("w", shape=(2**50,), chunks=(2**10,), dtype="f8")
    with pytest.raises(ValueError, match="far more"):
        values(tmp_path / "vast.h5")


def keras(path: Path, date: str, address: int, weight: float, units: int = 4) -> Path:
    """Write a file laid out as Keras 3 does; tests/process has a real one."""
    config = {"layers": [{"units": units, "shared_object_id": address}, {"shared_object_id": address}, {"x": 7}]}
    weights = io.BytesIO()
    with h5py.File(weights, "w") as root:
        root["layers/dense/vars/0"] = np.array([weight, 1.0])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"date_saved": date}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights.getvalue())
    return path


def test_keras_without_its_date_and_addresses(tmp_path: Path) -> None:
    a = keras(tmp_path / "a.keras", "2026", 140570835249488, 0.5)
    assert total(a) == 1.5
    assert digest(a) == digest(keras(tmp_path / "b.keras", "2027", 140123, 0.5))
    assert digest(a) != digest(keras(tmp_path / "c.keras", "2026", 140570835249488, 0.25))
    assert digest(a) != digest(keras(tmp_path / "d.keras", "2026", 140570835249488, 0.5, units=5))


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04" + bytes(22) + b"\5\0\0\0a.npy", b"\x93NUMPY\x01\0\x02\0{}", b"\x89HDF\r\n\x1a\n"]
)
def test_what_is_not_as_it_begins_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(BROKEN):
        values(tmp_path / "a")
    assert files.read(tmp_path / "a").values == ()


def test_what_has_no_format_is_one_part_of_bytes(tmp_path: Path) -> None:
    for data in (b"\0" * 8, b"\xff" * 99):
        (tmp_path / "a.npz").write_bytes(data)
        assert parts(tmp_path / "a.npz")[0] == "bytes"
        assert [*values(tmp_path / "a.npz")] == [""]


def test_a_damaged_zip_is_refused(tmp_path: Path) -> None:
    torch.save(checkpoint(), tmp_path / "a.pt")
    data = bytearray((tmp_path / "a.pt").read_bytes())
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        place = data.index(archive.read("a/data.pkl"))
    data[place + 9] ^= 1
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises(BROKEN):
        values(tmp_path / "a.pt")


@pytest.mark.parametrize("name", ["a.pt", "a.npz", "a.joblib", "a.safetensors"])
def test_an_empty_file_is_never_compared(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UnusableError, match="is empty"):
        files.read(tmp_path / name)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_an_npz_that_was_written_holds_the_arrays(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    path = tmp_path / "two.npz"
    path.write_bytes(npz.written({"a": npy.written(dtype, shape, array.tobytes())}))
    with np.load(path) as kept:
        assert kept["a"].dtype == array.dtype
        np.testing.assert_array_equal(kept["a"], array)


def test_a_type_that_numpy_has_not_is_kept_as_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "two.npz"
    path.write_bytes(npz.written({"a": npy.written("bfloat16", (2,), b"\x80\x3f\x00\x40")}))
    with np.load(path) as kept:
        assert kept["a"].dtype == np.dtype("V2")
        assert kept["a"].tobytes() == b"\x80\x3f\x00\x40"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64", "complex64", "complex128"])
def test_an_array_that_is_written_is_loaded_by_numpy(dtype: str) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    loaded = np.load(io.BytesIO(npy.written(dtype, array.shape, array.tobytes())))
    assert loaded.dtype == array.dtype
    assert (loaded == array).all()


@pytest.mark.parametrize(
    ("dtype", "size"), [("bfloat16", 2), ("float8_e4m3fn", 1), ("complex32", 4), ("float8_e5m2", 1)]
)
def test_an_array_of_a_type_that_numpy_lacks_is_written_as_bytes(dtype: str, size: int) -> None:
    data = bytes(range(6 * size))
    loaded = np.load(io.BytesIO(npy.written(dtype, (2, 3), data)))
    assert loaded.dtype == np.dtype(f"V{size}")
    assert (loaded.shape, loaded.tobytes()) == ((2, 3), data)


def test_what_gensim_lists_in_the_order_of_a_set_has_none(tmp_path: Path) -> None:
    for name, listed, kept in (("a", ["x", "y"], ["b", "a"]), ("b", ["y", "x"], ["b", "a"]), ("c", ["x"], ["a", "b"])):
        (tmp_path / name).write_bytes(pickle.dumps({"wv": {"__ignoreds": listed, "kept": kept}}))
    assert differing(tmp_path / "a", tmp_path / "b") == set()
    assert differing(tmp_path / "a", tmp_path / "c") == {"wv.__ignoreds", "wv.kept.0", "wv.kept.1"}


class Closure:
    """Pickled as cloudpickle does functions: a function that is called sets the state, and its result is dropped."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def __reduce__(self) -> Any:
        return Closure, (0.0,), {"threshold": self.threshold}, None, None, setattr


def test_what_a_dropped_call_sets_is_compared(tmp_path: Path) -> None:
    for name, threshold in (("a", 0.25), ("b", 0.25), ("c", 0.5)):
        (tmp_path / name).write_bytes(pickle.dumps({"predict": Closure(threshold)}))
    assert differing(tmp_path / "a", tmp_path / "b") == set()
    assert [name for name in differing(tmp_path / "a", tmp_path / "c") if name.endswith("threshold")]
