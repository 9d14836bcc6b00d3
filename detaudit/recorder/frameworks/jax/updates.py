"""Report to Jax what other modules train: optax, Keras on JAX, Flax, and parts of JAX that are imported late."""

from __future__ import annotations

import functools
import importlib

from ..tensorflow import models
from . import arrays, training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ...process.recorder import Recorder


_TRANSFORMATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "jax.experimental.pjit": (("pjit",), ()),
    "jax.experimental.shard_map": ((), ("shard_map",)),
}
"""Modules, and what of them compiles functions, and what maps them."""


def _reporting(function: Callable[..., Any], weights_in: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def update(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if training.current is not None:
            training.current.updated(weights_in(result))
        return result

    return update


def _reporting_collections(apply: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply)
    def reporting(*args: Any, mutable: Any = False, **kwargs: Any) -> Any:
        result = apply(*args, mutable=mutable, **kwargs)
        if training.current is not None and mutable is not False:
            training.current.collections(result[1])
        return result

    return reporting


def _minimizing(minimize: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(minimize)
    def minimize_(fun: Any, x0: Any, *args: Any, **options: Any) -> Any:
        if training.current is None:
            return minimize(fun, x0, *args, **options)
        return training.current.minimized(lambda: minimize(fun, x0, *args, **options), x0)

    return minimize_


def install(module: ModuleType, recorder: Recorder) -> None:
    """Watch the updates, the models or the transformations of this module from now on."""
    holder: Any = module
    if module.__name__ in _TRANSFORMATIONS:
        if training.current is not None:
            training.current.follow(holder, *_TRANSFORMATIONS[module.__name__])
        return
    if module.__name__ == "jax.scipy.optimize":
        holder.minimize = _minimizing(holder.minimize)
        return
    if module.__name__ == "flax.nnx":
        if training.current is not None:
            training.current.add_states(lambda reader, write: arrays.NnxStates(holder, reader, write))
        return
    if module.__name__ == "optax":
        holder.apply_updates = _reporting(holder.apply_updates, lambda weights: weights)
    elif module.__name__ == "flax.linen.module":
        holder.Module.apply = _reporting_collections(holder.Module.apply)
    elif holder.config.backend() == "jax":
        optimizer = importlib.import_module("keras.src.optimizers.base_optimizer").BaseOptimizer
        optimizer.stateless_apply = _reporting(optimizer.stateless_apply, lambda result: result[0])
        layer = importlib.import_module("keras.src.layers.layer").Layer
        if training.current is not None:
            training.current.add_states(lambda reader, write: models.LayerStates(layer, reader, write))
