"""The probes return their argument and write its value in order, tested with a list as the sink."""

import copy
import math
import pickle
import sys
import threading
import time
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detaudit
from detaudit.recorder import probes
from detaudit.recorder.probes import log
from detaudit.recorder.training import walk

INSIDE = "_detaudit.recorder.probes"
Pair = namedtuple("Pair", "left right")


class Recorder:
    def __init__(self) -> None:
        self.sink = self
        self.lines: list[dict[str, Any]] = []
        self.step = 1
        self.forget: Callable[[], None] = lambda: None

    def at_end(self, finish: Any, forget: Any) -> None:
        self.forget = forget

    def current_step(self, after_loss: bool) -> int:
        return self.step

    def write(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def trouble(self, where: str, error: Exception) -> None:
        self.lines.append({"k": "trouble", "where": where, "error": str(error)})

    def names(self, kind: str = "value") -> list[str]:
        return [line["name"] for line in self.lines if line.get("kind") == kind]

    @property
    def troubles(self) -> list[str]:
        return [line["error"] for line in self.lines if line["k"] == "trouble"]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    fake = Recorder()
    monkeypatch.setitem(sys.modules, INSIDE, probes)
    monkeypatch.setattr(probes, "_watcher", None)
    probes.prepare(fake)  # type: ignore[arg-type]
    return fake


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
parts = scalars | st.builds(np.arange, st.integers(0, 3)) | st.builds(np.float32, st.floats(width=32))
structures = st.recursive(
    parts,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.integers(), inner).map(OrderedDict)
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b


@given(structures)
def test_outside_an_audit_the_argument_is_returned(value: Any) -> None:
    assert INSIDE not in sys.modules
    assert detaudit.monitor(value, "x") is value
    assert detaudit.monitor_gradients(value) is value
    assert detaudit.monitor_layer(value) is value


def test_inside_an_audit_the_argument_is_returned(recorder: Recorder) -> None:
    @given(structures)
    def check(value: Any) -> None:
        before = len(recorder.lines)
        assert detaudit.monitor(value, "x") is value
        assert len(recorder.lines) > before  # an empty structure is recorded too
        assert not recorder.troubles

    check()


@given(structures)
def test_a_structure_whose_parts_are_replaced_keeps_its_types(value: Any) -> None:
    class Stand:
        def __init__(self, of: Any) -> None:
            self.of = of

    def back(made: Any) -> Any:
        return walk.walk(made, "x", lambda stand, _: stand.of)

    replaced = walk.walk(value, "x", lambda part, _: Stand(part))
    assert same(back(replaced), value)


def test_parts_have_names(recorder: Recorder) -> None:
    detaudit.monitor({"a": [1, Pair(2.0, ("s", None))], 7: {}, object: b""}, "x")
    expected = ["x['a'][0]", "x['a'][1].left", "x['a'][1].right[0]", "x['a'][1].right[1]", "x[7]", "x[type]"]
    assert recorder.names() == expected
    assert [line["value"] for line in recorder.lines] == ["1", "2.0", "'s'", "None", "{}", "b''"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("a", b"a"),
        ([], ()),
        (None, "None"),
        (math.nan, math.inf),
        (np.float32(1), np.float64(1)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.array(["a"]), np.array(["b"])),
        (np.array(["a", "b"], dtype=object), np.array(["b", "a"], dtype=object)),
    ],
)
def test_different_values_have_different_digests(recorder: Recorder, one: object, other: object) -> None:
    for value in (one, one, other):
        detaudit.monitor(value, "x")
    first, again, another = [line["digest"] for line in recorder.lines]
    assert first == again != another


def test_each_name_is_counted_and_has_the_current_step(recorder: Recorder) -> None:
    detaudit.monitor(1, "x")
    detaudit.monitor(1, "y")
    recorder.step = 2
    detaudit.monitor(1, "x")
    assert [(line["name"], line["n"], line["step"]) for line in recorder.lines] == [
        ("x", 1, 1),
        ("y", 1, 1),
        ("x", 2, 2),
    ]
    recorder.forget()
    detaudit.monitor(1, "x")
    assert recorder.lines[-1]["n"] == 1


def test_gradients_have_the_names_of_their_variables(recorder: Recorder) -> None:
    class Variable:
        grad = np.ones(3)

        def __init__(self, name: str) -> None:
            self.name = name

    pairs = [(np.zeros(1), Variable("w")), (None, Variable("b")), (np.ones(1), Variable("w"))]
    assert detaudit.monitor_gradients(pairs) is pairs
    assert recorder.names("gradient") == ["w", "b", "w (2)"]
    iterator = detaudit.monitor_gradients(iter([("layer.weight", Variable("w"))]))
    assert [name for name, _ in iterator] == ["layer.weight"]
    assert recorder.names("gradient")[-1] == "layer.weight"
    assert detaudit.monitor_gradients(3) == 3
    assert len(recorder.troubles) == 1


def test_unreadable_values_are_returned_and_reported_once(recorder: Recorder) -> None:
    thing, loop = object(), []  # type: ignore[var-annotated]
    loop.append(loop)
    for _ in range(3):
        assert detaudit.monitor([thing], "x")[0] is thing
        assert detaudit.monitor(loop, "loop") is loop
        assert detaudit.monitor_layer(thing) is thing
    assert not recorder.names()
    assert [error.split(" ")[0] for error in recorder.troubles] == ["a", "nested", "'object'"]


def test_no_value_of_any_thread_is_lost(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "current_step", lambda after_loss: time.sleep(0))  # lets another thread run
    threads = [threading.Thread(target=lambda: [detaudit.monitor(i, "x") for i in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line["n"] for line in recorder.lines] == list(range(1, 801))


def test_the_number_of_recorded_values_is_limited(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST", 3)
    for i in range(9):
        assert detaudit.monitor(i, "x") == i
    assert len(recorder.names()) == 3
    assert recorder.troubles == ["only the first 3 values were recorded"]


def test_a_layer_is_wrapped_once_and_its_copies_are_independent(recorder: Recorder) -> None:
    layer = Double()
    assert detaudit.monitor_layer(detaudit.monitor_layer(layer, "d")) is layer
    assert layer.forward(3, scale=2, flag=True) == 12
    assert recorder.names() == ["d input[0]", "d input['scale']", "d output"]
    other = copy.deepcopy(layer)
    other.factor = 5
    assert (other.forward(1), layer.forward(1)) == (5, 2)
    assert pickle.loads(pickle.dumps(layer)).forward(1) == 2


class Double:
    factor = 2

    def forward(self, x: int, scale: int = 1, flag: bool = False) -> int:
        return x * scale * self.factor
