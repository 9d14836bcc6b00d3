"""The roles of arrays in traced functions, followed at each call."""

from __future__ import annotations

import functools
import sys
import threading
from types import FunctionType, MethodType

# Roles of arrays in a JAX training: collected while a function is traced, then used at its calls.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    class Observer(Protocol):
        """Gets the flat inputs and outputs of each training call that runs in a thread."""

        def before(self, plan: Plan, inputs: list[Any]) -> None:
            """Handle the inputs of a training call, before JAX may reuse their buffers."""

        def after(self, plan: Plan, outputs: list[Any]) -> None:
            """Handle the outputs of that call."""

        def collections(self, named: dict[str, Any]) -> None:
            """Handle collections that a model of Flax returned, by name."""

        def result(self, outputs: list[Any]) -> None:
            """Handle the outputs of a call that trains weights which are none of its inputs."""

    class Framework(Protocol):
        """JAX in this process, see training.py."""

        @property
        def kept(self) -> Observer:
            """The observer of this thread."""

        def guard(self, where: str) -> AbstractContextManager[object]:
            """Return a context for what a hook does."""

        def donated(self, inputs: list[Any]) -> None:
            """Handle inputs of another call, which is about to reuse their buffers."""


class Roles:
    """The roles of arrays: the arrays themselves in a frame, their positions in a plan.

    A gradient was taken with respect to the ``weights``. ``updated`` are the weights that an optimizer returned, and
    ``histories`` are arrays that each hold the losses of all iterations of a loop. ``collections`` are what models of
    Flax returned beside their outputs. ``gradients`` are what derivatives of a loss returned. If ``inner``, something
    was trained that is none of these: it began and ended inside a function.
    """

    def __init__(self) -> None:
        self.weights: list[Any] = []
        self.losses: list[Any] = []
        self.histories: list[Any] = []
        self.updated: list[Any] = []
        self.collections: list[Any] = []
        self.gradients: list[Any] = []
        self.inner = False

    @property
    def trains(self) -> bool:
        """Whether this is part of a training."""
        return bool(self.weights or self.updated)

    @property
    def counts(self) -> bool:
        """Whether a call of this is followed."""
        return self.trains or bool(self.collections) or self.inner


class Frame(Roles):
    """The roles found in a function while it is traced, and the depth of nested gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0


class Plan(Roles):
    """The positions of each role in the flat inputs (``weights``) and outputs (all others) of a function.

    ``passed`` are the positions of outputs that are unchanged inputs, ``names`` are the paths of all outputs.
    ``carried`` is filled in when the next call takes outputs again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.passed: set[int] = set()
        self.names: list[str] = []
        self.carried: list[int] = []

    def inherit(self, before: Plan) -> None:
        """Take over what calls of an earlier trace showed, or will show, such as one for a different batch size."""
        if (self.weights, self.names, self.passed) == (before.weights, before.names, before.passed):
            self.updated, self.carried = self.updated or before.updated, before.carried


NOTHING = Plan()


def places_of(arrays: Sequence[Any], leaves: Sequence[Any]) -> list[int]:
    """Return the positions of the arrays among the leaves, without repetitions and missing ones."""
    positions = {id(leaf): index for index, leaf in reversed(list(enumerate(leaves)))}
    return list(dict.fromkeys([positions[id(array)] for array in arrays if id(array) in positions]))


def of_loop(body: Plan, first: int, number: int) -> Plan:
    """Return the plan of a loop from the plan of its body. Weights among the carried values are returned updated."""
    plan = Plan()
    plan.weights, plan.passed, plan.inner = body.weights, set(), body.inner
    plan.losses = [position for position in body.losses if position < number]
    plan.histories = [*body.histories, *[position for position in body.losses if position >= number]]
    plan.updated = body.updated or [position - first for position in body.weights if first <= position < first + number]
    return plan


# Follow weights and losses through the functions that JAX traces, without adding to what it compiles.
#
# A function under ``jit``, ``vmap`` or a loop runs in Python only while it is traced, when its weights have no values.
# Its trace gives a plan: which inputs and outputs of the function are weights and losses. Each call of the function
# then uses this plan. If the call itself is traced, the plan becomes part of the plan of the enclosing function.


