"""Real artifacts, written by the libraries whose files detaudit reads."""

import gzip
import io
import json
import pickle
import zipfile
from pathlib import Path

import h5py
import joblib
import numpy as np
import safetensors.numpy
import torch

ARRAYS = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.array([1, 2**40]), "c": np.asfortranarray(np.eye(3))}


def archives(folder: Path) -> dict[str, bytes]:
    """Return zips by name: torch, NumPy, Keras."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    torch.save(model.state_dict(), folder / "model.pt")
    torch.save({"model": model.state_dict(), "epoch": 3, "optimizer": {"lr": 0.1}}, folder / "checkpoint.ckpt")
    np.savez(folder / "plain.npz", a=ARRAYS["a"], b=ARRAYS["b"], c=ARRAYS["c"])
    np.savez_compressed(folder / "packed.npz", a=ARRAYS["a"], c=ARRAYS["c"])
    with zipfile.ZipFile(folder / "model.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", '{"date_saved": "2026-01-01"}')
        archive.writestr("config.json", '{"shared_object_id": 139636, "layers": [{"shared_object_id": 139636}]}')
        archive.writestr("model.weights.h5", _hdf5())
    return _read(folder)


def arrays(folder: Path) -> dict[str, bytes]:
    """Return other files of tensors: npy, safetensors, HDF5, boosters."""
    np.save(folder / "a.npy", ARRAYS["a"])
    np.save(folder / "texts.npy", np.array(["x", "yz"]))
    (folder / "fields.npy").write_bytes(_npy(np.array([(1, 2.0)], dtype=[("x", "i4"), ("y", "f8")])))
    safetensors.numpy.save_file(ARRAYS, folder / "a.safetensors", {"format": "pt"})
    (folder / "weights.h5").write_bytes(_hdf5())
    tree = {"split_conditions": [0.5, 1.0], "left_children": [1, -1]}
    learner = {
        "learner_model_param": {"base_score": "0.5"},
        "objective": {"name": "reg"},
        "gradient_booster": {"name": "gbtree", "model": {"trees": [tree, tree]}},
    }
    (folder / "xgb.json").write_text(json.dumps({"learner": learner, "version": [3, 0, 0]}))
    (folder / "lgb.txt").write_text(
        "tree\nversion=v4\n\nTree=0\nleaf_value=1 2\n\nTree=1\nleaf=1\nparameters:\n[x: 1]\n"
    )
    return _read(folder)


def pickles(folder: Path) -> dict[str, bytes]:
    """Return pickles: plain and compressed, of arrays, models and other objects."""
    model = torch.nn.Linear(3, 2)
    held = {"w": ARRAYS["a"], "deep": [{"x": (1, "two", 3.0, None, True, b"four", {5, 6})}], "m": ARRAYS["c"]}
    for protocol in (2, 3, 4, 5):
        (folder / f"held{protocol}.pkl").write_bytes(pickle.dumps(held, protocol))
    (folder / "model.pickle").write_bytes(pickle.dumps(model))
    (folder / "gz.pkl").write_bytes(gzip.compress(pickle.dumps(held), mtime=0))
    joblib.dump(held, folder / "plain.joblib")
    joblib.dump({"model": model, **held}, folder / "model.joblib")
    for suffix in ("z", "gz", "bz2", "xz", "lzma"):
        joblib.dump(held, folder / f"packed.{suffix}")
    return _read(folder)


def _read(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _hdf5() -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as root:
        root["layers/dense/vars/0"] = ARRAYS["a"]
        root.create_dataset("packed", data=np.zeros((20, 20)), chunks=(10, 10), compression="gzip")
        root["name"] = "dense"
        root.attrs["keras_version"] = "3"
    return file.getvalue()
