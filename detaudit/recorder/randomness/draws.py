"""The first line of the user's code that draws from a global generator which nobody has seeded."""

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
"""Module, and the generator in it whose methods are its functions."""

_NOT_DRAWN = ("seed", "getstate", "setstate", "get_state", "set_state")

_THROUGH = ("random", "numpy", "keras", "tf_keras", "tensorflow", "torchvision", "sklearn", "scipy", "pandas")
"""Libraries that draw what they make of data or weights. Others may only want the name of a file or a time to wait."""

_MOST_LOOKS = 1000


class _Drawing:
    """Stands for a function of a global generator, and is pickled, compared and shown as that function."""

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
    """Watches one module's functions until one is called by the user's code, or the generator was seeded.

    Seeding is seen by the state: there are more ways to seed than there are functions called so.
    """

    def __init__(self, module: Any, name: str, sink: Sink) -> None:
        self._module, self.name, self._sink = module, name, sink
        self._replaced: dict[str, _Drawing] = {}
        self.on = False

    def watch(self) -> None:
        """Put our own in place of what draws. As it stands now, nobody has seeded the generator."""
        self.on, self._looks, self._state = True, 0, generators.state(self.name)
        generator = _GENERATORS[self.name](self._module)
        for name, function in list(vars(self._module).items()):
            is_its = getattr(function, "__self__", None) is generator and name not in _NOT_DRAWN
            if is_its and not isinstance(function, _Drawing):
                self._replaced[name] = _Drawing(function, self)
                setattr(self._module, name, self._replaced[name])

    def leave(self) -> None:
        """Put back what stood there."""
        self.on = False
        for name, ours in self._replaced.items():
            if vars(self._module).get(name) is ours:
                setattr(self._module, name, ours.__wrapped__)
        self._replaced.clear()

    def drawn(self, function: Callable[..., Any], frame: FrameType, args: Any, kwargs: Any) -> Any:
        """Call what draws, and look at who calls it."""
        self._sink.guarded("draw", lambda: self._look(function.__name__, frame))
        try:
            return function(*args, **kwargs)
        finally:
            if self.on:
                self._sink.guarded("draw", self._keep)

    def _look(self, name: str, frame: FrameType) -> None:
        self._looks += 1
        if self._looks > _MOST_LOOKS or generators.state(self.name) != self._state:
            self.leave()
            return
        found = frames.users_frame(frame, _THROUGH)
        if found is not None:
            self.leave()
            seeds.note(self._sink, "unseeded", f"{self.name}.{name}", frames.place(found), self.name)

    def _keep(self) -> None:
        self._state = generators.state(self.name)


_watched: list[_Generator] = []
_compiling = False


def watch(module: Any, name: str, sink: Sink) -> _Generator:
    """Watch a global generator from the import of its module on, before a flag seeds it."""
    generator = _Generator(module, name, sink)
    if not _compiling:
        _watched.append(generator)
        generator.watch()
    return generator


def watch_python(random: Any, recorder: Recorder) -> None:
    """Watch the generator of ``random``, which takes a new seed from the system in a forked child."""
    generator = watch(random, "random", recorder.sink)

    def forked() -> None:
        if not _compiling:
            recorder.sink.guarded("fork", generator.watch)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)  # after the module's own


def watch_numpy(random: Any, recorder: Recorder) -> None:
    """Watch the generator of ``numpy.random``."""
    watch(random, "numpy.random", recorder.sink)


def leave(*_: Any) -> None:
    """Put back all functions: what a compiler knows of one hangs on the very object that stands in its module."""
    global _compiling
    _compiling = True
    for generator in _watched:
        generator.leave()


def leave_to_dynamo(eval_frame: Any, recorder: Recorder) -> None:
    """Leave when torch compiles something. An optimizer loads ``torch._dynamo.eval_frame`` in any case."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            recorder.sink.guarded("compile", leave)
            function(self, *args, **kwargs)

        return __init__

    replace(eval_frame.OptimizeContext, "__init__", make)
