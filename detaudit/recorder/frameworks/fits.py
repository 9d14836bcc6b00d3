"""Fits of estimators: each outermost one is a step, whatever the library. Without any, each prediction is a call."""

from __future__ import annotations

import copy
import functools
import sys
import threading
import time
import types

from ... import wire
from ..process import frames, guard
from ..process.guard import Guard
from ..process.replace import replace
from ..randomness import draws
from ..randomness.seeds import described
from ..training import clocks, digest
from ..training.framework import Framework, Steps
from ..training.steps import LastLoss, Training
from . import estimators
from .estimators import ArrayReader, Estimators, read

# Record the fits of estimators: each outermost ``fit`` is a step, and its weights are what the estimator learned.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..process.recorder import Recorder


_MOST_SEEDED = 20
"""The first fits whose seeds are recorded by line."""

_LIBRARIES = [name for name, framework in wire.FRAMEWORKS.items() if framework.fits]


class _Inside(threading.local):
    """Whether this thread is inside a fit."""

    now = False


inside = _Inside()


class FitTraining(Training):
    """The fits of one library, in one thread or task of a pool."""

    _reader: ArrayReader

    def __init__(
        self, framework: str, recorder: Recorder, reader: ArrayReader, *, main: Training | None = None
    ) -> None:
        super().__init__(framework, recorder, reader, main=main)
        self._observe, self._stepped = self._stepped, self._advance

    def forget(self) -> None:
        """Start over, as in a forked child."""
        super().forget()
        self.weights: Any = Estimators(self._reader)

    def _alone(self) -> bool:
        """Whether steps are fits: a scaler that is fitted before a training is no step of that training."""
        return all(isinstance(one, FitTraining) for one in self._recorder.trainings)

    def _advance(self, steps: int) -> None:
        if self._alone():
            self._observe(steps)

    def current_step(self, after_loss: bool) -> int:
        """Return the number of the current step, 0 if another framework counts the steps."""
        return self.steps + 1 if self._alone() else 0

    def begin(self, name: str, data: Any, learner: Any = None) -> None:
        """Record what a fit is called with, and the random generators. Seeds in its parameters are no data."""
        self.begins()
        self.outputs.updated()
        self.generators()
        if not self.wants("batch", "rng"):
            return
        seeds: list[tuple[str, Any]] = []
        parts = self._reader.parts(_inputs(data, seeds))
        if seeds and self.wants("rng"):
            self.event(self.steps + 1, "rng", digest.of_bytes(repr(seeds).encode()))
        if self.wants("rng"):
            self._seeded(name, [*seeds, *_own_seeds(learner)])
        if parts and self.wants("batch"):
            self.event(self.steps + 1, "batch", "%s %s" % (digest.of_parts(parts), name))

    def _seeded(self, name: str, seeds: list[tuple[str, Any]]) -> None:
        frame = frames.user_frame(sys._getframe().f_back) if seeds and self.steps < _MOST_SEEDED else None
        if frame is not None:
            file, line = frames.location(frame)
            for key, seed in seeds:
                kind, value = described((seed,), {})
                record = {"k": "source", "kind": kind, "what": "%s(%s)" % (name, key), "file": file, "line": line}
                self._recorder.sink.write({**record, "value": value})

    def end(self, name: str, result: Any) -> None:
        """Write a finished fit with what was learned."""
        arrays = read(result)
        parts = self._reader.parts(arrays)
        self.steps += 1
        value = _loss(result)
        self._final_loss = LastLoss(value)
        if self.wants("update"):
            self.event(self.steps, "update", "%s %s" % (digest.of_parts(parts), name), value)
        self.weights.hold(result, arrays, parts)
        self._stepped(self.steps)
        self.write()


def _own_seeds(learner: Any) -> list[tuple[str, int]]:
    """Return the seeds that an estimator was made with."""
    own = getattr(learner, "__dict__", {})
    return [(name, own[name]) for name in ("random_state", "random_seed", "seed") if type(own.get(name)) is int]


def _inputs(data: Any, seeds: list[tuple[str, Any]] | None = None) -> list[Any]:
    """Return what a method is called with, [] if it cannot be read, as an iterator, which must not be used up.

    It explains, and decides not. ``seeds`` is as of Learned.
    """
    try:
        return read(data, seeds)
    except Exception as error:
        guard.pass_on(error)
        return []


def _loss(result: Any) -> float | None:
    """Return the last loss that an estimator reports of itself."""
    last = getattr(result, "_final_estimator", None)  # of a pipeline
    for one in (result, last):
        value = vars(one).get("loss_") if hasattr(one, "__dict__") else None
        if value is None and hasattr(one, "__dict__"):
            scores = vars(one).get("train_score_")
            value = scores[-1] if scores is not None and len(scores) else None
        if isinstance(value, float):  # which a NumPy float64 is too
            return float(value)
    return None


