"""Which memory torch's tensors stand for, and what is in it: digests that are worked out once for each content."""

from __future__ import annotations

import sys
import threading

from ...adapters.torch.reader import TensorReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_SWEEP = 4096


def tensors_in(value: Any, tensor: type) -> Iterator[Any]:
    """Yield the tensors among the arguments, or the results, of an operation."""
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, tensor)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, tensor)


def is_whole(tensor: Any) -> bool:
    """Whether a tensor is all of its storage, or has none."""
    try:
        return bool(tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes())
    except (NotImplementedError, RuntimeError):
        return True


class Memory:
    """Numbers storages by first appearance, and digests tensors.

    A digest is kept as long as nobody writes to the storage: every write that torch does is seen, or counted in the
    tensor's version. What came from outside torch, or is shared between processes, may be written by others and is
    digested each time.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._local = threading.local()
        self._weak_ref = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef
        self.forget()

    @property
    def reader(self) -> TensorReader:
        """The reader of this thread: its digests are worked out in a buffer of their own."""
        reader: TensorReader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = TensorReader(self._torch)
        return reader

    def forget(self) -> None:
        """Start anew, as in a forked child: its memory may be shared with its parent."""
        self.lock = threading.RLock()
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._next = 0
        self._known: dict[int, dict[Any, tuple[int, str]]] = {}
        self.shared: set[int] = set()

    def number(self, tensor: Any, *, made: bool = False) -> int:
        """Return the number of a tensor's storage, -1 where it has none; ``made`` by the operation that just ran."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse, or of a subclass that holds others
            return -1
        with self.lock:
            # The weak reference keeps the address from being used again as long as it is in here.
            found = self._numbers.get(storage._cdata)
            if found is None:
                if self._next % _SWEEP == _SWEEP - 1:
                    self._sweep()
                found = self._numbers[storage._cdata] = self._next, self._weak_ref(storage)
                self._next += 1
                if tensor.device.type == "cpu" and storage.is_shared():
                    self.shared.add(found[0])
                elif made:
                    self._known[found[0]] = {}
            return found[0]

    def _sweep(self) -> None:
        gone = [address for address, (_, reference) in self._numbers.items() if reference.expired()]
        for address in gone:
            number, _ = self._numbers.pop(address)
            self._known.pop(number, None)
            self.shared.discard(number)

    def written(self, numbers: Sequence[int]) -> None:
        """Forget what was in these storages."""
        for number in numbers:
            if number in self._known:
                self._known[number] = {}

    def digests(self, tensors: Sequence[Any], numbers: Sequence[int], *, ahead: int = 0) -> list[str]:
        """Return the digest of each tensor, in the storage of that number.

        ``ahead`` is how much higher the versions will be once the operation that ran is over.
        """
        found = [self._look_up(tensor, number) for tensor, number in zip(tensors, numbers)]
        missing = [place for place, (text, _) in enumerate(found) if not text]
        parts = self.reader.parts([tensors[place] for place in missing]) if missing else ()
        for place, (_, dtype, shape, words) in zip(missing, parts):
            text = "%s%s:%016x" % (dtype.removeprefix("torch."), list(shape), words)
            key, known = found[place][1], self._known.get(numbers[place])
            if known is not None and key is not None:
                known[key[:-1]] = key[-1] + ahead, text
            found[place] = text, key
        return [text for text, _ in found]

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
        except RuntimeError:  # a tensor of inference mode counts no versions
            return "", None
        version, text = known.get(key[:-1], (-1, ""))
        return (text if version == key[-1] else ""), key
