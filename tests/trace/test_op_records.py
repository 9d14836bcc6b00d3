"""An instrumentation log is read as far as it can be, and names no file but those beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from detaudit.trace import operations

OP: dict[str, Any] = {"k": "op", "n": 0, "thread": "MainThread", "step": 1, "op": "aten.add", "ins": [], "outs": []}
TENSOR = {"k": "tensor", "role": "in0", "digest": "float32[2]:0", "dtype": "float32", "shape": [2], "file": "in0.bin"}


@pytest.mark.parametrize(
    "bad",
    [
        {**OP, "n": "0"},
        {**OP, "k": "tensor"},
        {**TENSOR, "file": "../../../etc/passwd"},
        {**TENSOR, "file": "/etc/passwd"},
        {**TENSOR, "file": "a\0"},
        {**TENSOR, "dtype": "float\u00b2"},
        {**TENSOR, "shape": [-1]},
    ],
)
def test_a_damaged_line_ends_the_log(bad: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "7.0.ops"
    whole = [json.dumps(one, separators=(",", ":")) for one in (OP, {"k": "path"}, TENSOR, bad, OP)]
    log.write_text("\n".join(whole) + "\n")
    assert len(list(operations.read(log))) == 2


@pytest.mark.parametrize("bad", [b'{"k":"op","n":', b"\xff", b'{"k":"op","n":0,"more":' + b"[" * 100_000])
def test_what_is_no_json_ends_the_log(bad: bytes, tmp_path: Path) -> None:
    log = tmp_path / "7.0.ops"
    log.write_bytes(json.dumps(OP).encode() + b"\n" + bad + b"\n")
    assert [one.op for one in operations.operations(log)] == ["aten.add"]
