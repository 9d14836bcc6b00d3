"""Files that ask for more than they hold: they are refused in time, and nothing is written or called."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 - the first import starts a process, so it is not left to a test
import numpy as np
import pytest

from detaudit.model.outputs import File, RunFacts
from detaudit.runs import files, values
from detaudit.runs.formats import arrays

MOST = 256 * 2**20
"""Bytes of memory that reading any of these files takes at most."""


def read(path: Path) -> File:
    return values.read(path, path.name, RunFacts(started=0.0, ended=60.0))


def problem(path: Path, data: bytes) -> str:
    """Return why the file cannot be read, or ``""``."""
    path.write_bytes(data)
    tracemalloc.start()
    try:
        found = read(path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    return found.problem


def npz(members: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


ZEROS = bytes(8 * 2**20)


@pytest.fixture
def small_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.runs.formats.MOST_UNPACKED", 2**20)


@pytest.mark.usefixtures("small_bombs")
@pytest.mark.parametrize("members", [["a.npy"], ["config.json", "metadata.json", "m.h5"], ["m/data.pkl"], ["a.txt"]])
def test_a_zip_that_unpacks_to_far_more_is_refused(members: list[str], tmp_path: Path) -> None:
    file = tmp_path / "m"
    assert "it unpacks to 100 times its size or more" in problem(file, npz(dict.fromkeys(members, ZEROS)))
    assert files.read(file).values == ()


@pytest.mark.usefixtures("small_bombs")
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zlib.compress])
def test_a_compressed_pickle_that_unpacks_to_far_more_is_refused(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    assert "it unpacks to 100 times" in problem(tmp_path / "m.pkl", pack(pickle.dumps(ZEROS)))
    assert problem(tmp_path / "m.pkl", pack(pickle.dumps(b"few"))) == ""


@pytest.mark.usefixtures("small_bombs")
def test_views_that_show_a_storage_again_and_again_are_refused(tmp_path: Path) -> None:
    import torch as framework

    whole = framework.zeros(100_000)
    framework.save([whole[i:] for i in range(1000)], tmp_path / "m.pt")
    assert "it unpacks to 100 times" in read(tmp_path / "m.pt").problem


def test_names_in_an_archive_are_no_paths(tmp_path: Path) -> None:
    member = io.BytesIO()
    np.save(member, np.zeros(2))
    work = tmp_path / "work"
    work.mkdir()
    for suffix in (".npz", ".keras", ".pt"):
        data = npz({"../../evil.npy": member.getvalue(), "/tmp/evil.h5": b"x", "../data.pkl": b"\x80\x02N."})
        problem(work / f"m{suffix}", data)
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
    assert len(list(work.iterdir())) == 3


def doubled(times: int) -> bytes:
    """Return opcodes for a list in which lists are doubled so many times."""
    return b"]q\x00" + b"".join(b"]h%cah%caq%c" % (i, i, i + 1) for i in range(times))


def short(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode()


LISTS = doubled(60)
CHAIN = b"]" * 5001 + b"a" * 5000
BIG = b"X" + struct.pack("<I", 2**20) + b"x" * 2**20 + b"q\x01"
DTYPE = b"cnumpy\ndtype\n" + b"(" + short("f4") + b"tR"
JOBLIB = b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(" + short("dtype") + DTYPE + short("order") + short("C")


@pytest.mark.parametrize(
    "opcodes",
    [
        LISTS,
        b"(" + LISTS + short("f4") + b"l",
        short("module") + LISTS + b"\x93",
        LISTS + b"h\x05\x93",
        BIG + b"h\x01\x93" * 1000,
        pytest.param(BIG + b"(" + b"h\x01" * 4000 + b"l", marks=pytest.mark.full),
        CHAIN,
        b"ctorch._utils\n_rebuild_tensor_v2\n((" + short("a") + b"tQ" + LISTS + LISTS + LISTS + b"tR",
        b"cnumpy\ndtype\n(" + LISTS + b"tR",
        JOBLIB + short("shape") + b"(X\x00\x00\x01\x00" + b"x" * 2**16 + b"J\xff\xff\xff\x7ftub",
        JOBLIB + short("shape") + b"(" + b"\x8b\x00\x10\x00\x00" + b"\x7f" * 4096 + b"tub",
        b"c_codecs\nencode\n(" + BIG + short("idna") + b"tR",
        b"c_codecs\nencode\n(" + BIG + short("latin1") + b"tR" + b"0c_codecs\nencode\n(h\x01" + short("latin1") + b"tR",
    ],
)
def test_a_pickle_of_a_few_opcodes_takes_no_time_and_no_memory(opcodes: bytes, tmp_path: Path) -> None:
    data = b"\x80\x04" + opcodes + b"."
    problem(tmp_path / "m.pkl", data)
    archive = npz({"m/data.pkl": data, "m/data/0": b"1234"}, zipfile.ZIP_STORED)
    problem(tmp_path / "m.pt", archive)
    files.read(tmp_path / "m.pt")


@pytest.mark.parametrize("header", [{"a": 1}, {"a": {"dtype": "F32", "shape": "ab", "data_offsets": [0, 0]}}])
def test_a_header_of_another_kind_is_refused(header: Any, tmp_path: Path) -> None:
    text = json.dumps(header).encode()
    assert "cannot be read as safetensors" in problem(tmp_path / "m.safetensors", struct.pack("<Q", len(text)) + text)


@pytest.mark.parametrize("learner", [[], 1, {"gradient_booster": []}, {"gradient_booster": {"model": 1}}])
def test_a_model_of_another_layout_is_refused(learner: Any, tmp_path: Path) -> None:
    text = json.dumps({"learner": learner, "version": []}).encode()
    assert "cannot be read as xgboost" in problem(tmp_path / "m.json", text)


def test_a_shape_holds_numbers(tmp_path: Path) -> None:
    member = io.BytesIO()
    np.save(member, np.zeros(2))
    data = member.getvalue().replace(b"'shape': (2,)", b"'shape': 'ab'")
    assert "a shape in it is none" in problem(tmp_path / "m.npy", data)


def test_a_text_that_makes_python_warn_warns_nobody(tmp_path: Path) -> None:
    assert problem(tmp_path / "m.pkl", b"\x80\x02V\\q\n.") == ""


def test_names_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MOST_TEXT", 1000)
    assert "too much text" in problem(tmp_path / "m.pkl", pickle.dumps(["x" * 600, "y" * 600]))
