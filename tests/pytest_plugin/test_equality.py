"""The fixture ``determinism``: which values match, and how differences are reported."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from detaudit.pytest_plugin import Determinism
from detaudit.pytest_plugin.equality import difference

NAN = float("nan")


class Pair(NamedTuple):
    w: Any
    b: Any


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1),
        (NAN, NAN),
        ("text", "text"),
        (None, None),
        (b"x", b"x"),
        (0.5, np.float64(0.5)),
        (np.ones(3), torch.ones(3, dtype=torch.float64)),
        (np.ones((2, 3)).T, np.ones((3, 2))),
        (np.array([1, 2], ">f4"), np.array([1, 2], "<f4")),
        (np.array(["a", "b"]), np.array(["a", "b"])),
        (torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)),
        (torch.ones(2, 3).t(), torch.ones(3, 2, requires_grad=True)),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse()),
        (torch.ones(0), torch.ones(0)),
        ({"a": [1, (2.0, "x")], "b": {}}, {"b": {}, "a": [1, (2.0, "x")]}),
    ],
)
def test_bit_identical_values_match(a: object, b: object) -> None:
    assert difference(a, b) == ""


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (1, 2, "the value (int):\n    1 vs 2"),
        (1, True, "the int 1 vs the bool True"),
        (0.0, -0.0, "0 (0x0000000000000000) vs -0 (0x8000000000000000)"),
        (np.float32(1), 1.0, "float32 vs float64"),
        (np.ones(3), np.ones((3, 1)), "float64, shape [3] vs float64, shape [3, 1]"),
        ([1], (1,), "a list vs a tuple"),
        ([1], [1, 2], "1 part vs 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "['b']:\n    only in the second"),
        ({"a": 1}, {}, "['a']:\n    only in the first"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "['items'][1] (str):\n    'b' vs 'c'"),
        (Pair(1, [2, 3]), Pair(1, [2, 4]), ".b[1] (int):\n    3 vs 4"),
        (np.array([(1, 2.0)], "i4,f4"), np.array([(1, 3.0)], "i4,f4"), "['f1'] (float32, shape [1])"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "False (0x00) vs True (0x01)"),
        (torch.eye(2).to_sparse(), torch.zeros(2, 2).to_sparse(), "['indices']"),
    ],
)
def test_differences_are_reported(a: object, b: object, text: str) -> None:
    assert text in difference(a, b)


def test_a_difference_in_a_state_dict() -> None:
    a = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict()
    b = {name: value.clone() for name, value in a.items()}
    assert difference(a, b) == ""
    b["0.weight"][1, 1] = torch.nextafter(b["0.weight"][1, 1], torch.tensor(9.0))
    with pytest.raises(AssertionError) as caught:
        Determinism().assert_bit_equal(a, b)
    text = str(caught.value)
    assert "['0.weight'] (float32, shape [3, 2]):\n    1 of 6 elements differs (16.7%), first at [1, 1]: " in text
    assert text.endswith(", 1 ulp)")


def test_a_difference_in_bfloat16_tensors() -> None:
    a = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    b = torch.tensor([1.0, 2.015625], dtype=torch.bfloat16)
    assert "first at [1]: 2 (0x4000) vs 2.015625 (0x4001)\n    largest difference: 0.0156" in difference(a, b)


def test_only_the_first_differences_are_listed() -> None:
    text = difference(list(range(9)), list(range(1, 10)))
    assert text.startswith("not bit-identical: 9 parts differ\n  [0] (int):")
    assert text.endswith("  and 4 more")


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), torch.nn.Linear(1, 1), torch.empty(2, device="meta"), np.ones(2, "longdouble"), np.ndarray],
)
def test_unsupported_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        difference([value], [value])


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="deep"):
        difference(endless, endless)
