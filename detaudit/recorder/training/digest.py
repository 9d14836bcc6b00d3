"""Digests and sums of tensors, and how a framework reads them."""

from __future__ import annotations

import hashlib
import itertools

from ... import wire

# Compute order-sensitive digests of raw bytes in exact integer arithmetic, with equal results in NumPy and torch.
#
# The bytes of a tensor above SMALL are read as 64-bit words. Each word is folded (``x ^ x >> 32``), multiplied by an
# odd key of its position, and summed modulo 2**64 in chunks of 16,384 words. The sums of the chunks are mixed by their
# index. Integer sums do not round, so their order does not matter. Without the fold, two flipped sign bits would
# cancel.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType
    from typing import Any, TypeAlias

    Part: TypeAlias = tuple[str, str, tuple[int, ...], int]
    """(name, dtype, shape, word digest) of a tensor."""

CHUNK = 16384
"""Words in a chunk: 128 KiB fit into the cache of a core."""

SMALL = 4096
"""Tensors of up to this number of bytes are copied to the CPU and digested with BLAKE2, which is faster for them."""

_MASK = (1 << 64) - 1
_GOLD = 0x9E3779B97F4A7C15
_CPU_ROWS, _GPU_ROWS = 2, 512
"""Chunks that torch folds at once. On a CPU, more do not fit into the cache of a core."""
_keys = b""


def _key_bytes() -> bytes:
    global _keys
    if not _keys:
        _keys = hashlib.shake_128(b"detaudit digest keys").digest(CHUNK * 8)
    return _keys


def _mix(x: int) -> int:
    # The finalizer of splitmix64 (Steele, Lea, Flood 2014).
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def _combine(sums: Iterable[int], tail: bytes, size: int) -> int:
    total = size
    for index, chunk in enumerate(sums, 1):
        total += _mix((chunk + index * _GOLD) & _MASK)
    return _mix((total + _mix(int.from_bytes(tail, "little") ^ _GOLD)) & _MASK)


def small(data: Any) -> int:
    """Return a 64-bit digest of a few bytes, given as any object with a contiguous buffer."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def of_bytes(data: bytes) -> str:
    """Return the digest of a short byte string, such as the state of a generator."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def of_parts(parts: Iterable[Part]) -> str:
    """Return the digest of named tensors, in this order."""
    return of_bytes("".join(["%s|%s|%s|%016x\n" % part for part in parts]).encode())


class NumpyDigest:
    """Digests and sums arrays with NumPy, chunk by chunk, without copying an array."""

    def __init__(self, np: ModuleType) -> None:
        self._np: Any = np
        self._keys = np.frombuffer(_key_bytes(), dtype="<u8") | np.uint64(1)
        self._buffers = [np.empty(CHUNK, dtype=np.uint64)]  # a signal handler or a destructor may need another one
        self._half = np.uint64(32)  # NumPy would convert a number of Python for each chunk

    def words(self, array: Any) -> int:
        """Return the 64-bit digest of an array's bytes in C order."""
        np = self._np
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if raw.size <= SMALL:
            return small(raw)
        full = raw.size - raw.size % 8
        return _combine(self._sums(raw[:full].view(np.uint64)), raw[full:].tobytes(), raw.size)

    def _sums(self, words: Any) -> Iterable[int]:
        np = self._np
        free = self._buffers.pop() if self._buffers else np.empty(CHUNK, dtype=np.uint64)
        for start in range(0, words.size, CHUNK):
            chunk = words[start : start + CHUNK]
            buffer = free[: chunk.size]
            np.right_shift(chunk, self._half, out=buffer)
            np.bitwise_xor(buffer, chunk, out=buffer)
            np.multiply(buffer, self._keys[: chunk.size], out=buffer)
            yield int(np.add.reduce(buffer))
        self._buffers.append(free)

    def total(self, array: Any) -> float:
        """Return the sum of all elements in float64, in a fixed order (the real part of complex ones)."""
        flat = self._np.ascontiguousarray(array).reshape(-1)
        if flat.dtype.kind not in "fiubc" and flat.dtype.kind != "V":
            return 0.0
        flat = flat.real if flat.dtype.kind == "c" else flat
        step = 4 * CHUNK
        with self._np.errstate(all="ignore"):  # a warning would appear on the stderr of the script
            parts = [self._np.add.reduce(flat[i : i + step].astype("f8")) for i in range(0, flat.size, step)]
        return wire.add_up([float(part) for part in parts])


