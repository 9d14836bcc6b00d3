"""Prepare the operations of TensorFlow to be repeated, forward and backward."""

from __future__ import annotations

import contextlib
import importlib
import os
import zlib

from ..parts import Parts, flat
from . import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any


class Case:
    """The only sample of an operation: its number is 0."""

    sample, size = 0, None

    def __init__(self, tf: Any, item: tuple[str, str], inputs: list[Any], call: Callable[..., Any]) -> None:
        self._tf, self._inputs, self._call = tf, inputs, call
        self.op, self.dtype = item
        self.inputs = parts(tf, inputs).digest()
        self.shapes = ", ".join("x".join(map(str, one.shape)) for one in inputs)

    def directions(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield what to repeat: the operation, and its gradient if it has one."""
        yield "forward", self._forward
        if (backward := self._backward()) is not None:
            yield "backward", backward

    def _forward(self) -> Any:
        self._tf.random.set_seed(0)
        return self._call(*self._inputs)

    def _backward(self) -> Callable[[], Any] | None:
        tf = self._tf
        sources = [one for one in self._inputs if one.dtype.is_floating]
        try:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(sources)
                result = self._forward()
            random = tf.random.stateless_normal(tf.shape(result), (1, 2))
            gradient = tf.cast(random, result.dtype)
            if all(one is None for one in tape.gradient(result, sources, gradient)):
                return None
        except Exception:  # there are operations without a gradient, and with several results
            return None
        return lambda: tape.gradient(result, sources, gradient)


class Scanned:
    """TensorFlow on one device. Its threads and its switch are those of the only phase of a process."""

    def __init__(self, tf: Any, device: str, phases: Sequence[Mapping[str, Any]]) -> None:
        for phase in phases[:1]:
            if phase["threads"]:
                tf.config.threading.set_intra_op_parallelism_threads(phase["threads"])
                tf.config.threading.set_inter_op_parallelism_threads(phase["threads"])
            if phase["switch"]:
                tf.random.set_seed(0)
                tf.config.experimental.enable_op_determinism()
        self._tf, self._np = tf, importlib.import_module("numpy")
        self._device = "/CPU:0" if device == "cpu" else "/GPU:0"
        self._rows = table.rows(tf)
        self.version: str = tf.__version__
        self.threads = len(os.sched_getaffinity(0))

    def items(self, dtypes: Sequence[str]) -> Iterator[list[str]]:
        """Yield each operation with each type; those that it does not support are skipped when they are repeated."""
        for name in self._rows:
            for dtype in dtypes:
                yield [name, dtype]

    def cases(self, op: str, dtype: str, only: list[int] | None, sizes: Mapping[str, Any]) -> Iterator[Case]:
        """Yield the sample of an operation."""
        if only is not None and 0 not in only:
            return
        specs, call = self._rows[op]
        random = self._np.random.default_rng(zlib.crc32(op.encode()))
        with self._tf.device(self._device):
            inputs = []
            for spec in specs:
                array = table.made(self._np, random, spec)
                kind = dtype if array.dtype == self._np.float64 else array.dtype
                inputs.append(self._tf.cast(self._tf.constant(array), kind))
            yield Case(self._tf, (op, dtype), inputs, call)

    def phase(self, threads: int, switch: bool) -> contextlib.AbstractContextManager[None]:
        """Do nothing: neither can be changed in a process."""
        return contextlib.nullcontext()

    def parts(self, result: Any) -> Parts:
        """Return the tensors in a result."""
        return parts(self._tf, result)


def start(device: str, phases: Sequence[Mapping[str, Any]]) -> Scanned:
    """Import TensorFlow. Raises what the import raises."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return Scanned(importlib.import_module("tensorflow"), device, phases)


def parts(tf: Any, result: Any) -> Parts:
    """Return the tensors in nested values."""
    entries: list[Any] = []
    for name, value in flat(result):
        if isinstance(value, tf.IndexedSlices):
            value = tf.convert_to_tensor(value)
        if hasattr(value, "numpy"):
            array = value.numpy()
            entries.append((name, str(array.dtype), tuple(array.shape), array.tobytes()))
        else:
            entries.append((name, "", (), repr(value).encode()))
    return Parts(entries)
