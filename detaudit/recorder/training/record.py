"""Record the steps that a script reports through ``detaudit.record``."""

from __future__ import annotations

import operator
import sys

from .digest import FrameworkReader
from .steps import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..process.recorder import Recorder
    from . import digest


class ValueReader(FrameworkReader):
    """Reads numbers and arrays of any library through NumPy."""

    def __init__(self) -> None:
        self._digest: digest.NumpyDigest | None = None

    def array(self, value: Any) -> Any:
        """Return a number or an array as a NumPy array, with a wider dtype if NumPy lacks the original one.

        Raises TypeError for anything else.
        """
        np: Any = sys.modules["numpy"]
        if hasattr(value, "detach"):
            value = value.detach().to("cpu", copy=True)  # NumPy would mark the storage of the tensor itself
        try:
            array = np.asarray(value)
        except TypeError:
            if not hasattr(value, "float"):
                raise
            array = np.asarray(value.float())  # NumPy has no bfloat16; float32 holds its values exactly
        if array.dtype.kind in "OUS":
            raise TypeError(f"detaudit.record accepts numbers and arrays, not {type(value).__name__}")
        return array

    def _numpy_digest(self) -> digest.NumpyDigest:
        from . import digest

        self._digest = self._digest or digest.NumpyDigest(sys.modules["numpy"])
        return self._digest

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, digest) of a value."""
        array = self.array(tensor)
        return name, str(array.dtype), tuple(array.shape), self._numpy_digest().words(array)

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._numpy_digest().total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of an array, 0 for a plain number."""
        return int(getattr(tensor, "nbytes", 0))

    def device(self, tensor: Any) -> str:
        """Return the device of an array, ``cpu`` if it does not have that attribute."""
        return str(getattr(tensor, "device", "cpu"))

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array with one element, None for others."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiub" else None


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and arrays in nested dicts, lists and tuples."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield value


class _Script:
    def __init__(self, recorder: Recorder) -> None:
        self._sink = recorder.sink
        self._training = Training("script", recorder, ValueReader())
        self._misnumbered = False
        recorder.at_end(self._training.finish, self._training.forget)

    def record(self, step: Any, loss: Any, weights: Any) -> None:
        import importlib

        importlib.import_module("numpy")  # plain numbers are read through NumPy too
        with self._training.lock:
            if step is not None:
                self._number(operator.index(step))
            if loss is not None:
                self._training.loss(loss)
            tensors = list(leaves(weights))
            if tensors:
                self._training.step("script", tensors)
            else:
                self._training.unseen_step()
                self._training.write()

    def _number(self, step: int) -> None:
        last = self._training.steps
        if step > last:
            self._training.steps = step - 1
        elif not self._misnumbered:
            self._misnumbered = True
            counted = f"step {step} after step {last} was recorded as step {last + 1}"
            error = ValueError(f"{counted}; step numbers start at 1 and must increase (reported once)")
            self._sink.trouble("detaudit.record", error)


_recorder: Recorder | None = None
_script: _Script | None = None


def prepare(recorder: Recorder) -> None:
    """Make ``record`` write to the event log of this recorder."""
    global _recorder
    _recorder = recorder


def record(step: Any, loss: Any, weights: Any) -> None:
    """Record one step; see detaudit.record."""
    if _recorder is not None:
        _recorder.sink.guarded("detaudit.record", lambda: _record(step, loss, weights))


def _record(step: Any, loss: Any, weights: Any) -> None:
    global _script
    if _script is None and _recorder is not None:
        _script = _Script(_recorder)
    if _script is not None:
        _script.record(step, loss, weights)
