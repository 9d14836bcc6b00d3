"""Watches TensorFlow, and Keras on it: every GradientTape.gradient, eager or inside a tf.function.

Inside a graph, the loss is written to a ring that the recorder owns, by operations that also run under XLA;
it is read back when the outermost tf.function returns. TensorFlow draws a random operation's seed from a
counter of its own (framework/random_seed.py), so the added operations shift no random stream.
"""

from __future__ import annotations

import functools
import importlib
import re
import threading
import weakref

from .. import digest, rng
from ..reader import Reader
from ..training import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..process import Recorder

RING = 1024
"""Losses that one call of a tf.function can leave behind before the oldest are overwritten."""


class VariableReader(Reader):
    """Reads variables and eager tensors through NumPy."""

    def __init__(self) -> None:
        self._np: Any = importlib.import_module("numpy")  # TensorFlow needs it: it is there
        self._digest = digest.NumpyDigest(self._np)

    def array(self, value: Any) -> Any:
        """Return the value of a variable, an eager tensor or a NumPy scalar as an array."""
        return self._np.asarray(value.numpy() if hasattr(value, "numpy") else value)

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, word digest)."""
        array = self.array(tensor)
        return name, str(array.dtype), tuple(array.shape), self._digest.words(array)

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._digest.total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the bytes of a variable's elements."""
        bits = re.search(r"\d+", str(tensor.dtype))  # float32, <dtype: 'bfloat16'>; NumPy does not know them all
        return int(self._np.prod(tuple(tensor.shape))) * (int(bits.group()) // 8 if bits else 1)

    def device(self, tensor: Any) -> str:
        """Return where a variable lives, such as ``GPU:0``."""
        device = str(getattr(getattr(tensor, "value", tensor), "device", "") or getattr(tensor, "device", ""))
        return device.rpartition("device:")[2] or "unknown"

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array of one element."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiuV" else None


class LossRing:
    """The last losses computed inside graphs, in variables that belong to the recorder."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._ring: Any = None
        self._count: Any = None
        self._seen = 0

    def write(self, loss: Any, init_scope: Any) -> None:
        """Add operations to the graph under construction that store ``loss`` whenever it runs."""
        tf = self._tf
        with init_scope():
            if self._ring is None:
                self._ring = tf.Variable(tf.zeros([RING], tf.float64), trainable=False)
                self._count = tf.Variable(tf.zeros([], tf.int64), trainable=False)
        loss = tf.cast(loss, tf.float64)
        loss = loss if loss.shape.rank == 0 else tf.reduce_sum(loss)
        place = tf.cast((self._count.assign_add(1) - 1) % RING, tf.int32)
        tf.raw_ops.ResourceScatterUpdate(resource=self._ring.handle, indices=place, updates=loss)

    def new(self) -> tuple[int, list[Any]]:
        """Return how many losses came since the last call, and those of them that the ring still holds."""
        if self._count is None:
            return 0, []
        count = int(self._count.numpy())
        fresh = count - self._seen
        self._seen = count
        if fresh <= 0:
            return 0, []
        values = self._ring.numpy()
        return fresh, [values[i % RING] for i in range(count - min(fresh, RING), count)]


class TensorFlowWatcher:
    """The hooks, and how what they see becomes steps.

    A step is one gradient; the weights are the variables it was taken with respect to. In eager code they
    are read when the next gradient is asked for, in a tf.function when the outermost one returns.
    """

    def __init__(self, tf: Any, recorder: Recorder) -> None:
        self._tf = tf
        self._sink = recorder.sink
        self._ops = importlib.import_module("tensorflow.python.framework.ops")
        self._context = importlib.import_module("tensorflow.python.eager.context")
        rng.watch("tensorflow", self._generator_state)
        self._training = Training("tensorflow", recorder, VariableReader(), rng.state_digest)
        self._ring = LossRing(tf)
        self._inside = threading.local()
        self._noted: list[Any] = []
        self._of_function: weakref.WeakKeyDictionary[Any, tuple[int, list[Any]]] = weakref.WeakKeyDictionary()
        self._latest: tuple[int, list[Any]] = (0, [])
        self._eager: list[Any] = []
        self._started: dict[int, Any] = {}
        self._sets = 0
        recorder.at_end(self._finish, self._forget)

    def install(self) -> None:
        """Put the hooks in place."""
        backprop = importlib.import_module("tensorflow.python.eager.backprop")
        functions = "tensorflow.python.eager.polymorphic_function."
        self._watch_gradients(backprop.GradientTape)
        self._watch_calls(importlib.import_module(functions + "polymorphic_function").Function)
        self._watch_calls(importlib.import_module(functions + "concrete_function").ConcreteFunction)

    def _watch_gradients(self, tape: Any) -> None:
        compute = tape.gradient

        @functools.wraps(compute)
        def gradient(tape_: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            gradients = compute(tape_, target, sources, *args, **kwargs)
            self._sink.guarded("gradient", lambda: self._note(target, sources))
            return gradients

        tape.gradient = gradient

    def _watch_calls(self, function: Any) -> None:
        call = function.__call__

        @functools.wraps(call)
        def __call__(function_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "function", False) or not self._context.executing_eagerly():
                return call(function_, *args, **kwargs)
            self._inside.function = True
            try:
                self._sink.guarded("eager step", self._end_eager_step)
                return call(function_, *args, **kwargs)
            finally:
                self._inside.function = False
                self._sink.guarded("function", lambda: self._after_call(function_))

        function.__call__ = __call__

    def _note(self, target: Any, sources: Any) -> None:
        flatten = self._tf.nest.flatten
        variables = [source for source in flatten(sources) if hasattr(source, "assign") and hasattr(source, "shape")]
        losses = [loss for loss in flatten(target) if loss is not None and hasattr(loss, "dtype")]
        if not variables or not losses or not losses[0].dtype.is_floating:
            return  # such as a gradient penalty with respect to inputs
        with self._training.lock:
            if isinstance(losses[0], self._ops.EagerTensor):
                self._end_eager_step()
                self._initial(variables)
                self._eager = variables
                for loss in losses:
                    self._training.loss(loss)
            else:
                with self._ops.init_scope():  # tracing comes before the first execution
                    self._initial(variables)
                self._noted += [v for v in variables if not any(v is noted for noted in self._noted)]
                for loss in losses:
                    self._ring.write(loss, self._ops.init_scope)

    def _initial(self, variables: list[Any]) -> None:
        new = [v for v in variables if self._started.get(id(v), lambda: None)() is not v]
        self._started.update([(id(v), weakref.ref(v)) for v in new])
        if new:
            self._training.initial(new)

    def _end_eager_step(self) -> None:
        with self._training.lock:
            if self._eager and self._training.pending:
                self._training.step(("eager", *[id(v) for v in self._eager]), self._eager)

    def _after_call(self, function: Any) -> None:
        with self._training.lock:
            self._keep_noted(function)
            self._end_graph_steps(self._of_function.get(function, self._latest), function)

    def _end_graph_steps(self, weights: tuple[int, list[Any]], owner: Any) -> None:
        fresh, losses = self._ring.new()
        if not fresh:
            return
        if fresh > len(losses):
            lost = fresh - len(losses)
            self._sink.write({"k": "trouble", "where": "losses", "error": f"{lost} losses of one call were not kept"})
            self._training.steps += lost
        for loss in losses[:-1]:
            self._training.loss(loss)
            self._training.unseen_step()
        self._training.loss(losses[-1])
        self._training.step(*weights, owner)

    def _keep_noted(self, function: Any) -> None:
        noted, self._noted = self._noted, []
        known = self._of_function.get(function, (0, []))[1]
        if noted and (len(noted) != len(known) or any(a is not b for a, b in zip(noted, known))):
            self._sets += 1
            self._of_function[function] = self._latest = (self._sets, noted)

    def _generator_state(self) -> bytes:
        # Eager operations take their seeds from this generator, once tf.random.set_seed was called.
        generator = getattr(self._context.context(), "_rng", None)
        return repr(hash(generator.getstate()[1])).encode() if generator is not None else b""

    def _finish(self) -> None:
        with self._training.lock, self._ops.init_scope():
            self._end_eager_step()
            self._end_graph_steps(self._latest, None)
            self._training.finish()

    def _forget(self) -> None:
        self._training.forget()
        self._ring, self._noted, self._eager = LossRing(self._tf), [], []
        self._of_function, self._latest = weakref.WeakKeyDictionary(), (0, [])


def install(tf: ModuleType, recorder: Recorder) -> None:
    """Watch this TensorFlow from now on."""
    recorder.sink.write({"k": "framework", "name": "tensorflow", "version": str(tf.__version__)})
    TensorFlowWatcher(tf, recorder).install()