class FitSteps(Steps):
    """The fits of one library in one thread."""

    training: FitTraining


class Library(Framework[FitSteps]):
    """A library whose fits are steps. It is one from its first fit on."""

    training_type = FitTraining

    def __init__(self, name: str, recorder: Recorder, unlock: Callable[[], None]) -> None:
        self.name, self._unlock = name, unlock
        super().__init__(recorder, ArrayReader())

    def steps(self, training: Training) -> FitSteps:
        """Return the steps of a thread that begins to fit."""
        return FitSteps(training)

    def forget(self, forked: bool) -> None:
        """Start over: another thread may hold the lock of all fits in the moment of a fork."""
        self._unlock()
        super().forget(forked)


class Fits:
    """Finds the outermost fits of a process, and the library that each belongs to."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._libraries: dict[str, Library] = {}
        self._unlock()

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def _library(self, name: str) -> Library:
        name = name if name in _LIBRARIES else "sklearn"
        with self._lock:
            if name not in self._libraries:
                self._libraries[name] = Library(name, self._recorder, self._unlock)
            return self._libraries[name]

    def training(self, library: str) -> FitTraining:
        """Return the training that the fits of a library in this thread belong to."""
        return self._library(library).kept.training

    def call(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        *,
        name: str,
        library: str,
        learner: Any = None,
        values: int | None = None,
    ) -> Any:
        """Call a function that fits, and record a step if this is an outermost fit.

        ``learner`` is what learns, None if it is what the function returns, of which the first ``values`` count.
        """
        recorded_elsewhere = learner is not None and estimators.recorded_elsewhere(learner)
        guarded = Guard(self._undigested, name)
        if learner is not None and not recorded_elsewhere:
            with guarded:
                estimators.remember(learner)
        if inside.now or recorded_elsewhere:
            return function(*args, **kwargs)
        data = (args if learner is None else args[1:], kwargs)
        inside.now = True
        try:
            with guarded, (training := self.training(library)).lock:
                training.begin(name, data, learner)
            began = time.perf_counter()
            result = function(*args, **kwargs)
            clocks.add(time.perf_counter() - began)
            with guarded, (training := self.training(library)).lock:
                training.end(name, (result if values is None else result[:values]) if learner is None else learner)
        finally:
            inside.now = False
        return result

    def predict(self, function: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> Any:
        """Call a method by which a model predicts, and record an outermost call as long as nothing was trained."""
        trained = inside.now or any([training.steps for training in self._recorder.trainings])
        if trained or estimators.recorded_elsewhere(model):
            return function(model, *args, **kwargs)
        kind = type(model)
        training = self._library(_library_of(kind)).training
        if not training.outputs.each:
            return function(model, *args, **kwargs)
        guarded = Guard(self._recorder.sink.trouble, "a prediction of %s" % kind.__name__)
        inside.now = True
        try:
            with guarded, training.lock:
                weights = functools.partial(read, model) if estimators.is_estimator(model) else list
                training.outputs.calling(model, weights, _inputs((args, kwargs)))
            result = function(model, *args, **kwargs)
            with guarded, training.lock:
                training.outputs.returned(read(result))
        finally:
            inside.now = False
        return result

    def _undigested(self, name: str, error: Exception) -> None:
        kind = "" if isinstance(error, estimators.UndigestedError) else type(error).__name__ + ": "
        self._recorder.sink.write({"k": "undigested", "what": name, "why": (kind + str(error))[:500]})

    def freed(self, owner: Any, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Read an estimator that is being freed, which may happen in the middle of anything; raise nothing.

        ``is_finalizing`` is not looked up, as the modules of an interpreter that ends are emptied.
        """
        if is_finalizing() or inside.now or not self._lock.acquire(blocking=False):
            return
        inside.now = True
        try:
            estimators.freed(owner)
        except BaseException as error:  # the interpreter would print it
            guard.postpone(error)
        finally:
            inside.now = False
            self._lock.release()


_fits: Fits | None = None


def of(recorder: Recorder) -> Fits:
    """Return the fits of this process, which all adapters share."""
    global _fits
    if _fits is None:
        _fits = Fits(recorder)
    return _fits


