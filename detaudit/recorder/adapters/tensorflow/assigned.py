"""Notice the variables that a script adds to without any gradient, such as by a random search or its own formulas."""

from __future__ import annotations

import functools
import importlib
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...process.sink import Sink

_METHODS = ("assign_add", "assign_sub")
"""What updates a variable; ``assign`` also loads what was saved, and copies."""

_MOST = 256


class Assigned:
    """The trainable variables of floats that were added to and have no gradient, up to _MOST.

    Single numbers are left out, which count, and sum up times.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._context: Any = importlib.import_module("tensorflow.python.eager.context")
        self._operations: Any = importlib.import_module("tensorflow.python.ops.resource_variable_ops")
        self._trained: dict[int, Callable[[], Any]] = {}
        self._variables: dict[int, Any] = {}

    @property
    def variables(self) -> list[Any]:
        """The variables, in the order in which they were first added to."""
        return [*self._variables.values()]

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._variables.clear()

    def watch(self) -> None:
        """Install the hooks."""
        for kind in (self._operations.BaseResourceVariable, self._operations.ResourceVariable):
            for name in _METHODS:
                if name in vars(kind):
                    setattr(kind, name, self._noted(vars(kind)[name]))

    def trained(self, sources: Iterable[Any]) -> None:
        """Leave out what a gradient trains: a variable, the one inside a Keras variable, or those of replicas."""
        for source in sources:
            inner = getattr(source, "value", None)
            for one in getattr(source, "values", (inner if hasattr(inner, "handle") else source,)):
                self._variables.pop(id(one), None)
                self._trained[id(one)] = weakref.ref(one)

    def _noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def assign(variable: Any, *args: Any, **kwargs: Any) -> Any:
            if id(variable) not in self._variables and len(self._variables) < _MOST:
                self._sink.guarded("assign", lambda: self._note(variable))
            return function(variable, *args, **kwargs)

        return assign

    def _note(self, variable: Any) -> None:
        if self._trained.get(id(variable), lambda: None)() is variable or not variable.trainable:
            return
        eagerly = self._context.context().executing_eagerly() or not variable._in_graph_mode
        if variable.dtype.is_floating and variable.shape.rank and eagerly:
            self._variables[id(variable)] = variable
