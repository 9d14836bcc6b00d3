"""Storages of tensors, and the place of an operation in user code."""

from __future__ import annotations

import functools
import sys
import threading
import weakref

from ...process import frames, guard
from ...training.compilers import compiling, never_compile
from .reader import TorchReader

# Number the storages of torch's tensors, and digest the tensors, once for as long as their contents do not change.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


_SWEEP = 4096


def tensors_in(value: Any, tensor: type) -> Iterator[Any]:
    """Yield the tensors among the arguments or the results of an operation."""
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, tensor)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, tensor)


def is_whole(tensor: Any) -> bool:
    """Return whether a tensor covers all of its storage, or has none."""
    try:
        return bool(tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes())
    except (NotImplementedError, RuntimeError):
        return True


class Memory:
    """Numbers storages by first appearance, and digests tensors.

    A digest is reused until the storage is written to. Writes of torch are either recorded, or counted in the version
    of the tensor. Memory from outside torch, or shared between processes, may be written to by others, so it is
    digested each time.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._local = threading.local()
        self._weak_ref = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef
        self.forget()

    @property
    def reader(self) -> TorchReader:
        """The reader of this thread, whose digests need a buffer of their own."""
        reader: TorchReader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = TorchReader(self._torch)
        return reader

    def forget(self) -> None:
        """Start over, as in a forked child, whose memory may be shared with its parent."""
        self.lock = threading.RLock()
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._next = 0
        self._known: dict[int, dict[Any, tuple[int, str]]] = {}
        self.shared: set[int] = set()

    def number(self, tensor: Any, *, made: bool = False) -> int:
        """Return the number of a tensor's storage, or -1 if it has none. ``made``: the last operation created it."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # a sparse tensor, or a subclass that wraps others
            return -1
        with self.lock:
            # As long as the weak reference exists, the address is not reused.
            entry = self._numbers.get(storage._cdata)
            if entry is None:
                if self._next % _SWEEP == _SWEEP - 1:
                    self._sweep()
                entry = self._numbers[storage._cdata] = self._next, self._weak_ref(storage)
                self._next += 1
                if tensor.device.type == "cpu" and storage.is_shared():
                    self.shared.add(entry[0])
                elif made:
                    self._known[entry[0]] = {}
            return entry[0]

    def _sweep(self) -> None:
        gone = [address for address, (_, reference) in self._numbers.items() if reference.expired()]
        for address in gone:
            number, _ = self._numbers.pop(address)
            self._known.pop(number, None)
            self.shared.discard(number)

    def written(self, numbers: Sequence[int]) -> None:
        """Forget the digests of these storages, because they were written to."""
        for number in numbers:
            if number in self._known:
                self._known[number] = {}

    def digests(self, tensors: Sequence[Any], numbers: Sequence[int], *, ahead: int = 0) -> list[str]:
        """Return the digest of each tensor, given with the number of its storage.

        ``ahead`` is the amount by which torch will increase the versions at the end of the running operation.
        """
        lookups = [self._look_up(tensor, number) for tensor, number in zip(tensors, numbers)]
        missing = [index for index, (text, _) in enumerate(lookups) if not text]
        parts = self.reader.parts([tensors[index] for index in missing]) if missing else ()
        for index, (_, dtype, shape, words) in zip(missing, parts):
            text = "%s%s:%016x" % (dtype.removeprefix("torch."), list(shape), words)
            key, known = lookups[index][1], self._known.get(numbers[index])
            if known is not None and key is not None:
                known[key[:-1]] = key[-1] + ahead, text
            lookups[index] = text, key
        return [text for text, _ in lookups]

    def _look_up(self, tensor: Any, number: int) -> tuple[str, Any]:
        known = self._known.get(number)
        if known is None:
            return "", None
        try:
            key = (
                tensor.storage_offset(),
                tensor.shape,
                tensor.stride(),
                tensor.dtype,
                tensor.is_conj(),
                tensor._version,
            )
        except RuntimeError:  # a tensor in inference mode has no version
            return "", None
        version, text = known.get(key[:-1], (-1, ""))
        return (text if version == key[-1] else ""), key


# Find the line of user code and the module of an operation of torch, in a backward pass those of its forward.

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

    def location(self, frame: FrameType | None, node: Any) -> Place:
        """Return the place of the running operation. ``node`` is its backward node, None in a forward pass."""
        if node is None:
            made = self._next_node()
            location = self._here(frame)
            self._remember(made, location)
            return location
        own = self._inside_backward(frame)
        if own is not None:  # an autograd.Function in user code
            return (*frames.location(own), "")
        number = node._sequence_nr()
        thread = threading.get_ident()
        return self._made.get((thread, number)) or self._made.get((0, number)) or self._here(frame)

    def passed(self, frame: FrameType | None) -> None:
        """Remember the line of an operation that is not recorded, if it created a node."""
        made = self._next_node()
        if made > self._local.nodes:
            self._remember(made, self._here(frame))

    def _remember(self, made: int, location: Place) -> None:
        # A node gets its number before its operation runs, so the numbers since the last operation belong to this one.
        first, self._local.nodes = self._local.nodes, made
        thread = threading.get_ident()
        for number in range(max(first, made - 8), made):
            self._made[thread, number] = self._made[0, number] = location
        while len(self._made) > _MOST_FORWARDS:
            del self._made[next(iter(self._made))]

    def _here(self, frame: FrameType | None) -> Place:
        user_frame = frames.user_frame(frame)
        file, line = frames.location(user_frame) if user_frame is not None else ("", 0)
        return file, line, self._local.modules[-1] if self._local.modules else ""

    @staticmethod
    def _inside_backward(frame: FrameType | None) -> FrameType | None:
        while frame is not None and frame.f_code.co_name not in ("_engine_run_backward", "run_backward"):
            if frames.is_user_code(frames.file_of(frame)):
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
            guard.pass_on(error)
            return type(module).__name__
