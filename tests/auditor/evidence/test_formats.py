"""Files are compared by their tensors: a changed element is seen, a date is not, and no pickle is ever loaded."""

import contextlib
import io
import json
import pickle
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from detaudit.auditor.evidence import artifacts
from detaudit.auditor.evidence.formats import PIECE, UnusableError, npy, npz

TENSORS = st.dictionaries(st.text(min_size=1, max_size=8), st.binary(min_size=1, max_size=40), min_size=1, max_size=4)


class Explodes:
    """Raises when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('a pickle was loaded')",))


def digest(path: Path) -> str:
    return artifacts.read(path).digest


def total(path: Path) -> float | None:
    return artifacts.read(path).total


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


def written(file: Path, data: bytes) -> str:
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
def test_safetensors_metadata_and_order_have_no_effect(
    file: Path, tensors: dict[str, bytes], text: str, backwards: bool
) -> None:
    assert written(file, safetensors(tensors)) == written(file, safetensors(tensors, text, backwards))


@given(TENSORS, st.data())
@settings(deadline=None)
def test_safetensors_damaged_anywhere_is_refused_or_differs(
    file: Path, tensors: dict[str, bytes], data: st.DataObject
) -> None:
    whole = safetensors(tensors)
    before = written(file, whole)
    size = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(UnusableError):
        written(file, whole[:size])
    with pytest.raises(UnusableError):
        written(file, whole + b"x")
    garbled = whole[:size] + bytes([whole[size] ^ 1]) + whole[size + 1 :]
    with contextlib.suppress(UnusableError):
        assert written(file, garbled) != before


def test_safetensors_that_overlap_are_refused(file: Path) -> None:
    tensor = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    text = json.dumps({"a": tensor, "b": tensor}).encode()
    with pytest.raises(UnusableError, match="one after another"):
        written(file, struct.pack("<Q", len(text)) + text + b"1234")


def test_safetensors_as_its_own_library_writes_it(tmp_path: Path) -> None:
    weights = {"b": np.arange(6, dtype="f4").reshape(2, 3) / 7, "a": np.array([1.5], "f2"), "n": np.array([9])}
    save_file(weights, tmp_path / "a.safetensors", metadata={"saved": "today"})
    save_file(weights, tmp_path / "b.safetensors", metadata={"saved": "tomorrow"})
    found = artifacts.read(tmp_path / "a.safetensors")
    assert found == artifacts.read(tmp_path / "b.safetensors")
    assert [name for name, _ in found.parts] == ["a", "b", "n"]
    assert found.total == pytest.approx(float(weights["b"].sum(dtype="f8")) + 1.5, abs=1e-12)


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
    assert digest(tmp_path / "d.npz") != digest(tmp_path / "a.npz")


def test_npy_shape_type_and_order_count(tmp_path: Path) -> None:
    zeros = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), order="F"), np.zeros((2, 3), dtype="i8")]
    for number, array in enumerate(zeros):
        np.save(tmp_path / f"{number}.npy", array)
    assert len({digest(tmp_path / f"{number}.npy") for number in range(4)}) == 4


def checkpoint() -> dict[str, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1).to(torch.bfloat16))
    return {"model": model.state_dict(), "epoch": 3}


@pytest.mark.parametrize("protocol", [2, 5])
def test_torch_under_any_name(tmp_path: Path, protocol: int) -> None:
    saved = checkpoint()
    for name in ("a.pt", "b.pth", "c.ckpt", "pytorch_model.bin"):
        torch.save(saved, tmp_path / name, pickle_protocol=protocol)
    found = artifacts.read(tmp_path / "a.pt")
    assert {digest(tmp_path / name) for name in ("b.pth", "c.ckpt", "pytorch_model.bin")} == {found.digest}
    assert found.by == "tensors"
    assert {"0.weight (data/0)", "1.bias (data/3)", "data.pkl"} <= {name for name, _ in found.parts}
    assert found.total == pytest.approx(sum(float(t.double().sum()) for t in saved["model"].values()), abs=1e-9)


def test_torch_any_changed_element_and_structure_is_seen(tmp_path: Path) -> None:
    saved = checkpoint()
    torch.save(saved, tmp_path / "a.pt")
    with torch.no_grad():
        saved["model"]["1.weight"][0, 2] *= -1
    torch.save(saved, tmp_path / "b.pt")
    torch.save({**saved, "epoch": 4}, tmp_path / "c.pt")
    a, b, c = (dict(artifacts.read(tmp_path / f"{name}.pt").parts) for name in "abc")
    assert {name for name in a if a[name] != b[name]} == {"1.weight (data/2)"}
    assert {name for name in b if b[name] != c[name]} == {"data.pkl"}


def test_torch_never_loads_the_structure(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2), "x": Explodes()}, tmp_path / "a.pt")
    assert total(tmp_path / "a.pt") == 2


def test_torch_types_without_a_known_sum(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2), "x": torch.ones(2).to(torch.float8_e4m3fn)}, tmp_path / "a.pt")
    torch.save({"w": torch.ones(2), "n": torch.ones(2, dtype=torch.int64)}, tmp_path / "b.pt")
    assert total(tmp_path / "a.pt") is None
    assert total(tmp_path / "b.pt") == 2


def test_torch_of_before_1_6_holds_addresses_and_is_refused(tmp_path: Path) -> None:
    torch.save(checkpoint(), tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(UnusableError, match="memory addresses"):
        artifacts.read(tmp_path / "a.pt")


def test_pickles_and_unknown_files_are_compared_by_their_bytes(tmp_path: Path) -> None:
    for name in ("a.pkl", "a.joblib", "a.bin", "a"):
        (tmp_path / name).write_bytes(pickle.dumps([Explodes(), 1]))
        found = artifacts.read(tmp_path / name)
        (tmp_path / name).write_bytes(pickle.dumps([Explodes(), 2]))
        assert (found.by, found.total) == ("bytes", None)
        assert digest(tmp_path / name) != found.digest


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
    found = artifacts.read(a)
    assert found.total == wide.sum() + 1.5
    assert [name for name, _ in found.parts][-1] == "layers/w"
    with h5py.File(tmp_path / "b.weights.h5", "w") as root, h5py.File(a) as old:
        root.create_dataset("later", data=1)
        old.copy("layers", root)
        del root["later"]
    assert digest(tmp_path / "b.weights.h5") == found.digest
    wide[2, -1] += 1
    b = hdf5(tmp_path / "b.h5", w=wide, scalar=1.5, text=["a", "bd"], fixed=np.array([b"x"]), none=h5py.Empty("f4"))
    changed = {name for (name, old), (_, new) in zip(found.parts, artifacts.read(b).parts, strict=True) if old != new}
    assert changed == {"layers/w", "layers/text"}


def test_hdf5_texts_keep_their_boundaries(tmp_path: Path) -> None:
    a, b = hdf5(tmp_path / "a.h5", text=["ab", "c"]), hdf5(tmp_path / "b.h5", text=["a", "bc"])
    assert digest(a) != digest(b)


def test_hdf5_never_reads_other_files_nor_what_is_only_declared(tmp_path: Path) -> None:
    hdf5(tmp_path / "other.h5", w=[1.0])
    with h5py.File(tmp_path / "link.h5", "w") as root:
        root["w"] = h5py.ExternalLink("other.h5", "layers/w")
    with pytest.raises(UnusableError, match="holds no tensors"):
        artifacts.read(tmp_path / "link.h5")
    with h5py.File(tmp_path / "virtual.h5", "w") as root:
        layout = h5py.VirtualLayout((1,), "f8")
        layout[0] = h5py.VirtualSource(str(tmp_path / "other.h5"), "layers/w", (1,))[0]
        root.create_virtual_dataset("w", layout)
    with pytest.raises(UnusableError, match="other files"):
        artifacts.read(tmp_path / "virtual.h5")
    with h5py.File(tmp_path / "vast.h5", "w") as root:
        root.create_dataset("w", shape=(2**50,), chunks=(2**10,), dtype="f8")
    with pytest.raises(UnusableError, match="far more"):
        artifacts.read(tmp_path / "vast.h5")


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


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "npy", "keras", "h5"])
@pytest.mark.parametrize("data", [b"PK\x03\x04", b"\0" * 8, b"\x93NUMPY\x01\0\x02\0{}", b"\xff" * 99, b"{}"])
def test_what_is_not_as_its_name_says_is_never_compared(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(data)
    with pytest.raises(UnusableError):
        artifacts.read(path)


def test_a_damaged_zip_is_refused(tmp_path: Path) -> None:
    torch.save(checkpoint(), tmp_path / "a.pt")
    data = bytearray((tmp_path / "a.pt").read_bytes())
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        place = data.index(archive.read("a/data/0"))
    data[place] ^= 1
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises(UnusableError, match="CRC"):
        artifacts.read(tmp_path / "a.pt")


@pytest.mark.parametrize("name", ["a.pt", "a.npz", "a.joblib", "a.safetensors"])
def test_an_empty_file_is_never_compared(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UnusableError, match="is empty"):
        artifacts.read(tmp_path / name)


def test_without_h5py_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = hdf5(tmp_path / "a.h5", w=[1.0])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UnusableError, match=r"pip install 'detaudit\[artifacts\]'"):
        artifacts.read(path)


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
