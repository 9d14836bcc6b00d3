"""Replace methods and functions that fit, so that each outermost call is a step."""

from __future__ import annotations

import copy
import types

from ..process.replace import replace
from ..randomness import draws
from ..training import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..process.recorder import Recorder


class FitMethod:
    """Replaces a method that fits. It is pickled as the original: workers get the classes of a script by value.

    What learns is the object itself, or with ``returns`` what the method returns.
    """

    def __init__(self, function: Any, watched: fits.Fits, *, returns: bool = False) -> None:
        self.__wrapped__, self._watched, self._returns = function, watched, returns
        self.__name__ = ""
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, attribute, getattr(function, attribute, None))

    def __call__(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """Fit, as the original method does."""
        kind, numpy = type(estimator), draws.of_numpy()
        library, name = kind.__module__.partition(".")[0], "%s.%s" % (kind.__name__, self.__name__.lstrip("_"))

        def call() -> Any:
            learner = None if self._returns else estimator
            return self._watched.call(
                self.__wrapped__, (estimator, *args), kwargs, name=name, library=library, learner=learner
            )

        return call() if numpy is None or not numpy.on or fits.inside.now else numpy.around(name, call)

    def __get__(self, estimator: Any, kind: Any = None) -> Any:
        return self if estimator is None else types.MethodType(self, estimator)

    def __reduce__(self) -> Any:
        return copy.copy, (self.__wrapped__,)  # which returns a function itself

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def hook_methods(kind: type, names: Iterable[str], recorder: Recorder, *, returns: bool = False) -> None:
    """Record each outermost call of these methods of a class, whose instances learn; or what they return."""
    for name in names:
        setattr(kind, name, FitMethod(vars(kind)[name], fits.of(recorder), returns=returns))


def read_when_freed(kind: Any, watched: fits.Fits) -> None:
    """Read the instances of a class that were fitted when they are freed: they may have been changed since."""
    before = vars(kind).get("__del__")
    if getattr(before, "of_detaudit", False):
        return

    def __del__(self: Any) -> None:
        watched.freed(self)
        if before is not None:
            before(self)

    __del__.of_detaudit = True  # type: ignore[attr-defined]
    kind.__del__ = __del__


def hook_functions(module: Any, names: Iterable[str], recorder: Recorder) -> None:
    """Record each outermost call of these functions, which return what was learned."""
    for name in names:
        recorder.sink.guarded(name, lambda name=name: _hook_function(module, name, recorder))  # type: ignore[misc]


def _hook_function(module: Any, name: str, recorder: Recorder) -> None:
    watched, library = fits.of(recorder), module.__name__.partition(".")[0]

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return watched.call(function, args, kwargs, name="%s.%s" % (library, name), library=library)

        return call

    replace(module, name, make)
