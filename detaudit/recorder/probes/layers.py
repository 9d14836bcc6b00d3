"""Record the calls of a Keras layer or a torch module, and find the weights of a model."""

from __future__ import annotations

import functools
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_KERAS = ("keras", "tf_keras")

_names: dict[str, int] = {}


def is_keras(layer: Any) -> bool:
    """Return whether this is a layer or a model of Keras 2 or 3, on any backend."""
    return any([base.__module__.split(".")[0] in _KERAS for base in type(layer).__mro__])


def watch(layer: Any, name: str, monitor: Callable[[Any, str], Any]) -> None:
    """Pass the arguments and the result of every call of ``layer`` to ``monitor``. A second call of this does nothing.

    Raises AttributeError if ``layer`` is neither a Keras layer nor a torch module.
    """
    method = "call" if is_keras(layer) else "forward"
    original = getattr(layer, method)
    if hasattr(original, "__detaudit__"):
        return
    bound = getattr(original, "__self__", None) is layer
    function = original.__func__ if bound else original
    name = name or _name(layer)

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = monitor(args, name + " input") if args else args
        # Flags such as Keras' `training` are constants in a traced graph, which would be recorded once, out of order.
        data = {key: value for key, value in kwargs.items() if value is not None and not isinstance(value, bool)}
        kwargs = {**kwargs, **monitor(data, name + " input")} if data else kwargs
        result = function(self, *args, **kwargs) if bound else function(*args, **kwargs)
        return monitor(result, name + " output")

    call.__detaudit__ = True  # type: ignore[attr-defined]
    # A bound method can be copied, where it is bound to the copy, and pickled, as a name.
    object.__setattr__(layer, method, types.MethodType(call, layer))


def _name(layer: Any) -> str:
    if is_keras(layer):
        return str(layer.name)
    kind = type(layer).__name__
    _names[kind] = _names.get(kind, 0) + 1
    return f"{kind} {_names[kind]}"


def weights_of(model: Any) -> Any:
    """Return the weights of a Keras or torch model by name, and anything else unchanged."""
    if is_keras(model):
        return {f"{i} {weight.name}": getattr(weight, "value", weight) for i, weight in enumerate(model.weights)}
    if hasattr(model, "named_parameters") and hasattr(model, "named_buffers"):
        return {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return model
