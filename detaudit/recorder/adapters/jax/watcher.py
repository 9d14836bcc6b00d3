"""Hook JAX: the gradients that a script takes, and the functions that it compiles.

JAX compiles pure functions, and the recorder adds nothing to them. A training inside a compiled function is recorded
through the inputs and outputs of that function (tracing.py). A step is an update. There are limits:

- Several updates in one compiled function count as one step, unless a loop in it returns their losses. If neither their
  weights nor what became of them is an input or an output, all that the function returns is recorded.
- A loss that the function does not return is not recorded.
- An update without an optimizer is detected when its weights are passed to the next gradient. The last one is recorded
  by what the call returned or ``jax.tree.map`` made of the weights, by its gradients, and by the arrays that are alive
  at the end.
- A gradient in a transformation that is not followed, such as ``jax.lax.cond`` outside of any compiled function, is
  reported as unseen.
"""

from __future__ import annotations

import functools
import sys

from .steps import ThreadSteps
from .tracing import Frames
from .transforms import watch_ahead_of_time, watched_jit, watched_loops, watched_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ...process.recorder import Recorder

_VALUE_FIRST = ("vjp", "linearize")
"""Derivatives that take a function and its arguments, and return its value first."""

_JACOBIANS = ("jacfwd", "jacrev", "jacobian", "hessian")
"""Derivatives that return a function, as jax.grad does."""


