"""What the fixture ``determinism`` calls equal, and what it says of the rest."""

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
def test_equal(a: object, b: object) -> None:
    assert difference(a, b) == ""


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (1, 2, "the value (int):\n    1 against 2"),
        (1, True, "the int 1 against the bool True"),
        (0.0, -0.0, "0 (0x0000000000000000) against -0 (0x8000000000000000)"),
        (np.float32(1), 1.0, "float32 against float64"),
        (np.ones(3), np.ones((3, 1)), "float64, shape [3] against float64, shape [3, 1]"),
        ([1], (1,), "a list against a tuple"),
        ([1], [1, 2], "1 parts against 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "['b']:\n    only the second has it"),
        ({"a": 1}, {}, "['a']:\n    only the first has it"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "['items'][1] (str):\n    'b' against 'c'"),
        (Pair(1, [2, 3]), Pair(1, [2, 4]), ".b[1] (int):\n    3 against 4"),
        (np.array([(1, 2.0)], "i4,f4"), np.array([(1, 3.0)], "i4,f4"), "['f1'] (float32, shape [1])"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "False (0x00) against True (0x01)"),
        (torch.eye(2).to_sparse(), torch.zeros(2, 2).to_sparse(), "['indices']"),
    ],
)
def test_unlike(a: object, b: object, words: str) -> None:
    assert words in difference(a, b)


def test_a_state_dict() -> None:
    a = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict()
    b = {name: value.clone() for name, value in a.items()}
    assert difference(a, b) == ""
    b["0.weight"][1, 1] = torch.nextafter(b["0.weight"][1, 1], torch.tensor(9.0))
    with pytest.raises(AssertionError) as caught:
        Determinism().assert_bit_equal(a, b)
    words = str(caught.value)
    assert "['0.weight'] (float32, shape [3, 2]):\n    1 of 6 elements (16.7%) differ, the first at [1, 1]: " in words
    assert words.endswith(", 1 ulp")


def test_bfloat16_tensors_that_differ() -> None:
    a = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    b = torch.tensor([1.0, 2.015625], dtype=torch.bfloat16)
    assert "the first at [1]: 2 (0x4000) against 2.015625 (0x4001)\n    largest distance: 0.015625" in difference(a, b)


def test_only_the_first_parts_are_shown() -> None:
    words = difference(list(range(9)), list(range(1, 10)))
    assert words.startswith("not bit-equal: 9 parts differ\n  [0] (int):")
    assert words.endswith("  and 4 more")


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), torch.nn.Linear(1, 1), torch.empty(2, device="meta"), np.ones(2, "longdouble"), np.ndarray],
)
def test_what_has_no_bits_to_compare_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        difference([value], [value])


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="deep"):
        difference(endless, endless)
