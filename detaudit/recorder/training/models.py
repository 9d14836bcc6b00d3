"""The state of models: buffers, and all that they hold."""

from __future__ import annotations

import gc
import threading
import weakref
from abc import ABC, abstractmethod
from typing import NamedTuple

from ..process import guard as handlers
from ..process import threads
from . import digest

# Record the state of models: their buffers at each step, and all that they hold when they are freed or at the end.
#
# A class with ``__del__`` is freed with everything still in place, so nothing needs to be kept alive for this.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from .digest import FrameworkReader


class OwnTensor(NamedTuple):
    """A tensor that a model holds itself, not in one of its parts: its name, and whether it is a buffer."""

    name: str
    buffer: bool
    tensor: Any


class _Ran:
    """A part of a model that ran: its name, and the references to its parts with buffers if it ran by itself.

    It ``counts`` if the main thread ran it, or a thread that trains. How often and what a thread evaluates beside a
    training is chance. It is ``early`` if it ran before the first step ended, and not since.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = False
        self.early = True
        self.asked = 0
        self.with_buffers: list[weakref.ref[Any]] = []


class ModelStates(ABC):
    """The state of all instances of ``base``, the class of models and their parts in one framework.

    ``write`` writes the tensors of a model that is freed, and whether it ran early only; see wire.py.
    """

    CALLED_AT_EACH_STEP = True
    """Whether a model is called at each step in which it runs, not only when a graph is built."""

    def __init__(self, base: type[Any], reader: FrameworkReader, write: Callable[[Sequence[Any], bool], None]) -> None:
        self._base, self._reader, self._write = base, reader, write
        self._ran: dict[int, _Ran] = {}
        self._here: Any = threading.local()
        self._anywhere: dict[int, weakref.ref[Any]] = {}
        self._began = False
        self._over = False

    @abstractmethod
    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a model and all its parts at any depth, with their names in it; its own is empty."""

    @abstractmethod
    def own_tensors(self, part: Any) -> Iterator[OwnTensor]:
        """Yield the tensors of a part that have values."""

    def buffers(self, part: Any) -> list[Any]:
        """Return the buffers of a part. This is asked at each step, so a framework may have a faster way."""
        return [own.tensor for own in self.own_tensors(part) if own.buffer]

    def runs_unseen(self) -> bool:
        """Return whether a model may have run without being called, as in a graph."""
        return not self.CALLED_AT_EACH_STEP

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._here, self._anywhere, self._began, self._over = threading.local(), {}, False, False

    @property
    def _recent(self) -> dict[int, weakref.ref[Any]]:
        # Threads train models of their own, but several may build one graph.
        if not self.CALLED_AT_EACH_STEP:
            return self._anywhere
        recent: dict[int, weakref.ref[Any]] = self._here.__dict__.setdefault("recent", {})
        return recent

    def install(self, guard: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        """Record every model that ran when it is freed. ``guard`` makes a hook of a function."""
        finalize, freed = getattr(self._base, "__del__", None), guard(self._freed)

        def __del__(model: Any) -> None:
            if finalize is not None:
                finalize(model)
            if not self._over and id(model) in self._ran:
                try:
                    freed(model)
                except BaseException as error:  # Python would ignore it here
                    handlers.postpone(error)

        self._base.__del__ = __del__

    def ran(self, model: Any) -> None:
        """Note an outermost model that is about to run."""
        recent = self._recent
        if recent.get(id(model), lambda: None)() is not model:
            recent[id(model)] = weakref.ref(model)
            counts = not self.CALLED_AT_EACH_STEP or threads.in_main()
            known = self._ran.get(id(model))
            if known is None or (counts and not known.counts) or (known.early and self._began):
                self._note(model, counts)

    def _note(self, model: Any, counts: bool) -> None:
        for part, name in self._named(model):
            known = self._ran.setdefault(id(part), _Ran(name))
            known.name = max(known.name, name, key=lambda one: one.count("."))  # in the outermost model
            known.counts = known.counts or counts
            known.early = known.early and not self._began

    def recent(self) -> list[Any]:
        """Return the models that ran since the last step, or ever if that is not known."""
        return [model for reference in self._recent.values() if (model := reference()) is not None]

    def at_step(self) -> str | None:
        """Return the digest of the buffers of this thread's recent models, None if there are none."""
        models = self.recent()
        for model in models:
            if not self._ran[id(model)].counts:
                self._note(model, counts=True)
        self._began = True
        if self.CALLED_AT_EACH_STEP:
            self._recent.clear()
        groups = [buffers for model in models if (buffers := self._buffers(model))]
        tensors = {id(one): one for group in groups for one in group}  # a layer may be recent, and a part of a model
        parts = dict(zip(tensors, self._reader.parts([*tensors.values()])))
        digests = [
            digest.of_parts([(str(index), *parts[id(one)][1:]) for index, one in enumerate(group)]) for group in groups
        ]
        return digest.of_bytes("".join(sorted(digests)).encode()) if digests else None

    def names(self) -> dict[int, str]:
        """Return the names of the tensors of models that ran since the last step, by their id()."""
        parts = [named_part for model in self.recent() for named_part in self._named(model)]
        return {id(own.tensor): f"{name}.{own.name}" for part, name in parts for own in self.own_tensors(part)}

    def _buffers(self, model: Any) -> list[Any]:
        known = self._ran[id(model)]
        known.asked += 1
        if known.asked & (known.asked - 1) == 0:  # parts can be added later, but rarely are
            parts = [part for _, part in self.parts(model)]
            known.with_buffers = [weakref.ref(one) for one in parts if self.buffers(one)]
        parts = [part for reference in known.with_buffers if (part := reference()) is not None]
        return [buffer for part in parts for buffer in self.buffers(part)]

    def _freed(self, model: Any) -> None:
        known = self._ran.pop(id(model))
        self._recent.pop(id(model), None)
        if known.counts:
            self._write(self._records(model, known.name), known.early and not self.runs_unseen())

    def end(self) -> None:
        """Record no model that is freed from now on: the process ends."""
        self._over = True

    def at_end(self, of_task: bool = False) -> list[list[Any]]:
        """Return the tensors of all models that are still alive, whether they ran or not; see wire.py.

        At the end of a task of a pool, only what ran in it counts: the worker may keep models of earlier tasks.
        """
        self.end()
        alive = [one for one in gc.get_objects() if issubclass(type(one), self._base)]
        alive = [one for one in alive if id(one) in self._ran] if of_task else alive
        names = {id(one): self._ran[id(one)].name for one in alive if id(one) in self._ran}
        inner = {id(part) for one in alive for name, part in self.parts(one) if name}
        for one in alive:
            if id(one) not in inner:
                for part, name in self._named(one):
                    names.setdefault(id(part), name)
        records = [self._records(one, names.get(id(one), type(one).__name__)) for one in alive]
        if of_task:
            self._ran.clear()  # what is freed later was written already
        return [record for of_one in records for record in of_one]

    def _named(self, model: Any) -> Iterator[tuple[Any, str]]:
        prefix = type(model).__name__
        for name, part in self.parts(model):
            yield part, f"{prefix}.{name}" if name else prefix

    def _records(self, part: Any, name: str) -> list[list[Any]]:
        """Return ``[class, name, buffer, dtype, shape, digest]`` for each tensor of a part."""
        tensors = list(self.own_tensors(part))
        digests = self._reader.parts([own.tensor for own in tensors])
        return [
            [type(part).__name__, f"{name}.{own.name}", own.buffer, dtype, [int(n) for n in shape], "%016x" % words]
            for own, (_, dtype, shape, words) in zip(tensors, digests)
        ]


# What a training leaves behind beside the weights that it updates.

if TYPE_CHECKING:
    from typing import Any, Protocol

    class State(Protocol):
        """What a training leaves behind beside the weights that it updates."""

        def at_step(self) -> str | None:
            """Return a digest of it after a step, None if there is nothing to compare."""

        def names(self) -> dict[int, str]:
            """Return the names of the tensors of models that ran since the last step, by their id()."""

        def at_end(self, of_task: bool = False) -> list[list[Any]]:
            """Return its tensors as described for ``state`` in wire.py, at the end of a task only what ran in it."""

        def end(self) -> None:
            """Stop recording: the process ends, and nothing was trained."""

        def forget(self) -> None:
            """Start over, as in a forked child."""
