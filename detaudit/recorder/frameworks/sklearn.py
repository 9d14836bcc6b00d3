"""Hook scikit-learn: the methods that fit and predict of every class of estimators, also those of the script."""

from __future__ import annotations

import sys
import types

from ..process import imports
from ..process.replace import replace
from . import fits
from .fits import FitMethod, PredictMethod, hook_functions, on_subclasses, read_when_freed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any

    from ..process.recorder import Recorder


_METHODS = {
    **dict.fromkeys(("fit", "partial_fit", "fit_transform", "fit_predict"), FitMethod),
    **dict.fromkeys(
        ("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "transform"),
        PredictMethod,
    ),
}

_OUTSIDE = "_detaudit_outside"
"""The attribute of a function for joblib that was delayed outside of any fit."""

_FUNCTIONS = ("cross_validate", "cross_val_predict", "learning_curve", "validation_curve", "permutation_test_score")
"""Functions of model_selection that fit copies of an estimator and return its scores."""


_SCORES = 3
"""Sizes and scores, which learning_curve returns before the times of fits and scores."""


class SklearnWatcher:
    """Installs the hooks."""

    def __init__(self, recorder: Recorder) -> None:
        self._sink = recorder.sink
        self._fits = fits.of(recorder)
        self._recorder = recorder

    def install(self, base: Any) -> None:
        """Watch every class that derives from BaseEstimator from now on, and what runs fits elsewhere."""
        on_subclasses(base.BaseEstimator, self._watch, self._recorder)
        read_when_freed(base.BaseEstimator, self._fits)
        for name, hook in (
            ("sklearn.utils.parallel", self._tasks),
            ("cloudpickle.cloudpickle", self._unpickling),
            ("joblib.externals.cloudpickle.cloudpickle", self._unpickling),
            ("sklearn.model_selection._validation", self._functions),
        ):
            imports.when_imported(name, self._sink, hook)

    def _functions(self, module: Any) -> None:
        hook_functions(module, _FUNCTIONS, self._recorder, {"learning_curve": _SCORES})

    def _watch(self, kind: type) -> None:
        for holder in kind.__mro__[:-1]:
            if "__del__" in vars(holder):
                read_when_freed(holder, self._fits)
            for name, replaced in _METHODS.items():
                method = vars(holder).get(name)
                if method is not None and not isinstance(method, FitMethod):
                    self._replace(holder, name, method, replaced)

    def _replace(self, holder: Any, name: str, method: Any, replaced: type[FitMethod]) -> None:
        if isinstance(method, types.FunctionType):
            setattr(holder, name, replaced(method, self._fits))
        elif isinstance(getattr(method, "fn", None), types.FunctionType):  # sklearn.utils.metaestimators.available_if
            method.fn = replaced(method.fn, self._fits)

    def _tasks(self, parallel: Any) -> None:
        # What scikit-learn runs in threads and processes belongs to the fit that asked for it. What a script runs by
        # the same functions outside of any fit is marked, because it is called where nobody knows.
        def make(function: Callable[..., Any]) -> Callable[..., Any]:
            def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
                if getattr(self, _OUTSIDE, False):
                    return function(self, *args, **kwargs)
                return fits.within(function, self, *args, **kwargs)

            return __call__

        def outside(tasks: Iterable[Any]) -> Iterator[Any]:
            for task in tasks:
                if isinstance(task[0], parallel._FuncWrapper):
                    setattr(task[0], _OUTSIDE, True)
                yield task

        def make_all(function: Callable[..., Any]) -> Callable[..., Any]:
            def __call__(self: Any, iterable: Any) -> Any:
                return function(self, iterable if fits.inside.now else outside(iterable))

            return __call__

        replace(parallel._FuncWrapper, "__call__", make)
        replace(parallel.Parallel, "__call__", make_all)

    def _unpickling(self, cloudpickle: Any) -> None:
        # An instance that comes back from a worker sets the methods of its class in this process to the original ones.
        def make(function: Callable[..., Any]) -> Callable[..., Any]:
            def _class_setstate(kind: Any, *args: Any) -> Any:
                result = function(kind, *args)
                if issubclass(kind, sys.modules["sklearn.base"].BaseEstimator):
                    self._sink.guarded("fits of " + kind.__name__, lambda: self._watch(kind))
                return result

            return _class_setstate

        replace(cloudpickle, "_class_setstate", make)


def install(base: ModuleType, recorder: Recorder) -> None:
    """Record the fits of this scikit-learn from now on."""
    version = getattr(sys.modules.get("sklearn"), "__version__", "")
    recorder.sink.write({"k": "framework", "name": "sklearn", "version": str(version)})
    SklearnWatcher(recorder).install(base)
