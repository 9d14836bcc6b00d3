"""Record the first line of user code that draws from an unseeded global generator."""

from __future__ import annotations

import _thread
import os
import sys
import types

from ..process import frames, threads
from ..process.replace import replace, set_in_c
from ..training import generators
from .seeds import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from types import FrameType
    from typing import Any

    from ..process.log import Sink
    from ..process.recorder import Recorder

_OF_PYTHON = ("random", "getrandbits")
"""Methods of Python's generator by which all others draw."""

_OF_TORCH = (
    "bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm",
)  # fmt: skip
"""Functions of torch that draw. They are in C, and so is what draws for ``torch.nn.init``: methods of tensors."""

_OF_TENSORS = (
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_",
    "random_", "uniform_",
)  # fmt: skip

_NOT_DRAWN = ("seed", "getstate", "setstate", "get_state", "set_state")

_DRAW_DATA = (
    "random", "numpy", "keras", "tf_keras", "tensorflow", "torchvision", "torchaudio", "torch_geometric", "sklearn",
    "imblearn", "scipy", "pandas", "skimage", "albumentations", "audiomentations", "augly", "deap", "fastai", "flair",
    "igraph", "imgaug", "monai", "more_itertools", "neat", "networkx", "nlpaug", "sentence_transformers", "spacy",
    "textattack", "timm", "ultralytics", "umap",
)  # fmt: skip
"""Libraries that draw data or weights for a script by ``random``. Others may only draw a file name or a time to wait.
"""

_MOST_DRAWS = 1000
_MOST_OTHERS = 20_000
"""Draws from other generators than the global one, each of which takes a microsecond more as long as it is watched."""
_LIKE_OTHERS = 20
"""So many of them takes a state that another generator is given: it is compared with that of the global one."""

_MOST_SHARED = 20_000
"""Draws while there are threads, of which two may draw from one generator: each takes five microseconds more."""


