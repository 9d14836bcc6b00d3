"""Follow weights and losses through the functions that JAX traces, without adding to what it compiles.

A function under ``jit``, ``vmap`` or a loop runs in Python only while it is traced, when its weights have no values.
Its trace gives a plan: which inputs and outputs of the function are weights and losses. Each call of the function then
uses this plan. If the call itself is traced, the plan becomes part of the plan of the enclosing function.
"""

from __future__ import annotations

import functools
import threading
from types import FunctionType

from .plan import NOTHING, Frame, Plan, of_loop, places_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .plan import Observer


class _Known:
    """An attribute of a function of the script. It is left out if the function is pickled."""

    def __init__(self, traced: Any) -> None:
        self.traced = traced

    def __reduce__(self) -> Any:
        return object, ()


class Frames:
    """Keeps the functions that each thread is tracing or calling, and the plans of those that were traced."""

    def __init__(self, jax: Any, guarded: Callable[[str, Callable[[], object]], None], observer: Observer) -> None:
        self._tree = jax.tree_util
        self._tracer = jax.core.Tracer
        self.guarded, self.observer = guarded, observer
        self._local = threading.local()

    def _stacks(self) -> tuple[list[Frame], list[_Call]]:
        if not hasattr(self._local, "stacks"):
            # The outermost frame is for code that runs, not for a function being traced.
            self._local.stacks = [Frame()], []
        stacks: tuple[list[Frame], list[_Call]] = self._local.stacks
        return stacks

    @property
    def top(self) -> Frame:
        """The frame of the function being traced, or of the code that runs if there is none."""
        return self._stacks()[0][-1]

    @property
    def tracing(self) -> bool:
        """Whether a function is being traced."""
        return len(self._stacks()[0]) > 1

    def flatten(self, tree: Any) -> tuple[list[Any], Any]:
        """Return the leaves of a tree, in JAX's order, and its structure."""
        leaves, structure = self._tree.tree_flatten(tree)
        return leaves, structure

    def name(self, path: Any) -> str:
        """Return the name of a leaf in a tree."""
        parts = [getattr(key, "key", getattr(key, "name", getattr(key, "idx", key))) for key in path]
        return "/".join([str(part) for part in parts])

    def named(self, tree: Any) -> dict[str, Any]:
        """Return the leaves of a tree by their names."""
        return {self.name(path): leaf for path, leaf in self._tree.tree_flatten_with_path(tree)[0]}

    def have_values(self, arrays: Sequence[Any]) -> bool:
        """Return whether none of these is a tracer, which has no value."""
        return not any([isinstance(array, self._tracer) for array in arrays])

    def traced(self, function: Any) -> Any:
        """Wrap ``function`` in its own frame. JAX's caches need the same wrapper for the same function."""
        known = getattr(getattr(function, "_detaudit", None), "traced", None)
        # Otherwise `function` copied this attribute from another function.
        if known is not None and known.__wrapped__ is function:
            return known

        @functools.wraps(function)
        def in_frame(*args: Any, **kwargs: Any) -> Any:
            frames, frame = self._stacks()[0], Frame()
            frames.append(frame)
            try:
                result = function(*args, **kwargs)
            finally:
                frames.pop()
            if frame.counts or plans:
                self.guarded("trace", lambda: self._learn(in_frame, frame, (args, kwargs), result))
            return result

        plans: dict[Any, Any] = {}
        in_frame.plans = plans  # type: ignore[attr-defined]
        if type(function) is FunctionType:  # others are new objects at each use, and JAX traces them again anyway
            function._detaudit = _Known(in_frame)  # type: ignore[attr-defined]
        return in_frame

    def _learn(self, traced: Any, frame: Frame, inputs: Any, result: Any) -> None:
        leaves, structure = self.flatten(inputs)
        plan = self._plan(frame, leaves, result) if frame.counts else NOTHING
        # A leaf that is not an array is static: each value of it gives a different program.
        static = tuple([i for i, leaf in enumerate(leaves) if not hasattr(leaf, "dtype")])
        static, plans = traced.plans.setdefault(structure, (static, {}))
        key = tuple([leaves[i] for i in static])
        if plan.trains:
            plan.inherit(plans.get(key, NOTHING))
        plans[key] = plan
        calls = self._stacks()[1]
        if calls and calls[-1].traced is traced:
            calls[-1].begin(plan)

    def _plan(self, frame: Frame, leaves: list[Any], result: Any) -> Plan:
        paths = self._tree.tree_flatten_with_path(result)[0]
        outputs, plan = [leaf for _, leaf in paths], Plan()
        plan.weights = places_of(frame.weights, leaves)
        plan.losses, plan.histories = places_of(frame.losses, outputs), places_of(frame.histories, outputs)
        plan.updated = places_of(frame.updated, outputs)
        plan.passed, plan.names = set(places_of(leaves, outputs)), [self.name(path) for path, _ in paths]
        plan.collections = places_of(frame.collections, outputs)
        plan.gradients = places_of(frame.gradients, outputs)
        if len(plan.updated) < len({id(array) for array in frame.updated}):
            plan.updated = []  # changed again after the update; the inputs of the next call will show the positions
        plan.inner = frame.inner or (frame.trains and not plan.trains)
        if plan.trains and not plan.losses and not plan.histories:
            plan.losses = self._named_losses(result)
        return plan

    def _named_losses(self, result: Any) -> list[int]:
        # Keras and many loops return {"loss": …}, with a loss that was averaged after its gradient was computed.
        paths = self._tree.tree_flatten_with_path(result)[0]
        named = [i for i, (path, _) in enumerate(paths) if path and getattr(path[-1], "key", None) == "loss"]
        return [i for i in named if getattr(paths[i][1], "shape", None) == ()]

    def plan_of(self, traced: Any, leaves: list[Any], structure: Any) -> Plan:
        """Return the plan of a call with these inputs, NOTHING if it was not traced before."""
        static, plans = traced.plans.get(structure, ((), {}))
        plan: Plan = plans.get(tuple([leaves[i] for i in static]), NOTHING)
        return plan

    def call(
        self,
        function: Callable[[], Any],
        traced: Any,
        inputs: Any,
        *,
        carried: tuple[int, int] | None = None,
        donates: bool = False,
    ) -> Any:
        """Call ``function``, which traces ``traced`` if necessary, and apply the plan.

        ``inputs`` has the structure of ``(args, kwargs)`` of ``traced``. A loop returns its ``carried`` inputs, given
        as (first, number), as the first outputs. Set ``donates`` if JAX may reuse the buffers of inputs.
        """
        call = _Call(self, traced, inputs, carried, donates)
        calls = self._stacks()[1]
        if traced.plans or donates:
            self.guarded("call", call.look_up)
        calls.append(call)
        try:
            result = function()
        finally:
            calls.pop()
        if call.plan.counts:
            self.guarded("call", lambda: call.end(result))
        return result


