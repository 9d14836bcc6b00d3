"""Hook JAX: the gradients that a script takes, and the functions that it compiles.

JAX compiles pure functions, and the recorder adds nothing to them. A training inside a compiled function is recorded
through the inputs and outputs of that function (tracing.py). A step is an update. There are limits:

- Several updates in one compiled function count as one step, unless a loop in it returns their losses.
- A loss that the function does not return is not recorded.
- An update without an optimizer, outside of compiled functions, is detected when its weights are passed to the next
  gradient, so the last update is not detected.
- ``jax.vjp``, ``pmap`` and ``shard_map`` are not hooked.
"""

from __future__ import annotations

import functools
import sys

from .steps import ThreadSteps
from .tracing import Frames
from .transforms import watch_ahead_of_time, watched_jit, watched_loops, watched_vmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ...process.recorder import Recorder


class JaxWatcher:
    """Hooks gradients, and handles the updates that an optimizer's hook reports."""

    def __init__(self, jax: Any, recorder: Recorder) -> None:
        self._steps = ThreadSteps(recorder)
        self._guarded = recorder.sink.guarded
        self._frames = Frames(jax, recorder.sink.guarded, self._steps)

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
        jax.jit, jax.vmap = watched_jit(self._frames, jax.jit), watched_vmap(self._frames, jax.vmap)
        watch_ahead_of_time(jax.stages)
        for name, loop in watched_loops(self._frames, jax.lax).items():
            setattr(jax.lax, name, loop)

    def _watched(self, function: Any, argnums: Any, has_aux: bool) -> Any:
        places = [argnums] if isinstance(argnums, int) else argnums

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            frame = self._frames.top
            frame.gradients += 1
            try:
                result = function(*args, **kwargs)
            finally:
                frame.gradients -= 1
            if not frame.gradients:  # otherwise this is part of a function that another gradient is taken of
                loss = result[0][0] if has_aux else result[0]
                self._guarded("gradient", lambda: self._note_gradient([args[place] for place in places], loss))
            return result

        return watched

    def _note_gradient(self, weights: Any, loss: Any) -> None:
        frames, leaves = self._frames, self._frames.flatten(weights)[0]
        if frames.tracing:
            frames.top.weights += leaves
            frames.top.losses.append(loss)
        elif frames.have_values(leaves):
            self._steps.gradient(leaves, [loss] if frames.have_values([loss]) else [])

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
            elif not frames.top.gradients and frames.have_values(list(named.values())):
                self._steps.collections(named)

        self._guarded("collections", note)

    def _note_update(self, weights: list[Any]) -> None:
        frames = self._frames
        if frames.top.gradients:
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
