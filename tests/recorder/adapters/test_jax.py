"""The plan of a function that JAX traced is applied at each call and gives steps, tested with fakes instead of JAX."""

import contextlib
import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from detaudit import wire
from detaudit.recorder.frameworks.jax.tracing import Frames, Plan
from detaudit.recorder.frameworks.jax.training import Jax, Steps
from tests.logs import as_lines


class Array:
    """A fake of JAX's arrays: immutable, and compared by identity."""

    def __init__(self, *values: float) -> None:
        self.array = np.asarray(values, "f8")
        self.dtype, self.shape, self.nbytes = self.array.dtype, self.array.shape, self.array.nbytes
        self.gone = False

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        assert not self.gone, "JAX reused this buffer"
        return self.array


class Tracer:
    """A fake of the object that replaces an array while a function is traced."""

    dtype, shape = np.dtype("f8"), ()


def flatten(tree: Any) -> tuple[list[Any], Any]:
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple):
        parts = [flatten(item) for item in tree]
        return [leaf for leaves, _ in parts for leaf in leaves], tuple(structure for _, structure in parts)
    return [tree], "*"


def flatten_with_path(tree: Any) -> tuple[list[Any], Any]:
    leaves, structure = flatten(tree)
    return [((SimpleNamespace(idx=place),), leaf) for place, leaf in enumerate(leaves)], structure


