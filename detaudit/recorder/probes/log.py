"""The values of probes, each with its name and number, in a log of their own."""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Mapping

from ..training import digest

# Write the values that the probes of one process record, each with its name and number.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..process.recorder import Recorder


MOST = 250_000
"""Lines that one process writes at most, about 30 MB. After that, probes only return their argument."""

_LONGEST_NAME = 200
_LONGEST_VALUE = 80


class ProbeLog:
    """Numbers the values and the gradients of each name, from 1. Any thread may write."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        recorder.at_end(lambda: None, self.forget)
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self.lock = threading.RLock()
        self._counts: dict[tuple[str, bool], int] = {}
        self._reported: set[str] = set()
        self._written = 0

    @property
    def full(self) -> bool:
        """Whether the maximum number of lines was written."""
        return self._written >= MOST

    def note(self, name: str, digest: str, value: str | None, *, gradient: bool, after_loss: bool = False) -> None:
        """Write a value or a gradient with the current step; for ``after_loss``, see Training.current_step."""
        name = name[:_LONGEST_NAME]
        with self.lock:
            self._written += 1
            if self._written > MOST:
                return
            number = self._counts[name, gradient] = self._counts.get((name, gradient), 0) + 1
            self._recorder.sink.write(
                {
                    "k": "probe",
                    "name": name,
                    "n": number,
                    "step": self._recorder.current_step(after_loss),
                    "kind": "gradient" if gradient else "value",
                    "digest": digest,
                    "value": None if value is None else value[:_LONGEST_VALUE],
                }
            )
            if self.full:
                self.trouble("detaudit.monitor", RuntimeError(f"only the first {MOST} values were recorded"))

    def trouble(self, where: str, error: Exception) -> None:
        """Record a failure. For each error, only the first place is written, since there may be hundreds."""
        with self.lock:
            if str(error) not in self._reported:
                self._reported.add(str(error))
                self._recorder.sink.trouble(where, error)


# Digest values on the host: plain Python values, NumPy arrays, and other arrays that NumPy can read.


def digest_plain(value: Any) -> str | None:
    """Return the digest of None, a bool, a number, a string, bytes or an empty structure; None for anything else."""
    if value is None or isinstance(value, (bool, int)):
        data = repr(value).encode()
    elif isinstance(value, float):
        data = struct.pack("<d", value)
    elif isinstance(value, complex):
        data = struct.pack("<dd", value.real, value.imag)
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    elif isinstance(value, (list, tuple, Mapping)) and not len(value):
        data = b""
    else:
        return None
    return digest.of_bytes(type(value).__name__.encode() + b"|" + data)


def shown(value: Any) -> str:
    """Return a plain value as short text."""
    if isinstance(value, float):
        return float.__repr__(value)  # the repr of NumPy's floats includes their type
    return repr(value[:100] if isinstance(value, (str, bytes, bytearray)) else value)


class NumpyReader:
    """Digests arrays with NumPy. Not thread-safe."""

    def __init__(self) -> None:
        self._digest: digest.NumpyDigest | None = None

    def read(self, parts: Sequence[Any]) -> tuple[str, str | None]:
        """Return one digest of these arrays, and their value as text if it is a single number or string.

        Raises TypeError if NumPy cannot read one of them.
        """
        np: Any = sys.modules["numpy"]
        arrays = [np.asarray(part) for part in parts]
        self._digest = self._digest or digest.NumpyDigest(np)
        digests = [("", str(array.dtype), tuple(array.shape), self._words(self._digest, array)) for array in arrays]
        single = arrays[0].reshape(-1)[0] if len(arrays) == 1 and arrays[0].size == 1 else None
        return digest.of_parts(digests), None if single is None else _text(single)

    @staticmethod
    def _words(digester: digest.NumpyDigest, array: Any) -> int:
        if array.dtype.kind != "O":
            return digester.words(array)
        digests = [digest_plain(item) for item in array.reshape(-1).tolist()]  # such as strings of TensorFlow
        if None in digests:
            raise TypeError("an array of objects that are not numbers, strings or bytes")
        return digest.small("".join(filter(None, digests)).encode())


def _text(item: Any) -> str:
    if isinstance(item, (str, bytes)):
        return shown(item)
    try:
        return repr(item.item()) if item.dtype.kind in "biufc" else repr(float(item))
    except (AttributeError, TypeError, ValueError):  # such as a date or a record
        return str(item)