class _Known:
    """An attribute of a function of the script. It is left out if the function is pickled."""

    def __init__(self, traced: Any) -> None:
        self.traced = traced

    def __reduce__(self) -> Any:
        return object, ()


class Frames:
    """Keeps the functions that each thread is tracing or calling, and the plans of those that were traced."""

    def __init__(self, jax: Any, framework: Framework) -> None:
        self._tree = jax.tree_util
        self._tracer = jax.core.Tracer
        self.framework = framework
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
                with self.framework.guard("trace"):
                    self._learn(in_frame, frame, (args, kwargs), result)
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
            with self.framework.guard("call"):
                call.look_up()
        calls.append(call)
        try:
            result = function()
        finally:
            calls.pop()
        if call.plan.counts:
            with self.framework.guard("call"):
                call.end(result)
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
            self._frames.framework.donated(leaves)

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
            frames.framework.kept.before(self.plan, self._leaves)
        if self._donates and not self.plan.updated:
            frames.framework.donated(self._leaves)

    def end(self, result: Any) -> None:
        """Handle the outputs, or add them to the frame of the function being traced, which makes this call."""
        frames, plan, outputs = self._frames, self.plan, self._frames.flatten(result)[0]
        if frames.tracing:
            top = frames.top
            top.weights += [self._leaves[position] for position in plan.weights]
            top.losses += [outputs[position] for position in plan.losses]
            top.histories += [outputs[position] for position in plan.histories]
            top.updated += [outputs[position] for position in plan.updated]
            top.collections += [outputs[position] for position in plan.collections]
            top.gradients += [outputs[position] for position in plan.gradients]
            top.inner = top.inner or plan.inner
        elif frames.have_values(outputs):
            if plan.trains:
                frames.framework.kept.after(plan, outputs)
            elif plan.inner:
                frames.framework.kept.result(outputs)
            elif plan.collections:
                frames.framework.kept.collections(
                    {plan.names[position]: outputs[position] for position in plan.collections}
                )


# Wrap the functions that are passed to jax.jit, jax.vmap and JAX's loops, to follow their calls.


class _Compiling:
    """Represents jax.jit or jax.pmap in a pickle, which looks it up when it is loaded."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it."""
        return getattr(sys.modules[self._module], self._name)(*args, **options)

    def __reduce__(self) -> Any:
        return getattr, (sys.modules[self._module], self._name)