class TorchDigest:
    """Computes the same digests in torch, for tensors on a device and for environments without NumPy."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch: Any = torch
        self._keys: dict[Any, Any] = {}
        self._buffers: list[Any] = []  # several, as in NumpyDigest

    def words(self, tensors: Sequence[Any]) -> list[int]:
        """Return the 64-bit digests of strided, contiguous tensors, with one transfer per device."""
        raws = [tensor.reshape(-1).view(self._torch.uint8) for tensor in tensors]
        fulls = [0 if raw.numel() <= SMALL else raw.numel() - raw.numel() % 8 for raw in raws]
        tails = self._fetch([raw[full:] for raw, full in zip(raws, fulls)])
        sums = iter(self._fetch([self._sums(raw[:full]) for raw, full in zip(raws, fulls) if full]))
        # int64 is signed; the value is the same modulo 2**64.
        return [
            _combine([s & _MASK for s in next(sums)], bytes(tail), raw.numel()) if full else small(bytes(tail))
            for raw, full, tail in zip(raws, fulls, tails)
        ]

    def _fetch(self, pieces: Sequence[Any]) -> list[list[int]]:
        """Return the elements of one-dimensional tensors."""
        on: dict[Any, list[int]] = {}
        for index, piece in enumerate(pieces):
            on.setdefault(piece.device, []).append(index)
        elements: list[list[int]] = [[] for _ in pieces]
        for places in on.values():
            together = iter(self._torch.cat([pieces[index] for index in places]).tolist())
            for index in places:
                elements[index] = list(itertools.islice(together, pieces[index].numel()))
        return elements

    def _sums(self, raw: Any) -> Any:
        if raw.storage_offset() % 8:  # a view as words must start at a multiple of 8 bytes
            raw = raw.clone()
        words = raw.view(self._torch.int64)
        keys = self._keys_on(words.device)
        on_cpu, full = words.device.type == "cpu", words.numel() // CHUNK
        blocks = [*words[: full * CHUNK].view(full, CHUNK).split(_CPU_ROWS if on_cpu else _GPU_ROWS)]
        if full * CHUNK < words.numel():
            blocks.append(words[full * CHUNK :].view(1, -1))
        if on_cpu:
            return self._sums_in_cache(blocks, keys)
        return self._torch.cat(
            [((block >> 32 & 0xFFFFFFFF) ^ block).mul_(keys[: block.shape[1]]).sum(1) for block in blocks]
        )

    def _sums_in_cache(self, blocks: Sequence[Any], keys: Any) -> Any:
        torch, sums = self._torch, []
        free = self._buffers.pop() if self._buffers else self._buffer()
        half, low = keys.new_tensor(32), keys.new_tensor(0xFFFFFFFF)  # torch would convert numbers for each block
        for block in blocks:
            folded = free if block.shape == free.shape else free.view(-1)[: block.numel()].view_as(block)
            torch.bitwise_right_shift(block, half, out=folded)
            folded.bitwise_and_(low).bitwise_xor_(block)
            sums.append(torch.mv(folded, keys[: block.shape[1]]))
        self._buffers.append(free)
        return torch.cat(sums)

    def _buffer(self) -> Any:
        with self._torch.inference_mode(False):  # what is made in this mode can be written to in no other
            return self._torch.empty(_CPU_ROWS, CHUNK, dtype=self._torch.int64, device="cpu")

    def _keys_on(self, device: Any) -> Any:
        if device not in self._keys:
            keys = self._torch.frombuffer(bytearray(_key_bytes()), dtype=self._torch.int64)
            self._keys[device] = (keys | 1).to(device)
        return self._keys[device]

    def total(self, tensor: Any) -> float:
        """Return the sum of all elements in float64, in chunks of a fixed size (the real part of complex ones)."""
        flat = tensor.reshape(-1)
        flat = flat.real if flat.is_complex() else flat
        step = 4 * CHUNK
        sums = [flat[i : i + step].double().sum() for i in range(0, flat.numel(), step)]
        return wire.add_up(self._torch.stack(sums).tolist()) if sums else 0.0


# Define how an adapter reads the tensors of its framework.


class FrameworkReader:
    """Reads the tensors of one framework. An adapter overrides all methods except ``parts`` and ``kept``.

    If ``may_read()``, it reads wherever the script is, in the context of its ``undisturbed()``.
    """

    def may_read(self) -> bool:
        """Return whether tensors can be read now, not only in the hooks of the framework."""
        return False

    def undisturbed(self) -> Any:
        """Return a context in which nothing that the script set affects, or observes, what is read."""
        raise NotImplementedError

    def parts(self, tensors: Sequence[Any]) -> list[Part]:
        """Return the part of each tensor in a digest, named by its index."""
        return [self.part(str(index), tensor) for index, tensor in enumerate(tensors)]

    def part(self, name: str, tensor: Any) -> Part:
        """Return (name, dtype, shape, digest) of a tensor."""
        raise NotImplementedError

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        raise NotImplementedError

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of a tensor."""
        raise NotImplementedError

    def kept(self, tensor: Any, copy: bool) -> Any:
        """Return what has the present value of a tensor later, None if that takes a copy, and none may be made."""
        return tensor  # immutable

    def device(self, tensor: Any) -> str:
        """Return the device of a tensor."""
        raise NotImplementedError

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a tensor with one element, None for others."""
        raise NotImplementedError
