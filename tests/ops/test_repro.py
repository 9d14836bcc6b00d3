"""The script that repeats an operation, from the call that the recorder saved."""

import ast
import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from detaudit.model import Obstacle, ReplayedPass, ReplayVerdict
from detaudit.ops import replay
from detaudit.trace import operations
from detaudit.trace.operations import Saved

TENSOR = {"storage": 0, "dtype": "float32", "shape": [2], "stride": [1], "offset": 1, "bits": []}
TORCH = {
    "k": "call",
    "framework": "torch",
    "op": "aten.add_.Tensor",
    "backward": False,
    "storages": [{"file": "7.0.storage0.bin", "bytes": 12, "device": "cpu", "dtype": "float32"}],
    "settings": {"threads": 4},
    "python": "python",
    "path": [],
    "modules": ["ops.of.mine"],
    "libraries": [],
    "args": [{"tensor": TENSOR}, {"tensor": TENSOR}],
    "kwargs": {"dict": [["alpha", {"float": (0.5).hex()}]]},
}
TENSORFLOW = {
    "k": "call",
    "framework": "tensorflow",
    "op": "ResourceScatterSub",
    "backward": False,
    "node": 'op: "ResourceScatterSub"\nattr {\n  key: "x\\001"\n}\n',
    "inputs": [{"kind": "variable", "file": "7.0.storage0.bin", "dtype": "float32", "shape": [3]}],
    "settings": {"intra": 4, "inter": 0, "deterministic": False},
    "python": "python",
    "path": [],
}
RACES = ReplayedPass(verdict=ReplayVerdict.RACES)


def saved(folder: Path, line: dict[str, Any]) -> Saved:
    (folder / "7.0.storage0.bin").write_bytes(np.arange(3, dtype="f4").tobytes())
    (folder / "7.0.ops").write_bytes(b'{"k":"op"}\n' + msgspec.json.encode(line) + b"\n")
    found = operations.read_call(folder / "7.0.ops")
    assert found is not None
    return found


@pytest.mark.parametrize(("line", "name"), [(TORCH, "memory0"), (TENSORFLOW, "in0")])
def test_a_script_is_written_with_its_inputs(tmp_path: Path, line: dict[str, Any], name: str) -> None:
    folder = tmp_path / "made" / "repro"
    assert replay.write(folder, saved(tmp_path, line), 0, RACES) == str(folder)
    text = (folder / "repro.py").read_text()
    ast.parse(text)
    assert line["op"] in text
    assert str(tmp_path) not in text
    with np.load(io.BytesIO((folder / "inputs.npz").read_bytes())) as arrays:
        assert arrays[name].tolist() == [0, 1, 2]


def test_the_arguments_of_torch_are_python(tmp_path: Path) -> None:
    replay.write(tmp_path, saved(tmp_path, TORCH), 0, RACES)
    text = (tmp_path / "repro.py").read_text()
    view = 'view("memory0", torch.float32, (2,), (1,), 1)'
    assert f"torch.ops.aten.add_.Tensor(\n        {view},\n        {view},\n        alpha=0.5,\n    )" in text
    assert "import ops.of.mine\n" in text


@pytest.mark.parametrize(
    ("verdict", "fills"), [(ReplayVerdict.MEMORY, "(0xAA, 0x55, 0x00)"), (ReplayVerdict.RACES, "()")]
)
def test_memory_is_filled_if_the_operation_reads_it(tmp_path: Path, verdict: ReplayVerdict, fills: str) -> None:
    replay.write(tmp_path, saved(tmp_path, TORCH), 0, ReplayedPass(verdict=verdict))
    text = (tmp_path / "repro.py").read_text()
    assert f"FILLS = {fills} " in text
    assert ("GLIBC_TUNABLES" in text) == (verdict is ReplayVerdict.MEMORY)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        ([1, [2]], "[1, [2]]"),
        ({"float": "inf"}, 'float("inf")'),
        ({"float": "nan"}, 'float("nan")'),
        ({"float": "0x1.999999999999ap-4"}, "0.1"),
        ({"complex": ["0x1p+0", "-0x1p+1"]}, "(1-2j)"),
        ({"dtype": "float32"}, "torch.float32"),
        ({"device": "cuda:1"}, 'torch.device("cuda:1")'),
        ({"tensor": {**TENSOR, "bits": ["conj"]}}, 'view("memory0", torch.float32, (2,), (1,), 1).conj()'),
    ],
)
def test_an_argument(value: Any, text: str) -> None:
    assert replay.expression(value) == text


@pytest.mark.parametrize("text", ["", "{}\n", '{"k":"call"\n', '{"k":"call","framework":"jax","op":"x"}\n'])
def test_a_call_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "7.0.ops").write_text(text)
    assert operations.read_call(tmp_path / "7.0.ops") is None
    assert operations.read_call(None) is None


def test_an_obstacle_is_read(tmp_path: Path) -> None:
    line = {"k": "call", "framework": "torch", "op": "aten.x.default", "obstacle": "argument", "detail": "Generator"}
    assert saved(tmp_path, line).call.obstacle is Obstacle.ARGUMENT
