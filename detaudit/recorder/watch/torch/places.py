"""Where in the user's model and code an operation of torch runs; for one of a backward pass, where its forward did."""

from __future__ import annotations

import functools
import threading
import weakref

from ...adapters.torch.compiling import compiling, never_compile
from ...process import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    Place = tuple[str, int, str]
    """File, line, and the path of the module."""

_MOST_FORWARDS = 200_000


class _Local(threading.local):
    """What this thread is in: the modules, and the number of the next node of its graphs."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.outermost: Any = None
        self.nodes = 0


class Where:
    """Follows calls of modules, and remembers which line made which node of the autograd graph."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._local = _Local()
        self._names: weakref.WeakKeyDictionary[Any, dict[int, str]] = weakref.WeakKeyDictionary()
        self._made: dict[tuple[int, int], Place] = {}
        self._next_node: Callable[[], int] = torch._C._autograd._get_sequence_nr

    def place(self, frame: FrameType | None, node: Any) -> Place:
        """Return where the operation under way belongs; ``node`` is that of the backward pass, None in a forward."""
        if node is None:
            made = self._next_node()
            place = self._here(frame)
            self._remember(made, place)
            return place
        own = self._inside_backward(frame)
        if own is not None:  # a Function of the user's own
            return (*frames.place(own), "")
        number = node._sequence_nr()
        thread = threading.get_ident()
        return self._made.get((thread, number)) or self._made.get((0, number)) or self._here(frame)

    def passed(self, frame: FrameType | None) -> None:
        """Remember the line of an operation that is not recorded itself, if it made a node."""
        made = self._next_node()
        if made > self._local.nodes:
            self._remember(made, self._here(frame))

    def _remember(self, made: int, place: Place) -> None:
        # A node gets its number before the operation itself is carried out: those since the last one are its own.
        first, self._local.nodes = self._local.nodes, made
        thread = threading.get_ident()
        for number in range(max(first, made - 8), made):
            self._made[thread, number] = self._made[0, number] = place
        while len(self._made) > _MOST_FORWARDS:
            del self._made[next(iter(self._made))]

    def _here(self, frame: FrameType | None) -> Place:
        found = frames.users_frame(frame)
        file, line = frames.place(found) if found is not None else ("", 0)
        return file, line, self._local.modules[-1] if self._local.modules else ""

    @staticmethod
    def _inside_backward(frame: FrameType | None) -> FrameType | None:
        while frame is not None and frame.f_code.co_name not in ("_engine_run_backward", "run_backward"):
            if frames.is_users(frame.f_code.co_filename):
                return frame
            frame = frame.f_back
        return None

    def follow_modules(self, observe: Callable[[str, Any, Any], None] | None = None) -> None:
        """Follow calls of modules from now on; ``observe(path, inputs, outputs)``, which never raises, after each."""
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
        """Return a module's path in the outermost one that is being called, else the name of its class."""
        local = self._local
        if local.outermost is None:
            local.outermost = module
        try:
            names = self._names.get(local.outermost)
            if names is None or id(module) not in names:
                names = {id(child): name for name, child in local.outermost.named_modules()}
                self._names[local.outermost] = names
            return names.get(id(module)) or type(module).__name__
        except Exception:  # the user's own __getattr__, __hash__ or __eq__
            return type(module).__name__