class JaxWatcher:
    """Hooks gradients, and handles the updates that an optimizer's hook reports."""

    def __init__(self, jax: Any, recorder: Recorder) -> None:
        self._steps = ThreadSteps(jax, recorder)
        self._guarded = recorder.sink.guarded
        self._frames = Frames(jax, recorder.sink.guarded, self._steps)
        self.add_states = self._steps.add_states

    def install(self, jax: Any) -> None:
        """Install the hooks."""
        compute, gradient = jax.value_and_grad, jax.grad

        @functools.wraps(compute)
        def value_and_grad(fun: Any, argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            return self._watched(compute(fun, argnums, has_aux, **options), argnums, has_aux)

        @functools.wraps(gradient)
        def grad(fun: Any, argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            # jax.grad itself is value_and_grad without the value.
            both = self._watched(compute(fun, argnums, has_aux, **options), argnums, has_aux)

            @functools.wraps(gradient(fun, argnums, has_aux, **options))
            def gradient_(*args: Any, **kwargs: Any) -> Any:
                value, gradients = both(*args, **kwargs)
                return (gradients, value[1]) if has_aux else gradients

            return gradient_

        jax.value_and_grad, jax.grad = value_and_grad, grad
        for name in _VALUE_FIRST:
            setattr(jax, name, self._differentiating(getattr(jax, name), lambda primals: primals))
        jax.jvp = self._differentiating(jax.jvp, lambda args: args[0] if args else ())
        for name in _JACOBIANS:
            setattr(jax, name, self._jacobian(getattr(jax, name)))
        jax.eval_shape, jax.make_jaxpr = self._without_values(jax.eval_shape), self._maker(jax.make_jaxpr)
        self.follow(jax, ("jit", "pmap"), ("vmap", "shard_map"))
        watch_ahead_of_time(jax.stages)
        for name, loop in watched_loops(self._frames, jax.lax).items():
            setattr(jax.lax, name, loop)
        jax.tree.map, jax.tree_util.tree_map = self._mapping(jax.tree.map), self._mapping(jax.tree_util.tree_map)

    def follow(self, holder: Any, compiling: tuple[str, ...], mapping: tuple[str, ...]) -> None:
        """Follow the calls of the functions that these transformations of a module return, if it has them."""
        for name in compiling:
            if hasattr(holder, name):
                setattr(holder, name, watched_jit(self._frames, getattr(holder, name), holder.__name__, name))
        for name in mapping:
            if hasattr(holder, name):
                setattr(holder, name, watched_map(self._frames, getattr(holder, name)))

    def _inside(self, function: Callable[[], Any]) -> tuple[Any, bool]:
        """Return what ``function`` returns, in which gradients are parts of another one, and whether it is no part."""
        frame = self._frames.top
        frame.depth += 1
        try:
            result = function()
        finally:
            frame.depth -= 1
        return result, not frame.depth

    def _watched(self, function: Any, argnums: Any, has_aux: bool, *, value: bool = True) -> Any:
        places = [argnums] if isinstance(argnums, int) else argnums

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result, outermost = self._inside(lambda: function(*args, **kwargs))
            if outermost:
                found: Any
                found, gradients = result if value else (None, result[0] if has_aux else result)
                losses = [found[0] if has_aux else found] if value else []
                self._guarded("gradient", lambda: self._note([args[place] for place in places], losses, gradients))
            return result

        return watched

    def _jacobian(self, derive: Any) -> Any:
        @functools.wraps(derive)
        def derived(fun: Any, argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            return self._watched(derive(fun, argnums, has_aux, **options), argnums, has_aux, value=False)

        return derived

    def _differentiating(self, derive: Any, primals_in: Callable[[Any], Any]) -> Any:
        @functools.wraps(derive)
        def derived(fun: Any, *args: Any, **options: Any) -> Any:
            result, outermost = self._inside(lambda: derive(fun, *args, **options))
            if outermost:
                value = result[0]
                losses = [value] if getattr(value, "shape", None) == () else []
                primals = options["primals"] if "primals" in options else primals_in(args)
                self._guarded("gradient", lambda: self._note(primals, losses, () if losses else value))
            return result

        return derived

    def _without_values(self, function: Any) -> Any:
        """Wrap a function of JAX that calls functions only to learn what they are like."""

        @functools.wraps(function)
        def shaped(*args: Any, **options: Any) -> Any:
            return self._inside(lambda: function(*args, **options))[0]

        return shaped

    def _maker(self, make: Any) -> Any:
        @functools.wraps(make)
        def made(*args: Any, **options: Any) -> Any:
            return self._without_values(make(*args, **options))

        return made

    def _mapping(self, function: Any) -> Any:
        @functools.wraps(function)
        def mapped(f: Any, tree: Any, *rest: Any, **options: Any) -> Any:
            result = function(f, tree, *rest, **options)
            if self._steps.by_hand and not self._frames.tracing:
                self._guarded("tree", lambda: self._note_mapped((tree, *rest), result))
            return result

        return mapped

    def _note_mapped(self, trees: tuple[Any, ...], result: Any) -> None:
        leaves = self._frames.flatten(result)[0]
        if self._frames.have_values(leaves):
            self._steps.mapped([self._frames.flatten(tree)[0] for tree in trees], leaves)

    def _note(self, weights: Any, losses: list[Any], gradients: Any) -> None:
        frames, leaves = self._frames, self._frames.flatten(weights)[0]
        if frames.tracing:
            frames.top.weights += leaves
            frames.top.losses += losses
            frames.top.gradients += frames.flatten(gradients)[0]
        elif frames.have_values(leaves):
            seen = frames.flatten(gradients)[0]
            self._steps.gradient(
                leaves, losses if frames.have_values(losses) else [], seen if frames.have_values(seen) else []
            )
        else:
            self._steps.unseen("a transformation of JAX outside of any compiled function, such as jax.lax.cond,")

    def minimized(self, minimize: Callable[[], Any], start: Any) -> Any:
        """Call a function that minimizes by itself, and handle its result as one step."""
        result, outermost = self._inside(minimize)
        if outermost:
            self._guarded("minimize", lambda: self._note_minimized(start, result))
        return result

    def _note_minimized(self, start: Any, result: Any) -> None:
        frames = self._frames
        if frames.tracing:
            frames.top.weights.append(start)
            frames.top.losses.append(result.fun)
            frames.top.updated.append(result.x)
        elif frames.have_values([start, result.x, result.fun]):
            self._steps.minimized([start], [result.fun], [result.x])

    def updated(self, weights: Any) -> None:
        """Handle the weights that an optimizer returned."""
        self._guarded("update", lambda: self._note_update(self._frames.flatten(weights)[0]))

    def collections(self, mutated: Any) -> None:
        """Handle the collections that a model of Flax returned, but for its weights and what it shows of its layers."""

        def note() -> None:
            named = {
                f"{kind}/{name}": leaf
                for kind in sorted(mutated)
                if kind not in _NO_STATE
                for name, leaf in self._frames.named(mutated[kind]).items()
            }
            frames = self._frames
            if frames.tracing:
                frames.top.collections += list(named.values())
            elif not frames.top.depth and frames.have_values(list(named.values())):
                self._steps.collections(named)

        self._guarded("collections", note)

    def _note_update(self, weights: list[Any]) -> None:
        frames = self._frames
        if frames.top.depth:
            return
        if frames.tracing:
            frames.top.updated += weights
        elif weights and frames.have_values(weights):
            self._steps.update(weights)


_NO_STATE = ("params", "intermediates", "perturbations", "cache")
"""Collections of Flax that no training carries."""

watcher: JaxWatcher | None = None
"""The watcher of this process, once JAX was imported."""


def _hide_from_tracebacks() -> None:
    # JAX hides its own frames in tracebacks. Hide the frames of the recorder's wrappers too.
    for name in ("jax._src.traceback_util", "jax._src.source_info_util"):
        register = getattr(sys.modules.get(name), "register_exclusion", None)
        for module in (__name__, Frames.__module__, watched_jit.__module__):
            if register is not None:
                register(sys.modules[module].__file__)


def install(jax: ModuleType, recorder: Recorder) -> None:
    """Record the trainings of this JAX from now on."""
    global watcher
    recorder.sink.write({"k": "framework", "name": "jax", "version": str(jax.__version__)})
    recorder.sink.guarded("tracebacks", _hide_from_tracebacks)
    watcher = JaxWatcher(jax, recorder)
    watcher.install(jax)
