"""Of a saved file, tensors decide; times, states of generators and all else only explain."""

import io
import pickle
import random
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch

from detaudit.auditor.evidence import saved


def pickled(folder: Path, value: Any, name: str = "model.pkl", protocol: int = 4) -> saved.Contents:
    path = folder / name
    path.write_bytes(pickle.dumps(value, protocol))
    return saved.read(path)


class Model:
    """A thing with attributes, as an estimator is."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __setstate__(self, state: Any) -> None:
        raise AssertionError("it was loaded")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_arrays_of_a_pickle_by_their_names(tmp_path: Path, protocol: int) -> None:
    model = Model(coef_=np.arange(6.0).reshape(2, 3), trees=[np.zeros(3, "i4"), np.ones((2, 2), order="F")], fitted=1.5)
    found = pickled(tmp_path, model, protocol=protocol)
    assert [name for name, _ in found.tensors] == ["coef_", "trees.0", "trees.1"]
    assert "fitted" in found.beside
    vars(model)["coef_"][1, 2] = np.nextafter(5, 6)
    again = pickled(tmp_path, model, protocol=protocol)
    assert [a == b for a, b in zip(found.tensors, again.tensors, strict=True)] == [False, True, True]


@pytest.mark.parametrize("compress", [("zlib", 3), ("lzma", 3), 0])
def test_a_compressed_pickle(tmp_path: Path, compress: Any) -> None:
    path, weights = tmp_path / "model.joblib", np.random.default_rng(0).normal(size=300_000)
    joblib.dump({"w": weights, "x": np.ones(2)}, path, compress=compress)
    first = saved.read(path)
    assert [name for name, _ in first.tensors] == ["w", "x"]
    weights[-1] += 1
    joblib.dump({"w": weights, "x": np.ones(2)}, path, compress=compress)
    assert [a == b for a, b in zip(first.tensors, saved.read(path).tensors, strict=True)] == [False, True]
    path.write_bytes(path.read_bytes()[:-20_000])
    assert "cannot be read as" in saved.read(path).problem


def test_nothing_in_a_pickle_is_called(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return (Path.write_text, (tmp_path / "harm", "done"))

    found = pickled(tmp_path, {"w": np.ones(2), "x": Harmful()})
    assert [name for name, _ in found.tensors] == ["w"]
    assert not (tmp_path / "harm").exists()


def test_times_and_generators_lie_beside(tmp_path: Path) -> None:
    def state(seed: int) -> dict[str, Any]:
        return {
            "w": np.ones(2),
            "made": {"saved_at": float(seed)},
            "rng": {"numpy": np.random.RandomState(seed).get_state(), "python": random.Random(seed).getstate()},
            "cv": {"mean_fit_time": np.array([float(seed)])},
            "random_state": np.random.RandomState(seed),
        }

    a, b = pickled(tmp_path, state(1)), pickled(tmp_path, state(2))
    assert a.tensors == b.tensors
    assert [name for name, _ in a.tensors] == ["w"]
    differing = {name for name in a.beside if a.beside[name] != b.beside[name]}
    assert {"made.saved_at", "rng.python.1", "rng.numpy.1", "cv.mean_fit_time"} <= differing


def test_objects_and_shared_containers_are_walked_once(tmp_path: Path) -> None:
    shared: list[Any] = [np.ones(2)]
    for _ in range(60):
        shared = [shared, shared]
    looped: list[Any] = [np.zeros(1), np.array([None, np.ones(3)], dtype=object)]
    looped.append(looped)
    assert len(pickled(tmp_path, {"shared": shared, "looped": looped, "set": {1, 2}}).tensors) == 3


def torch_file(path: Path, weights: bytes, time: float, padding: bytes = b"") -> Path:
    """What torch.save writes, in its layout, with a view of two of four elements."""
    buffer = io.BytesIO()

    class Storage:
        pass

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return ("storage", FloatStorage, "0", "cpu", 4) if isinstance(value, Storage) else None

    class Tensor:
        def __reduce__(self) -> Any:
            return (_rebuild_tensor_v2, (Storage(), 1, (2,), (1,), False, OrderedDict()))

    Pickler(buffer, 2).dump({"model": {"fc.weight": Tensor()}, "saved_at": time})
    structure = buffer.getvalue().replace(__name__.encode() + b"\nFloatStorage", b"torch\nFloatStorage")
    structure = structure.replace(__name__.encode() + b"\n_rebuild_tensor_v2", b"torch._utils\n_rebuild_tensor_v2")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", structure)
        archive.writestr("model/byteorder", "little")
        archive.writestr("model/data/0", (padding or b"\0" * 4) + weights + (padding or b"\0" * 4))
    return path


class FloatStorage:
    """Stands for torch.FloatStorage in a pickle."""


def _rebuild_tensor_v2() -> None:
    """Stands for the function of torch in a pickle."""


def test_a_checkpoint_of_torch(tmp_path: Path) -> None:
    weights = np.array([1.5, 2.5], "<f4").tobytes()
    first = saved.read(torch_file(tmp_path / "a.pt", weights, 1.0))
    assert [name for name, _ in first.tensors] == ["model.fc.weight"]
    later = saved.read(torch_file(tmp_path / "b.pt", weights, 2.0, padding=b"\7" * 4))
    assert later.tensors == first.tensors  # what a view does not show may be memory that was never written
    assert [name for name in first.beside if first.beside[name] != later.beside[name]] == ["saved_at"]
    other = saved.read(torch_file(tmp_path / "c.pt", weights[::-1], 1.0))
    assert other.tensors != first.tensors


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_model_of_torch_in_a_pickle(tmp_path: Path, protocol: int) -> None:
    def found(last: float, unseen: float = 0.0) -> saved.Contents:
        layers = torch.nn.Sequential(torch.nn.Linear(30, 2), torch.nn.BatchNorm1d(2))
        for name, tensor in layers.state_dict().items():
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape) + len(name))
        layers.state_dict()["0.bias"][-1] = last
        memory = torch.tensor([unseen, 1, 2, unseen])
        small = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
        tensors = {"view": memory[1:3], "turned": small.T, "of unknown size": small.to(torch.float8_e4m3fn)}
        return pickled(tmp_path, {"net": layers, **tensors}, protocol=protocol)

    first, again = found(1.0), found(1.0, unseen=5.0)  # each with storages at addresses of its own
    assert again.tensors == first.tensors
    assert again.beside == first.beside
    net = ["net.0.weight", "net.0.bias", *[f"net.1.{name}" for name in torch.nn.BatchNorm1d(2).state_dict()]]
    assert {name for name, _ in first.tensors} == {*net, "view", "turned", "of unknown size"}
    assert [name for name, _ in set(first.tensors) - set(found(2.0).tensors)] == ["net.0.bias"]


def test_a_truncated_file_says_so(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", b"\0" * 8, 1.0)
    path.write_bytes(path.read_bytes()[:-40])
    found = saved.read(path)
    assert not found.tensors
    assert "cannot be read as torch" in found.problem
    for broken in (b"\x80\x04.", b"\x80\x04K\x01", b"\x80\x04e.", b"\x80\x04}u."):
        (tmp_path / "b.pkl").write_bytes(broken)
        assert not saved.read(tmp_path / "b.pkl").tensors


def test_models_of_xgboost_and_lightgbm(tmp_path: Path) -> None:
    xgb = '{"learner": {"gradient_booster": {"model": {"trees": [{"leaf": [%s]}]}}, "objective": {}}, "version": [3]}'
    one, other, unrelated = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    one.write_text(xgb % 0.5)
    other.write_text(xgb % 0.25)
    unrelated.write_text('{"accuracy": 0.5}')
    a, b = saved.read(one), saved.read(other)
    assert [x == y for x, y in zip(a.tensors, b.tensors, strict=True)] == [True, False]
    assert not saved.read(unrelated).tensors
    booster = "tree\nversion=v4\n\n\nTree=0\nleaf_value={}\n\nend of trees\n\nparameters:\n[num_threads: {}]\n"
    files = []
    for leaf, threads in ((1, 1), (1, 2), (2, 1)):
        (tmp_path / "m.txt").write_text(booster.format(leaf, threads))
        files.append(saved.read(tmp_path / "m.txt").tensors)
    assert files[0] == files[1] != files[2]


def test_a_file_without_tensors_is_compared_by_its_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1")
    first = saved.read(log)
    log.write_text("2")
    assert not first.tensors
    assert saved.read(log).digest != first.digest
    history = pickled(tmp_path, {"loss": [0.5], "seconds": 2.0})
    assert not history.tensors
    assert {*history.beside} >= {"loss.0", "seconds"}
