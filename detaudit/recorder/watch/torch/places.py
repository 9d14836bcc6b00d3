"""Find the line of user code and the module of an operation of torch, in a backward pass those of its forward."""

from __future__ import annotations

import functools
import threading
import weakref

from ...adapters.torch.compiling import compiling, never_compile
from ...process import frames, handlers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    Place = tuple[str, int, str]
    """File, line, and the path of the module."""

_MOST_FORWARDS = 200_000


class _Local(threading.local):
    """The state of a thread: the modules being called, and the number of the next autograd node."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.outermost: Any = None
        self.nodes = 0


class TorchPlaces:
    """Follows calls of modules, and remembers which line created which node of the autograd graph."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._local = _Local()
        self._names: weakref.WeakKeyDictionary[Any, dict[int, str]] = weakref.WeakKeyDictionary()
        self._made: dict[tuple[int, int], Place] = {}
        self._next_node: Callable[[], int] = torch._C._autograd._get_sequence_nr

    def place(self, frame: FrameType | None, node: Any) -> Place:
        """Return the place of the running operation. ``node`` is its backward node, None in a forward pass."""
        if node is None:
            made = self._next_node()
            place = self._here(frame)
            self._remember(made, place)
            return place
        own = self._inside_backward(frame)
        if own is not None:  # an autograd.Function in user code
            return (*frames.place(own), "")
        number = node._sequence_nr()
        thread = threading.get_ident()
        return self._made.get((thread, number)) or self._made.get((0, number)) or self._here(frame)

    def passed(self, frame: FrameType | None) -> None:
        """Remember the line of an operation that is not recorded, if it created a node."""
        made = self._next_node()
        if made > self._local.nodes:
            self._remember(made, self._here(frame))

    def _remember(self, made: int, place: Place) -> None:
        # A node gets its number before its operation runs, so the numbers since the last operation belong to this one.
        first, self._local.nodes = self._local.nodes, made
        thread = threading.get_ident()
        for number in range(max(first, made - 8), made):
            self._made[thread, number] = self._made[0, number] = place
        while len(self._made) > _MOST_FORWARDS:
            del self._made[next(iter(self._made))]

    def _here(self, frame: FrameType | None) -> Place:
        found = frames.user_frame(frame)
        file, line = frames.place(found) if found is not None else ("", 0)
        return file, line, self._local.modules[-1] if self._local.modules else ""

    @staticmethod
    def _inside_backward(frame: FrameType | None) -> FrameType | None:
        while frame is not None and frame.f_code.co_name not in ("_engine_run_backward", "run_backward"):
            if frames.is_user_code(frame.f_code.co_filename):
                return frame
            frame = frame.f_back
        return None

    def follow_modules(self, observe: Callable[[str, Any, Any], None] | None = None) -> None:
        """Follow calls of modules from now on, and call ``observe(path, inputs, outputs)``, which must not raise."""
        module = self._torch.nn.Module
        call, is_compiling, local = module.__call__, compiling(self._torch), self._local

        @functools.wraps(call)
        def __call__(module_: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(module_, *args, **kwargs)
            path = self._path(module_)
            local.modules.append(path)
            try:
                result = call(module_, *args, **kwargs)
            finally:
                local.modules.pop()
                if not local.modules:
                    local.outermost = None
            if observe is not None:
                observe(path, (args, kwargs), result)
            return result

        never_compile(self._torch, __call__, callees=False)
        module.__call__ = __call__

    def _path(self, module: Any) -> str:
        """Return the path of a module in the outermost module being called, or the name of its class if not in it."""
        local = self._local
        if local.outermost is None:
            local.outermost = module
        try:
            names = self._names.get(local.outermost)
            if names is None or id(module) not in names:
                names = {id(child): name for name, child in local.outermost.named_modules()}
                self._names[local.outermost] = names
            return names.get(id(module)) or type(module).__name__
        except Exception as error:  # from __getattr__, __hash__ or __eq__ in user code
            handlers.pass_on(error)
            return type(module).__name__
