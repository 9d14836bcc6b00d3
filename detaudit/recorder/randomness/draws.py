"""Record the first line of user code that draws from an unseeded global generator."""

from __future__ import annotations

import os
import sys

from ..process import frames
from ..process.replace import replace
from ..training import generators
from . import seeds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ..process.recorder import Recorder
    from ..process.sink import Sink

_GENERATORS = {"random": lambda module: module._inst, "numpy.random": lambda module: module.mtrand._rand}
"""Module, and its generator, whose methods are the functions of the module."""

_NOT_DRAWN = ("seed", "getstate", "setstate", "get_state", "set_state")

_THROUGH = ("random", "numpy", "keras", "tf_keras", "tensorflow", "torchvision", "sklearn", "scipy", "pandas")
"""Libraries that draw data or weights for a script. Others may only draw a file name or a time to wait."""

_MOST_OBSERVED = 1000


class _Drawing:
    """Replaces a function of a global generator. It is pickled, compared and printed like the original."""

    autograph_info__: dict[str, Any] = {}  # the mark of TensorFlow's do_not_convert

    def __init__(self, function: Any, watched: _Generator) -> None:
        self.__wrapped__, self._watched = function, watched
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, attribute, getattr(function, attribute, None))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._watched.on:
            return self._watched.drawn(self.__wrapped__, sys._getframe(1), args, kwargs)
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


class _Generator:
    """Wraps the functions of one module until user code draws from the generator, or seeds it.

    Seeding is detected by comparing states, because a generator can be seeded without any function named seed.
    """

    def __init__(self, module: Any, name: str, sink: Sink) -> None:
        self._module, self.name, self._sink = module, name, sink
        self._replaced: dict[str, _Drawing] = {}
        self.on = False

    def watch(self) -> None:
        """Wrap the functions that draw. The present state of the generator counts as unseeded."""
        self.on, self._observed, self._state = True, 0, generators.state(self.name)
        generator = _GENERATORS[self.name](self._module)
        for name, function in list(vars(self._module).items()):
            is_its = getattr(function, "__self__", None) is generator and name not in _NOT_DRAWN
            if is_its and not isinstance(function, _Drawing):
                self._replaced[name] = _Drawing(function, self)
                setattr(self._module, name, self._replaced[name])

    def restore(self) -> None:
        """Restore the original functions."""
        self.on = False
        for name, ours in self._replaced.items():
            if vars(self._module).get(name) is ours:
                setattr(self._module, name, ours.__wrapped__)
        self._replaced.clear()

    def drawn(self, function: Callable[..., Any], frame: FrameType, args: Any, kwargs: Any) -> Any:
        """Call the original function, and check who called it."""
        self._sink.guarded("draw", lambda: self._observe(function.__name__, frame))
        try:
            return function(*args, **kwargs)
        finally:
            if self.on:
                self._sink.guarded("draw", lambda: self._keep(frame))

    def _observe(self, name: str, frame: FrameType) -> None:
        self._observed += 1
        if self._observed > _MOST_OBSERVED or generators.state(self.name) != self._state:
            self.restore()
            return
        found = frames.user_frame(frame, _THROUGH)
        if found is not None:
            self.restore()
            what = name if "." in name else f"{self.name}.{name}"
            seeds.write(self._sink, "unseeded", what, frames.place(found), self.name)

    def called(self, name: str, frame: FrameType) -> None:
        """Check who called a function that draws from this generator, although not by a function of the module."""
        if self.on:
            self._observe(name, frame)

    def around(self, what: str, call: Callable[[], Any]) -> Any:
        """Call a function, and record its line of user code if it drew from this generator while it was unseeded."""
        unseeded = self.on and generators.state(self.name) == self._state
        result = call()
        if unseeded and self.on and generators.state(self.name) != self._state:
            found = frames.user_frame(sys._getframe(1))
            self.restore()
            if found is not None:
                seeds.write(self._sink, "unseeded", what, frames.place(found), self.name)
        return result

    def _keep(self, frame: FrameType) -> None:
        if frames.is_imported(frame):
            generators.leave_out(self.name, self._state)
        self._state = generators.state(self.name)


_watched: list[_Generator] = []
_compiling = False


def of_numpy() -> _Generator | None:
    """Return the watched generator of ``numpy.random``, None if there is none."""
    return next((one for one in _watched if one.name == "numpy.random"), None)


def watch(module: Any, name: str, sink: Sink) -> _Generator:
    """Watch a global generator from the import of its module on. Must be called before a flag seeds it."""
    generator = _Generator(module, name, sink)
    if not _compiling:
        _watched.append(generator)
        generator.watch()
    return generator


def watch_python(random: Any, recorder: Recorder) -> None:
    """Watch the generator of ``random``, which Python seeds from entropy again in a forked child."""
    generator = watch(random, "random", recorder.sink)

    def forked() -> None:
        if not _compiling:
            recorder.sink.guarded("fork", generator.watch)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)  # runs after the hook of random itself


def watch_numpy(random: Any, recorder: Recorder) -> None:
    """Watch the generator of ``numpy.random``."""
    watch(random, "numpy.random", recorder.sink)


def restore(*_: Any) -> None:
    """Restore all functions for a compiler, which recognizes a function by the object in its module."""
    global _compiling
    _compiling = True
    for generator in _watched:
        generator.restore()


def restore_for_dynamo(eval_frame: Any, recorder: Recorder) -> None:
    """Restore all functions when torch compiles something, not at the import, which an optimizer causes too."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            recorder.sink.guarded("compile", restore)
            function(self, *args, **kwargs)

        return __init__

    replace(eval_frame.OptimizeContext, "__init__", make)
