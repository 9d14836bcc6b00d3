"""The return value of a test is recorded part by part, and only bit-identical values have equal digests."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from detaudit.recorder.probes import returned
from tests.logs import as_lines

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
NESTS = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


class Recorder:
    def __init__(self) -> None:
        self.sink = self
        self.lines: list[dict[str, Any]] = []

    def write_rows(self, framework: str, rows: Iterable[Any]) -> None:
        self.lines += as_lines(framework, rows)

    def write(self, *lines: dict[str, Any]) -> None:
        self.lines += lines


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    returned.prepare(None)  # type: ignore[arg-type]


def lines(value: object) -> list[dict[str, Any]]:
    recorder = Recorder()
    returned.prepare(recorder)  # type: ignore[arg-type]
    assert returned.returned(value) == ""
    return recorder.lines


def digest(value: object) -> str:
    return str(lines(value)[-1]["digest"])


def test_each_part_is_an_event_and_the_whole_is_final() -> None:
    *events, final = lines({"loss": 0.5, "w": [np.ones(3), "x", None]})
    names = [event["digest"].partition(" ")[2] for event in events]
    assert names == ["['loss']", "['w'][0]", "['w'][1]", "['w'][2]"]
    assert {(event["fw"], event["stage"], event["step"]) for event in events} == {("returned", "returned", 1)}
    assert (final["k"], final["params"], float.fromhex(final["sum"])) == ("final", 4, 3.5)


def test_a_single_value_has_no_name() -> None:
    assert [line["digest"].partition(" ")[2] for line in lines(3)[:-1]] == [""]


@given(NESTS)
def test_any_nest_of_plain_values_can_be_recorded(value: object) -> None:
    assert digest(value) == digest(value)


def test_different_bits_types_names_and_orders_are_different_values() -> None:
    values: list[Any] = [
        1, True, 1.0, "1", b"1", None, 0.0, -0.0, [1], [1, 1], {"a": 1}, {"b": 1}, [], {},
        np.ones(2), np.ones((2, 1)), np.ones(2, "f4"), torch.ones(3), torch.ones(4), np.array(["a"]), np.array(["b"]),
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)


def test_a_tensor_with_a_gradient_and_one_of_bfloat16() -> None:
    assert digest(torch.ones(3, requires_grad=True)) == digest(torch.ones(3))
    a, b = (torch.tensor([value], dtype=torch.bfloat16) for value in (1.0, 1.0078125))
    assert digest(a) != digest(b)


def test_many_parts_are_written_as_one_digest() -> None:
    many = [0.5] * (returned.MOST_PARTS + 1)
    event, final = lines(many)
    assert (event["digest"], final["params"]) == (final["digest"] + " ", len(many))
    assert digest([*many[:-1], 0.25]) != final["digest"]


def test_an_unsupported_type_is_reported_and_nothing_is_written() -> None:
    recorder = Recorder()
    returned.prepare(recorder)  # type: ignore[arg-type]
    assert "not builtins.set" in returned.returned([1, {2}])
    assert recorder.lines == []


def test_a_call_without_an_audit_is_reported() -> None:
    assert "no audit" in returned.returned(1)