class Jitted:
    """Wraps the result of jax.jit or jax.pmap, ``named`` by its module and its name, and follows its calls."""

    def __init__(
        self, frames: Frames, function: Any, jit: Any, options: dict[str, Any], named: tuple[str, str] = ("jax", "jit")
    ) -> None:
        self._named = named
        functools.update_wrapper(self, function, updated=())
        self._function, self._options = function, options
        self._frames, self._traced = frames, frames.traced(function)
        self._jitted = jit(self._traced, **options)
        self._donates = any([options.get(name) not in (None, ()) for name in ("donate_argnums", "donate_argnames")])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function."""
        jitted = self._jitted
        return self._frames.call(lambda: jitted(*args, **kwargs), self._traced, (args, kwargs), donates=self._donates)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the function for these arguments, and follow the calls of what is compiled from it."""
        return self._ahead(self._jitted.lower, args, kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the function for these arguments, and follow the calls of what is compiled from it."""
        return self._ahead(self._jitted.trace, args, kwargs)

    def _ahead(self, stage: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = stage(*args, **kwargs)
        made._detaudit = self._ran_compiled, args, kwargs
        return made

    def _ran_compiled(self, run: Any, static: tuple[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run what was compiled ahead of time, which does not take the static arguments that it was lowered with."""
        positional, named = static
        dynamic = iter(args)
        options = self._options
        nums, names = options.get("static_argnums") or options.get(_STATIC_IN_PMAP), options.get("static_argnames")
        places = (
            {n % len(positional) for n in ((nums,) if isinstance(nums, int) else nums or ())} if positional else set()
        )
        all_args = tuple([arg if index in places else next(dynamic, arg) for index, arg in enumerate(positional)])
        fixed = {name: named[name] for name in ((names,) if isinstance(names, str) else names or ()) if name in named}
        return self._frames.call(run, self._traced, (all_args, {**fixed, **kwargs}), donates=self._donates)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a compiled method."""
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_jitted", "_named"):  # copy and pickle read attributes of an empty object
            raise AttributeError(name)
        return getattr(self._jitted, name)

    def __reduce__(self) -> Any:
        return functools.partial(_Compiling(*self._named), **self._options), (self._function,)

    def __repr__(self) -> str:
        return repr(self._jitted)


def watch_ahead_of_time(stages: Any) -> None:
    """Follow the calls of functions that were compiled by ``lower(…).compile()``."""

    def inheriting(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(stage: Any, *args: Any, **kwargs: Any) -> Any:
            result = make(stage, *args, **kwargs)
            if hasattr(stage, "_detaudit"):
                result._detaudit = stage._detaudit
            return result

        return made

    run = stages.Compiled.__call__

    @functools.wraps(run)
    def __call__(compiled: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(compiled, "_detaudit"):
            return run(compiled, *args, **kwargs)
        followed, *static = compiled._detaudit
        return followed(lambda: run(compiled, *args, **kwargs), static, args, kwargs)

    stages.Lowered.compile = inheriting(stages.Lowered.compile)
    if hasattr(stages, "Traced"):
        stages.Traced.lower = inheriting(stages.Traced.lower)
    stages.Compiled.__call__ = __call__


def watched_jit(frames: Frames, jit: Any, module: str = "jax", name: str = "jit") -> Any:
    """Return a jax.jit or jax.pmap whose calls are followed."""

    @functools.wraps(jit)
    def jit_(*args: Any, **options: Any) -> Any:
        if name == "pmap" and len(args) > 1:
            options.setdefault("axis_name", args[1])
            args = (args[0], *args[2:])
        if len(args) != 1 or not callable(args[0]):
            jit(*args, **options)  # raises, unless this version of JAX returns a decorator
            return functools.partial(jit_, **options)
        return Jitted(frames, args[0], jit, options, (module, name))

    return jit_


def watched_map(frames: Frames, transform: Any) -> Any:
    """Return a jax.vmap or jax.shard_map whose calls are followed."""

    @functools.wraps(transform)
    def transform_(*args: Any, **named: Any) -> Any:
        if not args or not callable(args[0]):
            transform(*args, **named)  # raises, unless this version of JAX returns a decorator
            return functools.partial(transform_, **named)
        fun, *options = args
        traced = frames.traced(fun)
        mapped = transform(traced, *options, **named)

        @functools.wraps(mapped)
        def mapped_(*args: Any, **kwargs: Any) -> Any:
            return frames.call(lambda: mapped(*args, **kwargs), traced, (args, kwargs))

        return mapped_

    return transform_


_STATIC_IN_PMAP = "static_broadcasted_argnums"


def watched_loops(frames: Frames, lax: Any) -> dict[str, Callable[..., Any]]:
    """Return the loops of jax.lax, by name, with their iterations followed."""
    run_scan, run_for, run_while = lax.scan, lax.fori_loop, lax.while_loop

    def count(tree: Any) -> int:
        return len(frames.flatten(tree)[0])

    @functools.wraps(run_scan)
    def scan(f: Any, init: Any, xs: Any = None, *args: Any, **kwargs: Any) -> Any:
        body, carried = frames.traced(f), (0, count(init))
        return frames.call(lambda: run_scan(body, init, xs, *args, **kwargs), body, ((init, xs), {}), carried=carried)

    @functools.wraps(run_for)
    def fori_loop(lower: Any, upper: Any, body_fun: Any, init_val: Any, **kwargs: Any) -> Any:
        body, carried = frames.traced(body_fun), (1, count(init_val))
        return frames.call(
            lambda: run_for(lower, upper, body, init_val, **kwargs), body, ((lower, init_val), {}), carried=carried
        )

    @functools.wraps(run_while)
    def while_loop(cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
        body, carried = frames.traced(body_fun), (0, count(init_val))
        return frames.call(lambda: run_while(cond_fun, body, init_val), body, ((init_val,), {}), carried=carried)

    return {"scan": scan, "fori_loop": fori_loop, "while_loop": while_loop}
