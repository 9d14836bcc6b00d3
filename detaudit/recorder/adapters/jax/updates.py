"""Report to JaxWatcher the weights that an optimizer of optax, or of Keras on JAX, returned, and Flax's collections."""

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


def _reporting_collections(apply: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply)
    def reporting(*args: Any, mutable: Any = False, **kwargs: Any) -> Any:
        result = apply(*args, mutable=mutable, **kwargs)
        if adapter.watcher is not None and mutable is not False:
            adapter.watcher.collections(result[1])
        return result

    return reporting


def install(module: ModuleType, recorder: Recorder) -> None:
    """Watch the updates of optax or Keras, or the models of Flax, from now on."""
    holder: Any = module
    if module.__name__ == "optax":
        holder.apply_updates = _reporting(holder.apply_updates, lambda weights: weights)
    elif module.__name__ == "flax.linen.module":
        holder.Module.apply = _reporting_collections(holder.Module.apply)
    elif holder.config.backend() == "jax":
        optimizer = importlib.import_module("keras.src.optimizers.base_optimizer").BaseOptimizer
        optimizer.stateless_apply = _reporting(optimizer.stateless_apply, lambda result: result[0])
