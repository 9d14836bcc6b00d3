"""What a script tells of its own training through ``detaudit.record``."""

from __future__ import annotations

import operator
import sys

from .reader import Reader
from .steps import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..process.recorder import Recorder
    from . import digest


class ValueReader(Reader):
    """Reads numbers and arrays of any library through NumPy."""

    def __init__(self) -> None:
        self._digest: digest.NumpyDigest | None = None

    def array(self, value: Any) -> Any:
        """Return numbers and arrays as an array of NumPy's, widened where it has no such type.

        Raises TypeError for anything else.
        """
        np: Any = sys.modules["numpy"]
        value = value.detach().cpu() if hasattr(value, "detach") else value
        try:
            array = np.asarray(value)
        except TypeError:
            if not hasattr(value, "float"):
                raise
            array = np.asarray(value.float())  # torch's bfloat16, which NumPy does not know: widening is exact
        if array.dtype.kind in "OUS":
            raise TypeError(f"detaudit.record takes numbers and arrays, not {type(value).__name__}")
        return array

    def _numpy_digest(self) -> digest.NumpyDigest:
        from . import digest

        self._digest = self._digest or digest.NumpyDigest(sys.modules["numpy"])
        return self._digest

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, word digest)."""
        array = self.array(tensor)
        return name, str(array.dtype), tuple(array.shape), self._numpy_digest().words(array)

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._numpy_digest().total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the bytes of an array, 0 for a plain number."""
        return int(getattr(tensor, "nbytes", 0))

    def device(self, tensor: Any) -> str:
        """Return where an array lives, as far as it says so."""
        return str(getattr(tensor, "device", "cpu"))

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array of one element."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiub" else None


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and arrays in a nest of dicts, lists and tuples."""
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

        importlib.import_module("numpy")  # arrays come from somewhere; plain numbers need it too
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
            counted = f"step {step} came after step {last} and was taken for step {last + 1}"
            error = ValueError(f"{counted}; steps count from 1 and must grow (said once)")
            self._sink.trouble("detaudit.record", error)


_recorder: Recorder | None = None
_script: _Script | None = None


def prepare(recorder: Recorder) -> None:
    """Have ``record`` write into this recorder's trace."""
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
