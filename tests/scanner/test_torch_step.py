"""The calls of a step are repeated as they were made."""

import json
from pathlib import Path
from typing import Any

import pytest

from detaudit.scanner.torch import step

torch = pytest.importorskip("torch")

SETTINGS = {
    "threads": torch.get_num_threads(), "deterministic": False, "warn_only": False, "precision": "highest",
    "benchmark": False, "cudnn": False, "mkldnn": True,
}  # fmt: skip


def tensor(storage: int, dtype: str, shape: list[int], stride: list[int], offset: int = 0) -> dict[str, Any]:
    fields = {"storage": storage, "dtype": dtype, "shape": shape, "stride": stride, "offset": offset, "bits": []}
    return {"tensor": fields}


def call(op: str, args: list[Any], storages: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    fields = {"k": "noted", "op": op, "dtype": "float32", "count": 1, "backward": False, "file": "", "line": 0}
    return {**fields, "args": args, "kwargs": {"dict": []}, "storages": storages, **changed}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with memory: 0.0, 1.0, …, and an index."""
    (tmp_path / "numbers").write_bytes(torch.arange(12.0).numpy().tobytes())
    (tmp_path / "index").write_bytes(torch.tensor([1, 1, 0]).numpy().tobytes())
    return tmp_path


NUMBERS = {"file": "numbers", "bytes": 48, "device": "cpu", "dtype": "float32"}
INDEX = {"file": "index", "bytes": 24, "device": "cpu", "dtype": "int64"}
DRAWN = {"file": "", "bytes": 48, "device": "cpu", "dtype": "float32"}


def opened(folder: Path, *calls: dict[str, Any], **settings: Any) -> step.Step:
    end = {"k": "step", "settings": {**SETTINGS, **settings}}
    (folder / "1.ops").write_text("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in [*calls, end]))
    return step.start(str(folder / "1.ops"))


def only(found: step.Step, op: str, dtype: str = "float32") -> tuple[step.Case, str, Any]:
    (case,) = found.cases(op, dtype, None, {})
    ((direction, repeated),) = case.directions()
    return case, direction, repeated


def test_a_view_is_repeated_with_its_strides_and_offset(folder: Path) -> None:
    found = opened(folder, call("aten.exp.default", [tensor(0, "float32", [3, 2], [1, 3], 6)], [NUMBERS]))
    case, direction, repeated = only(found, "aten.exp.default")
    assert (direction, case.shapes) == ("forward", "3x2")
    assert torch.equal(repeated(), torch.arange(12.0).reshape(4, 3)[2:].t().exp())


def test_each_repetition_in_place_begins_with_the_saved_memory(folder: Path) -> None:
    args = [tensor(0, "float32", [3], [1]), 0, tensor(1, "int64", [3], [1]), tensor(2, "float32", [3], [1], 4)]
    found = opened(folder, call("aten.index_add_.default", args, [NUMBERS, INDEX, NUMBERS], backward=True))
    case, direction, repeated = only(found, "aten.index_add_.default")
    assert (direction, case.shapes) == ("backward", "3, 3, 3")
    expected = torch.arange(3.0).index_add_(0, torch.tensor([1, 1, 0]), torch.tensor([4.0, 5.0, 6.0]))
    for _ in range(2):
        result = repeated()
        assert torch.equal(result, expected)
        assert found.parts(result).digest() == found.parts(expected).digest()


def test_numbers_that_were_not_saved_are_drawn_alike_in_each_process(folder: Path) -> None:
    drawn = call("aten.neg.default", [tensor(0, "float32", [12], [1])], [DRAWN])
    (case, _, one), (other, _, same) = (only(opened(folder, drawn), "aten.neg.default") for _ in range(2))
    assert torch.equal(one(), same())
    assert case.inputs == other.inputs
    assert -1 < one().min() < one().max() <= 0


def test_random_operations_are_seeded(folder: Path) -> None:
    found = opened(folder, call("aten.bernoulli.p", [tensor(0, "float32", [12], [1]), 0.5], [NUMBERS]))
    _, _, repeated = only(found, "aten.bernoulli.p")
    assert torch.equal(repeated(), repeated())


def test_operations_are_listed_once_and_samples_are_their_places(folder: Path) -> None:
    one = call("aten.exp.default", [tensor(0, "float32", [3], [1])], [NUMBERS])
    other = call("aten.neg.default", [tensor(0, "int64", [3], [1])], [INDEX], dtype="int64")
    found = opened(folder, one, other, one)
    assert list(found.items([])) == [["aten.exp.default", "float32"], ["aten.neg.default", "int64"]]
    assert [case.sample for case in found.cases("aten.exp.default", "float32", None, {})] == [0, 2]


def test_phases_have_the_settings_of_the_script(folder: Path) -> None:
    threads = torch.get_num_threads()
    found = opened(folder, threads=3, deterministic=True, warn_only=True)
    try:
        assert found.threads == 3
        with found.phase(0, False):
            assert (torch.get_num_threads(), torch.is_deterministic_algorithms_warn_only_enabled()) == (3, True)
        with found.phase(1, True):
            assert torch.get_num_threads() == 1
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(threads)
