"""Report the weights that an optimizer returned to JaxWatcher: those of optax, and of Keras on JAX."""

from __future__ import annotations

import functools
import importlib

from . import watcher as adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ...process.recorder import Recorder


def _reporting(function: Callable[..., Any], weights_in: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def update(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if adapter.watcher is not None:
            adapter.watcher.updated(weights_in(result))
        return result

    return update


def install(module: ModuleType, recorder: Recorder) -> None:
    """Watch the updates of optax or Keras from now on."""
    holder: Any = module
    if module.__name__ == "optax":
        holder.apply_updates = _reporting(holder.apply_updates, lambda weights: weights)
    elif holder.config.backend() == "jax":
        optimizer = importlib.import_module("keras.src.optimizers.base_optimizer").BaseOptimizer
        optimizer.stateless_apply = _reporting(optimizer.stateless_apply, lambda result: result[0])