class _Call:
    """One call of a traced function."""

    def __init__(
        self, frames: Frames, traced: Any, inputs: Any, carried: tuple[int, int] | None, donates: bool
    ) -> None:
        self._frames, self.traced, self._inputs, self._carried = frames, traced, inputs, carried
        self._donates = donates
        self.plan = NOTHING
        self._leaves: list[Any] = []

    def look_up(self) -> None:
        """Start with the plan of an earlier trace, if there was one."""
        leaves, structure = self._frames.flatten(self._inputs)
        plan = self._frames.plan_of(self.traced, leaves, structure)
        if plan.counts:
            self.begin(plan)
        elif self._donates and self._frames.have_values(leaves):
            self._frames.observer.donated(leaves)

    def begin(self, plan: Plan) -> None:
        """Handle the inputs while they exist. A later trace may replace the plan."""
        begun, frames = self.plan.trains, self._frames
        if frames.top.depth:
            return  # part of a function that a gradient is taken of
        self.plan = plan if self._carried is None else of_loop(plan, *self._carried)
        self._leaves = frames.flatten(self._inputs)[0]
        if begun or frames.tracing or not frames.have_values(self._leaves):
            return
        if plan.trains:
            frames.observer.before(self.plan, self._leaves)
        if self._donates and not self.plan.updated:
            frames.observer.donated(self._leaves)

    def end(self, result: Any) -> None:
        """Handle the outputs, or add them to the frame of the function being traced, which makes this call."""
        frames, plan, outputs = self._frames, self.plan, self._frames.flatten(result)[0]
        if frames.tracing:
            top = frames.top
            top.weights += [self._leaves[place] for place in plan.weights]
            top.losses += [outputs[place] for place in plan.losses]
            top.histories += [outputs[place] for place in plan.histories]
            top.updated += [outputs[place] for place in plan.updated]
            top.collections += [outputs[place] for place in plan.collections]
            top.gradients += [outputs[place] for place in plan.gradients]
            top.inner = top.inner or plan.inner
        elif frames.have_values(outputs):
            if plan.trains:
                frames.observer.after(plan, outputs)
            elif plan.inner:
                frames.observer.result(outputs)
            elif plan.collections:
                frames.observer.collections({plan.names[place]: outputs[place] for place in plan.collections})