class _Drawing:
    """Replaces a function of a global generator. It is pickled, compared and printed like the original."""

    autograph_info__: dict[str, Any] = {}  # the mark of TensorFlow's do_not_convert

    def __init__(self, function: Any, what: str, watched: _Generator | _Shared) -> None:
        self.__wrapped__, self._what, self._watched = function, what, watched
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, attribute, getattr(function, attribute, None))

    @frames.unseen_by_warnings
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._watched.on:
            return self._watched.drawn(self.__wrapped__, self._what, sys._getframe().f_back, args, kwargs)
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __deepcopy__(self, memo: Any) -> Any:
        return sys.modules["copy"].deepcopy(self.__wrapped__, memo)

    def __copy__(self) -> Any:
        return self.__wrapped__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__wrapped__.__reduce_ex__(protocol)

    def __eq__(self, other: object) -> bool:
        return bool(self.__wrapped__ == getattr(other, "__wrapped__", other))

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class _DrawingMethod:
    """Replaces a method of a class. It is pickled as the original one, which others than ours call."""

    def __init__(self, kind: Any, name: str, what: str, watched: _Generator) -> None:
        self.__wrapped__, self._kind, self._what, self._watched = getattr(kind, name), kind, what, watched
        for attribute in ("__name__", "__qualname__", "__doc__"):
            setattr(self, attribute, getattr(self.__wrapped__, attribute, None))

    @frames.unseen_by_warnings
    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._watched.observes(owner):
            return self.__wrapped__(owner, *args, **kwargs)
        return self._watched.drawn(self.__wrapped__, self._what, sys._getframe().f_back, (owner, *args), kwargs)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return getattr, (self._kind, self.__wrapped__.__name__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class _CopyingMethod(_DrawingMethod):
    """Replaces the method by which another generator is given a state, such as that of the global one."""

    @frames.unseen_by_warnings
    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        result, frame = self.__wrapped__(owner, *args, **kwargs), sys._getframe().f_back
        self._watched.sink.guarded("draw", lambda: self._watched.copied(owner, args, self._what, frame))
        return result


class _Generator:
    """Replaces what draws from one global generator until user code draws from it, or seeds it."""

    through: Container[str] | None = None
    """The libraries by which user code draws, if that is not all of them."""

    def __init__(self, module: Any, name: str, sink: Sink, functions: Sequence[str]) -> None:
        self._module, self.name, self.sink, self._functions = module, name, sink, functions
        self._replaced: dict[str, _Drawing] = {}
        self._of_thread = _thread._local()
        self._observed = self._others = 0
        self.on = False

    def watch(self) -> None:
        """Begin to watch. The present state of the generator counts as unseeded."""
        self.on, self._observed, self._unseeded = True, 0, self._mark()
        self._replace()

    def restore(self) -> None:
        """Restore the original functions, and watch no more."""
        self.on = False
        self._put_back()

    def _mark(self) -> Any:
        """Return what differs once it was seeded, with or without a function named seed."""
        raise NotImplementedError

    def _has_drawn(self, result: Any) -> bool:
        """Return whether a call with this result drew from it, while it was unseeded."""
        raise NotImplementedError

    def _replace(self) -> None:
        self._replaced.update(self.replaced(self))

    def _put_back(self) -> None:
        self.put_back(self._replaced)

    def replaced(self, watched: _Generator | _Shared) -> dict[str, _Drawing]:
        """Replace its functions, and return the replacements by their names."""
        replaced = {}
        for name in self._functions:
            function = vars(self._module)[name]
            if not isinstance(function, _Drawing):
                replaced[name] = _Drawing(function, f"{self.name}.{name}", watched)
                setattr(self._module, name, replaced[name])
        return replaced

    def put_back(self, replaced: dict[str, _Drawing]) -> None:
        """Restore the functions that were replaced, but for those that others replaced since."""
        for name, ours in list(replaced.items()):  # another thread may do the same
            if vars(self._module).get(name) is ours:
                setattr(self._module, name, ours.__wrapped__)
        replaced.clear()

    def copied(self, owner: Any, states: Sequence[Any], what: str, frame: FrameType | None) -> None:
        """Note who gave another generator the state of this one, if it is unseeded: so draws emcee."""

    def observes(self, owner: Any) -> bool:
        """Return whether a draw by a method of this object may be one from the global generator."""
        return self.on and not self._is_inside

    def _count_other(self, restore: Callable[[], None], times: int = 1) -> None:
        self._others += times
        if self._others - times < _MOST_OTHERS <= self._others:
            self.sink.guarded("draw", restore)

    @property
    def _is_inside(self) -> bool:
        return getattr(self._of_thread, "inside", False)

    @frames.unseen_by_warnings
    def drawn(self, function: Callable[..., Any], what: str, frame: FrameType | None, args: Any, kwargs: Any) -> Any:
        """Call the original function, and note who called it if that drew a number."""
        unseeded: list[bool] = []
        self.sink.guarded("draw", lambda: unseeded.append(self._is_unseeded()))
        result = self._within(function, *args, **kwargs)  # shuffle draws a number for each element
        if unseeded == [True]:  # even if another thread came meanwhile, to which it looks seeded now
            self.sink.guarded("draw", lambda: self._end(result, what, frame))
        return result

    def _is_unseeded(self) -> bool:
        """Return whether it is, before a draw; if it is not, or there were too many, nothing is watched any more."""
        self._observed += 1
        unseeded = self._observed <= _MOST_DRAWS and not self.changed()
        if not unseeded:
            self.restore()
        return unseeded

    def changed(self) -> bool:
        """Return whether it was seeded, or drawn from, since its state was last known to be unseeded."""
        return bool(self._mark() != self._unseeded)

    def _end(self, result: Any, what: str, frame: FrameType | None) -> None:
        if not self._has_drawn(result):
            return
        user_frame = frames.user_frame(frame, self.through)
        if user_frame is not None:
            self._write(frames.called(frame, user_frame) or what, user_frame)
        else:
            self._pass_over(frame)

    def _pass_over(self, frame: FrameType | None) -> None:
        """Go on after a draw that no user code is responsible for."""

    def _write(self, what: str, user_frame: FrameType) -> None:
        self.restore()
        write(self.sink, "unseeded", what, frames.location(user_frame), self.name)

    @frames.unseen_by_warnings
    def _within(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call what draws, or fits: what this thread draws in it is no draw of its own."""
        before, self._of_thread.inside = self._is_inside, True
        try:
            return call(*args, **kwargs)
        finally:
            self._of_thread.inside = before


class _OfModule(_Generator):
    """A generator whose methods are the functions of a module.

    Its state tells whether it was seeded: nothing else draws from it than what is replaced.
    """

    def __init__(self, module: Any, name: str, sink: Sink, generator: Any) -> None:
        its = {name for name, one in vars(module).items() if getattr(one, "__self__", None) is generator}
        super().__init__(module, name, sink, sorted(its.difference(_NOT_DRAWN)))
        self._generator = generator

    def _mark(self) -> Any:
        return generators.state(self.name)

    def _has_drawn(self, result: Any) -> bool:
        return self.changed()

    def _pass_over(self, frame: FrameType | None) -> None:
        if frames.is_imported(frame):
            generators.leave_out(self.name, self._unseeded)
        self._unseeded = self._mark()


class _OfPython(_OfModule):
    through = _DRAW_DATA

    def __init__(self, random: Any, name: str, sink: Sink) -> None:
        super().__init__(random, name, sink, random._inst)

    def _replace(self) -> None:
        super()._replace()
        generator = self._generator
        for name in _OF_PYTHON:  # as libraries draw that get the generator itself
            method = _DrawingMethod(type(generator), name, f"{self.name}.{name}", self)
            setattr(generator, name, types.MethodType(method, generator))

    def _put_back(self) -> None:
        super()._put_back()
        for name in _OF_PYTHON:
            vars(self._generator).pop(name, None)


class _OfNumpy(_OfModule):
    def __init__(self, random: Any, name: str, sink: Sink) -> None:
        super().__init__(random, name, sink, random.mtrand._rand)
        self._methods: dict[str, Any] = {}

    def _replace(self) -> None:
        super()._replace()
        kind = type(self._generator)
        methods = {  # as libraries draw that get the generator itself by check_random_state
            name: method
            for name, method in vars(kind).items()
            if callable(method) and name[0] != "_" and name not in (*_NOT_DRAWN, *self._methods)
        }
        replaced: dict[str, _DrawingMethod] = {
            name: _DrawingMethod(kind, name, f"{self.name}.{name}", self) for name in methods
        }
        if "set_state" not in self._methods:
            methods["set_state"] = vars(kind)["set_state"]
            replaced["set_state"] = _CopyingMethod(kind, "set_state", f"{self.name}.get_state", self)
        set_in_c(kind, **replaced)
        self._methods.update(methods)

    def _put_back(self) -> None:
        super()._put_back()
        self._restore_methods()

    def _restore_methods(self) -> None:
        methods, self._methods = self._methods, {}
        if methods:
            set_in_c(type(self._generator), **methods)

    def observes(self, owner: Any) -> bool:
        """Return whether it is this generator, and not too many others draw."""
        if owner is self._generator:
            return super().observes(owner)
        self._count_other(self._restore_methods)
        return False

    def copied(self, owner: Any, states: Sequence[Any], what: str, frame: FrameType | None) -> None:
        if not self.on or self._is_inside or owner is self._generator or self.changed():
            return
        own, user_frame = self._generator.get_state(), frames.user_frame(frame)
        same = any([type(one) is tuple and one[2:3] == own[2:3] and (one[1] == own[1]).all() for one in states])
        if same and user_frame is not None:
            self._write(frames.called(frame, user_frame) or what, user_frame)
        self._count_other(self._restore_methods, _LIKE_OTHERS)

    def around(self, what: str, call: Callable[[], Any]) -> Any:
        """Call what fits, and record its line of user code if it drew from this generator while it was unseeded."""
        unseeded = self.on and not self.changed()
        result = self._within(call)
        if unseeded and self.on and self._has_drawn(result):
            user_frame = frames.user_frame(sys._getframe().f_back)
            if user_frame is None:
                self.restore()
            else:
                self._write(what, user_frame)
        return result


class _OfTorch(_Generator):
    """The generator of torch for the CPU. Other operations draw from it too, such as dropout, and are not replaced."""

    def __init__(self, torch: Any, name: str, sink: Sink) -> None:
        super().__init__(torch, name, sink, [function for function in _OF_TORCH if function in vars(torch)])

    def _mark(self) -> Any:
        return self._module.default_generator.initial_seed()  # to read the state makes a tensor, in any mode of torch

    @frames.unseen_by_warnings
    def drawn(self, function: Callable[..., Any], what: str, frame: FrameType | None, args: Any, kwargs: Any) -> Any:
        """Call the original function, and note who called it if that drew a number from no generator of its own."""
        if kwargs.get("generator") is not None:
            self._count_other(self.restore)
            return function(*args, **kwargs)
        return super().drawn(function, what, frame, args, kwargs)

    def _has_drawn(self, result: Any) -> bool:
        torch = self._module
        with torch._C.DisableTorchFunction():
            return type(result) in (torch.Tensor, torch.nn.Parameter) and result.device.type == "cpu"

    def _replace(self) -> None:
        super()._replace()
        tensor = self._module.Tensor
        for name in _OF_TENSORS:
            setattr(tensor, name, _DrawingMethod(tensor, name, f"torch.Tensor.{name}", self))

    def _put_back(self) -> None:
        super()._put_back()
        for name in _OF_TENSORS:
            if isinstance(vars(self._module.Tensor).get(name), _DrawingMethod):
                delattr(self._module.Tensor, name)  # the original one is that of its base class

    def _find_builtin(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a replacement for how TorchScript finds an operation by the identity of a function."""

        def _find_builtin(fn: Any) -> Any:
            replaced = [*self._replaced.items()]
            for name, ours in replaced:
                setattr(self._module, name, ours.__wrapped__)
            try:
                return function(fn.__wrapped__ if isinstance(fn, _Drawing) else fn)
            finally:
                for name, ours in replaced if self.on else ():
                    setattr(self._module, name, ours)

        return _find_builtin


# Which numbers a thread draws from a seeded generator depends on timing if another thread draws from it too.


class _Shared:
    """Replaces the functions of a global generator that user code may call in several threads, once it is seeded.

    What other threads drew counts as long as they are alive. What the main thread drew may precede them, so it counts
    only if it draws after them.
    """

    def __init__(self, generator: _OfModule) -> None:
        self._generator, self.on = generator, False
        self._replaced: dict[str, _Drawing] = {}
        self._threads: list[Any] = []
        self._draws = 0

    def watch(self) -> None:
        """Begin to watch, unless it is watched for draws without a seed."""
        if self.on or self._draws >= _MOST_SHARED:
            return
        if self._generator.on:
            if not self._generator.changed():
                return
            self._generator.restore()
        self.on = True
        self._replaced.update(self._generator.replaced(self))  # another thread may do the same

    def restore(self) -> None:
        """Restore the original functions."""
        self.on = False
        self._generator.put_back(self._replaced)

    @frames.unseen_by_warnings
    def drawn(self, function: Callable[..., Any], what: str, frame: FrameType | None, args: Any, kwargs: Any) -> Any:
        """Call the original function, and note who called it if another thread draws too."""
        self._generator.sink.guarded("draw", lambda: self._note(what, frame))
        return function(*args, **kwargs)

    def _note(self, what: str, frame: FrameType | None) -> None:
        thread = threads.running()
        self._draws += 1
        if self._draws >= _MOST_SHARED:
            self.restore()
        if thread is None:  # of a framework, whose operations are recorded
            return
        if not any([one is not thread and one.is_alive() for one in self._threads]):
            if not threads.in_main():
                self._threads = [one for one in self._threads if one.is_alive() and one is not thread] + [thread]
            return
        user_frame = frames.user_frame(frame, self._generator.through)
        if user_frame is not None:
            self.restore()
            self._draws = _MOST_SHARED
            what = frames.called(frame, user_frame) or what
            write(self._generator.sink, "shared-generator", what, frames.location(user_frame), self._generator.name)


_KINDS: dict[str, Callable[[Any, str, Sink], _Generator]] = {
    "random": _OfPython,
    "numpy.random": _OfNumpy,
    "torch": _OfTorch,
}
_watched: list[_Generator] = []
_shared: list[_Shared] = []
_compiling = False


def of_numpy() -> _OfNumpy | None:
    """Return the watched generator of ``numpy.random``, None if there is none."""
    return next((one for one in _watched if isinstance(one, _OfNumpy)), None)


def watch_draws(module: Any, name: str, sink: Sink) -> Any:
    """Watch a global generator from the import of its module on. Must be called before a flag seeds it."""
    generator = _KINDS[name](module, name, sink)
    if not _compiling:
        _watched.append(generator)
        generator.watch()
        if isinstance(generator, _OfModule):
            _shared.append(_Shared(generator))
    return generator


def watch_python(random: Any, recorder: Recorder) -> None:
    """Watch the generator of ``random``, which Python seeds from entropy again in a forked child."""
    generator = watch_draws(random, "random", recorder.sink)

    def forked() -> None:
        if not _compiling:
            recorder.sink.guarded("fork", generator.watch)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)  # runs after the hook of random itself


def watch_numpy(random: Any, recorder: Recorder) -> None:
    """Watch the generator of ``numpy.random``."""
    watch_draws(random, "numpy.random", recorder.sink)


def watch_torch(torch: Any, recorder: Recorder) -> None:
    """Watch the generator of torch."""
    builtins = getattr(torch.jit, "_builtins", None)
    if hasattr(builtins, "_find_builtin"):  # else TorchScript of this version might not find what is replaced
        generator = watch_draws(torch, "torch", recorder.sink)
        replace(builtins, "_find_builtin", generator._find_builtin)


def restore() -> None:
    """Restore all functions for a compiler, which recognizes a function by the object in its module."""
    global _compiling
    _compiling = True
    for generator in _watched:
        generator.restore()
    for shared in _shared:
        shared.restore()


def watch_threads(threading: Any, recorder: Recorder) -> None:
    """Watch which threads draw, from the start of a second thread on."""

    def begin() -> None:
        for shared in () if _compiling else _shared:
            shared.watch()

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def start(self: Any) -> Any:
            recorder.sink.guarded("thread", begin)
            return function(self)

        return start

    replace(threading.Thread, "start", make)


def restore_for_dynamo(convert_frame: Any, recorder: Recorder) -> None:
    """Restore all functions when torch compiles a frame, not where it is told to, as libraries do while imported."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder.sink.guarded("compile", restore)
            return function(self, *args, **kwargs)

        return __call__

    if hasattr(convert_frame, "CatchErrorsWrapper"):  # what a compiled function calls first
        replace(convert_frame.CatchErrorsWrapper, "__call__", make)
    else:
        recorder.sink.guarded("compile", restore)
