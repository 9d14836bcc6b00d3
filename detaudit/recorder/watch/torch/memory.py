"""Number the storages of torch's tensors, and digest the tensors, once for as long as their contents do not change."""

from __future__ import annotations

import sys
import threading

from ...adapters.torch.reader import TorchReader

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
        """Forget the digests of these storages, because they were written to."""
        for number in numbers:
            if number in self._known:
                self._known[number] = {}

    def digests(self, tensors: Sequence[Any], numbers: Sequence[int], *, ahead: int = 0) -> list[str]:
        """Return the digest of each tensor, given with the number of its storage.

        ``ahead`` is the amount by which torch will increase the versions at the end of the running operation.
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
        except RuntimeError:  # a tensor in inference mode has no version
            return "", None
        version, text = known.get(key[:-1], (-1, ""))
        return (text if version == key[-1] else ""), key