class Seen:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.kept = self

    def guard(self, _: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def before(self, plan: Plan, inputs: list[Any]) -> None:
        self.calls.append(("in", [inputs[place] for place in plan.weights]))

    def after(self, plan: Plan, outputs: list[Any]) -> None:
        roles = (plan.losses, plan.histories, plan.updated)
        self.calls.append(("out", *[[outputs[place] for place in places] for places in roles]))

    def collections(self, named: dict[str, Any]) -> None:
        self.calls.append(("collections", named))

    def result(self, outputs: list[Any]) -> None:
        self.calls.append(("result", outputs))

    def donated(self, inputs: list[Any]) -> None:
        self.calls.append(("donated", inputs))


class FakeJit:
    """Traces a function once for each static argument."""

    def __init__(self, frames: Frames, function: Callable[..., Any], outputs: Callable[[], Any]) -> None:
        self.frames, self.traced, self.outputs = frames, frames.traced(function), outputs
        self.programs: set[Any] = set()

    def __call__(self, *args: Any, **options: Any) -> Any:
        def run() -> Any:
            static = tuple(leaf for leaf in args if isinstance(leaf, bool))
            if static not in self.programs:
                self.programs.add(static)
                self.traced(*[leaf if isinstance(leaf, bool) else Tracer() for leaf in args])
            traced = any(isinstance(leaf, Tracer) for leaf in args)
            return (Tracer(), Tracer()) if traced else self.outputs()

        return self.frames.call(run, self.traced, (args, {}), **options)


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def frames(seen: Seen) -> Frames:
    jax = SimpleNamespace(
        tree_util=SimpleNamespace(tree_flatten=flatten, tree_flatten_with_path=flatten_with_path),
        core=SimpleNamespace(Tracer=Tracer),
    )

    return Frames(jax, seen)


def train(frames: Frames, *, update: bool = True) -> Callable[..., Any]:
    def function(weights: Any, x: Any, training: bool = True) -> Any:
        loss, new = Tracer(), Tracer()
        if training:
            frames.top.weights.append(weights)
            frames.top.losses.append(loss)
            frames.top.updated += [new] if update else []
        return new, loss

    return function


def test_a_plan_is_applied_at_each_call(frames: Frames, seen: Seen) -> None:
    w, x, new, loss = Array(1), Array(2), Array(3), Array(4)
    step = FakeJit(frames, train(frames), lambda: (new, loss))
    for _ in range(2):
        assert step(w, x) == (new, loss)
    assert seen.calls == [("in", [w]), ("out", [loss], [], [new])] * 2


def test_different_static_arguments_are_different_programs(frames: Frames, seen: Seen) -> None:
    step = FakeJit(frames, train(frames), lambda: (Array(3), Array(4)))
    for training in (False, True, False, True, True):
        step(Array(1), Array(2), training)
    assert [call[0] for call in seen.calls] == ["in", "out"] * 3


def test_a_compiled_function_inside_another_is_part_of_that(frames: Frames, seen: Seen) -> None:
    inner = FakeJit(frames, train(frames), lambda: None)
    inner(Tracer(), Tracer())  # traced before, outside of the other function
    new, loss = Array(3), Array(4)
    outer = FakeJit(frames, lambda x, w: inner(w, x)[::-1], lambda: (loss, new))
    w = Array(1)
    outer(Array(2), w)
    assert seen.calls == [("in", [w]), ("out", [loss], [], [new])]


def test_a_training_inside_a_gradient_is_not_a_step(frames: Frames, seen: Seen) -> None:
    step = FakeJit(frames, train(frames), lambda: (Array(3), Array(4)))
    frames.top.depth += 1
    step(Array(1), Array(2))
    frames.top.depth -= 1
    assert seen.calls == []
    step(Array(1), Array(2))  # traced inside the gradient, and its plan is known outside too
    assert [call[0] for call in seen.calls] == ["in", "out"]


def test_a_loop_returns_its_carried_values(frames: Frames, seen: Seen) -> None:
    w, carried, losses = Array(1), Array(3), Array(4, 5)
    loop = FakeJit(frames, train(frames, update=False), lambda: (carried, losses))
    loop(w, Array(2), carried=(0, 1))
    assert seen.calls == [("in", [w]), ("out", [], [losses], [carried])]


def test_calls_that_reuse_buffers_are_reported(frames: Frames, seen: Seen) -> None:
    x = Array(1)
    FakeJit(frames, lambda x, y: (y, x), lambda: None)(x, x, donates=True)
    assert seen.calls == [("donated", [x, x])]


def test_a_training_call_that_reuses_buffers_is_reported_unless_it_returns_the_weights(
    frames: Frames, seen: Seen
) -> None:
    w, x = Array(1), Array(2)
    FakeJit(frames, train(frames, update=False), lambda: (Array(3), Array(4)))(w, x, donates=True)
    FakeJit(frames, train(frames), lambda: (Array(3), Array(4)))(w, x, donates=True)
    assert [call[0] for call in seen.calls] == ["donated", "in", "donated", "out", "donated", "in", "out"]


def test_a_second_trace_of_the_same_program_keeps_what_calls_have_shown(frames: Frames, seen: Seen) -> None:
    step = FakeJit(frames, train(frames, update=False), lambda: (Array(3), Array(4)))
    step(Array(1), Array(2))
    (plan,) = next(iter(step.traced.plans.values()))[1].values()
    plan.updated = [0]  # as Steps detects it
    step.programs.clear()
    step(Array(1), Array(2))
    step(Array(1), Array(2))
    assert [len(call[-1]) for call in seen.calls] == [1, 0, 1, 1, 1, 1]


def test_the_same_function_is_wrapped_once(frames: Frames) -> None:
    def function() -> None: ...

    assert frames.traced(function) is frames.traced(function)


class Recorder:
    stages = frozenset(wire.STAGES)
    until = 0

    def __init__(self) -> None:
        self.sink = self
        self.lines: list[dict[str, Any]] = []
        self.trainings: list[Any] = []
        self.lane = 0
        self.finish: Callable[[], None] = lambda: None

    def stepped(self, steps: int) -> None:
        pass

    called = stepped

    def write_rows(self, framework: str, rows: Iterable[Any], text: str = "") -> None:
        self.lines += [*as_lines(framework, rows), *map(json.loads, text.splitlines())]

    def write(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        function()

    def at_end(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        self.finish = finish

    def of(self, stage: str) -> list[int]:
        return [line["step"] for line in self.lines if line.get("stage") == stage]

    @property
    def end(self) -> tuple[int, float]:
        self.finish()
        final = next(line for line in reversed(self.lines) if line["k"] == "final")
        return final["steps"], float.fromhex(final["sum"])


def plan(**roles: Any) -> Plan:
    made = Plan()
    made.names = [str(place) for place in range(9)]
    for name, places in roles.items():
        setattr(made, name, places)
    return made


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def steps(recorder: Recorder) -> Steps:
    jax = SimpleNamespace(live_arrays=list, tree_util=None, core=SimpleNamespace(Tracer=Tracer))
    return Jax(jax, recorder).kept  # type: ignore[arg-type]


def test_weights_that_are_passed_back_show_where_a_function_returns_them(steps: Steps, recorder: Recorder) -> None:
    by_hand, w = plan(weights=[0], losses=[1], passed={2}), Array(1)
    for value in (2, 3, 4):
        steps.before(by_hand, [w])
        before, w = w, Array(value)
        steps.after(by_hand, [w, Array(9), before])
    assert by_hand.updated == [0]
    assert recorder.end == (3, 4.0)
    assert recorder.of("update") == [1, 2, 3]
    assert recorder.of("init") == [0]


def test_without_an_update_the_weights_are_those_of_the_next_gradient(steps: Steps, recorder: Recorder) -> None:
    for value in (1, 2, 3):
        steps.gradient([Array(value)], [Array(9)], [Array(7)])
    assert recorder.end == (3, 3.0)
    assert (recorder.of("forward"), recorder.of("update")) == ([1, 2, 3], [1, 2, 3]), "the last by its gradient"


def test_the_same_weights_again_accumulate(steps: Steps, recorder: Recorder) -> None:
    w = Array(1)
    for _ in range(2):
        steps.gradient([w], [Array(9)], [])
    steps.update([Array(2)])
    assert recorder.end == (1, 2.0)


def test_weights_that_are_only_passed_through_are_not_updated(steps: Steps, recorder: Recorder) -> None:
    gradients, w = plan(weights=[0], losses=[0], passed={1}), Array(1)
    for _ in range(2):
        steps.before(gradients, [w])
        steps.after(gradients, [Array(9), w])
    steps.update([Array(2)])
    assert gradients.updated == []
    assert recorder.end == (1, 2.0)


def test_outputs_that_are_plain_numbers_are_not_weights(steps: Steps, recorder: Recorder) -> None:
    by_hand = plan(weights=[0], losses=[1])
    for value in (1, 2):
        steps.before(by_hand, [Array(value)])
        steps.after(by_hand, [0.5, Array(9)])
    assert recorder.end == (2, 2.0)


def test_each_iteration_of_a_loop_is_a_step(steps: Steps, recorder: Recorder) -> None:
    loop = plan(weights=[0], histories=[1], updated=[0])
    steps.before(loop, [Array(1)])
    steps.after(loop, [Array(5), Array(7, 8, 9)])
    assert recorder.end == (3, 5.0)
    assert recorder.of("forward") == [1, 2, 3]
    assert recorder.of("update") == [3]


def test_weights_whose_buffer_is_reused_are_kept(steps: Steps, recorder: Recorder) -> None:
    w = Array(6)
    steps.update([w])
    steps.donated([Array(1), w])
    w.gone = True
    assert recorder.end == (1, 6.0)


def test_what_comes_back_beside_the_weights_is_the_state(steps: Steps, recorder: Recorder) -> None:
    train, w, mean = plan(weights=[0], losses=[1], updated=[0], passed={3}), Array(1), Array(10)
    data, count = Array(7), Array(0)
    count.dtype = np.dtype("i8")
    for step in range(3):
        steps.before(train, [w, mean, data, count])
        w, mean = Array(step), Array(20 + step)
        steps.after(train, [w, Array(0.5), mean, data, count])
    recorder.finish()
    assert train.carried == [2]
    assert recorder.of("state") == [2, 3]  # the second call shows that the mean comes back
    (held,) = recorder.lines[-1]["tensors"]
    assert held[1:4] == ["2", True, "float64"]