def within(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function whose fits belong to one in a different thread or process."""
    before, inside.now = inside.now, True
    try:
        return function(*args, **kwargs)
    finally:
        inside.now = before


# Replace methods and functions that fit, so that each outermost call is a step.


def _noting_draws(name: str, call: Callable[[], Any]) -> Any:
    """Call a function that fits, and note whether an outermost one draws from NumPy's generator without a seed."""
    numpy = draws.of_numpy()
    return call() if numpy is None or not numpy.on or inside.now else numpy.around(name, call)


class FitMethod:
    """Replaces a method that fits. It is pickled as the original: workers get the classes of a script by value.

    What learns is the object itself, or with ``returns`` what the method returns.
    """

    def __init__(self, function: Any, watched: Fits, *, returns: bool = False) -> None:
        self.__wrapped__, self._watched, self._returns = function, watched, returns
        self._function: Any = None
        self.__name__ = ""
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, attribute, getattr(function, attribute, None))

    def __call__(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """Fit, as the original method does."""
        kind = type(estimator)
        library, name = _library_of(kind), kind.__name__
        if self.__name__ != "__init__":  # which fits that made it
            name = "%s.%s" % (name, self.__name__.lstrip("_"))

        def call() -> Any:
            learner = None if self._returns else estimator
            return self._watched.call(
                self.__wrapped__, (estimator, *args), kwargs, name=name, library=library, learner=learner
            )

        return _noting_draws(name, call)

    def __get__(self, estimator: Any, kind: Any = None) -> Any:
        return types.MethodType(self, estimator) if estimator is not None else self._of_class()

    def _of_class(self) -> Any:
        """Return the method as one gets it from its class: scikit-learn routes metadata only to what is a function."""
        if self._function is None:

            def method(*args: Any, **kwargs: Any) -> Any:
                return self(*args, **kwargs)

            for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
                setattr(method, attribute, getattr(self.__wrapped__, attribute, None))
            method.__dict__.update(getattr(self.__wrapped__, "__dict__", {}), __wrapped__=self.__wrapped__)
            self._function = method
        return self._function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)  # such as __code__

    def __reduce__(self) -> Any:
        return copy.copy, (self.__wrapped__,)  # which returns a function itself

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class PredictMethod(FitMethod):
    """Replaces a method by which a fitted model predicts."""

    def __call__(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """Predict, as the original method does."""
        return self._watched.predict(self.__wrapped__, estimator, args, kwargs)


def _library_of(kind: type) -> str:
    """Return the library that a class, or the first of its bases that is of one, belongs to."""
    modules = [one.__module__.partition(".")[0] for one in kind.__mro__]
    return next((name for name in modules if name in _LIBRARIES), "")


def on_subclasses(base: Any, watch: Callable[[type], None], recorder: Recorder) -> None:
    """Call ``watch`` with each class that derives from ``base`` from now on."""

    def __init_subclass__(cls: Any, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        recorder.sink.guarded("fits of " + cls.__name__, lambda: watch(cls))

    hook: Any = __init_subclass__
    base.__init_subclass__ = classmethod(hook)


def hook_subclasses(base: Any, names: Iterable[str], recorder: Recorder) -> None:
    """Record each outermost call of these methods of all classes that derive from ``base``, now and later."""

    def watch(kind: Any) -> None:
        own = [name for name in names if callable(vars(kind).get(name))]
        hook_methods(kind, [name for name in own if not isinstance(vars(kind)[name], FitMethod)], recorder)
        for derived in kind.__subclasses__():
            watch(derived)

    for kind in base.__subclasses__():
        watch(kind)
    on_subclasses(base, watch, recorder)


def hook_methods(kind: type, names: Iterable[str], recorder: Recorder, *, returns: bool = False) -> None:
    """Record each outermost call of these methods of a class, whose instances learn; or what they return."""
    for name in names:
        setattr(kind, name, FitMethod(vars(kind)[name], of(recorder), returns=returns))


def hook_predictions(kind: type, names: Iterable[str], recorder: Recorder) -> None:
    """Record each outermost call of these methods of a class, of those that it has, as long as nothing is trained."""
    for name in names:
        if name in vars(kind):
            setattr(kind, name, PredictMethod(vars(kind)[name], of(recorder)))


def read_when_freed(kind: Any, watched: Fits) -> None:
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


def hook_functions(
    module: Any, names: Iterable[str], recorder: Recorder, values: Mapping[str, int] | None = None
) -> None:
    """Record each outermost call of these functions, which return what was learned, some in their first ``values``."""
    for name in names:
        hook = functools.partial(_hook_function, module, name, recorder, (values or {}).get(name))
        recorder.sink.guarded(name, hook)


def _hook_function(module: Any, name: str, recorder: Recorder, values: int | None) -> None:
    watched, library = of(recorder), module.__name__.partition(".")[0]
    label = "%s.%s" % (library, name)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return _noting_draws(
                label, lambda: watched.call(function, args, kwargs, name=label, library=library, values=values)
            )

        return call

    replace(module, name, make)
