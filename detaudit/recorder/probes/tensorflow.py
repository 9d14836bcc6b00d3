"""Record TensorFlow tensors, eager ones or whenever a graph runs, and their gradients.

Inside a tf.function, this adds a NumPy function for each tensor. TensorFlow derives the seeds of random operations from
a counter of its own (framework/random_seed.py), so added operations shift no random stream. XLA does not support NumPy
functions: there, nothing is recorded, and a failure is reported.
"""

from __future__ import annotations

import importlib

from .log import NumpyReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .log import ProbeLog


def takes(tf: Any, value: Any) -> bool:
    """Return whether a value is a tensor of TensorFlow."""
    return hasattr(tf, "is_tensor") and bool(tf.is_tensor(value))


class Probes:
    """Records tensors, and returns identities of them that record their gradients."""

    def __init__(self, tf: Any, log: ProbeLog) -> None:
        self._tf, self._log = tf, log
        self._reader = NumpyReader()
        self._ops = importlib.import_module("tensorflow.python.framework.ops")
        self._control_flow = importlib.import_module("tensorflow.python.ops.control_flow_util")
        self._record = importlib.import_module("tensorflow.python.eager.record")

    def in_graph(self) -> bool:
        """Return whether a graph is being built, such as that of a tf.function."""
        return not self._tf.executing_eagerly()

    def monitor(self, value: Any, name: str) -> Any:
        """Record a tensor, and return it, or an identity of it if it may get a gradient.

        Raises RuntimeError inside XLA.
        """
        tf = self._tf
        name = self._of_replica(name)
        if not isinstance(value, tf.Tensor) or isinstance(value, tf.Variable):  # a script may assign to a variable
            self.note(value, name, gradient=False)
            return value
        if self.in_graph():
            self._refuse_xla()
            identity = self._identity(value, name, recorded=False)
        else:
            self.note(value, name, gradient=False)
            differentiable = value.dtype.is_floating or value.dtype.is_complex
            if not differentiable or not self._record.could_possibly_record():
                return value
            identity = self._identity(value, name, recorded=True)
        mask = getattr(value, "_keras_mask", None)  # Keras attaches the mask of a layer to its output
        if mask is not None:
            identity._keras_mask = mask
        return identity

    def _identity(self, value: Any, name: str, *, recorded: bool) -> Any:
        tf = self._tf

        @tf.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
        def identity(tensor: Any) -> tuple[Any, Callable[[Any], Any]]:
            first = [] if recorded else [self._in_graph([tensor], name, gradient=False, after_loss=False)]
            with tf.control_dependencies(first):  # a graph outside a tf.function runs only what its result needs
                return tf.identity(tensor), record_gradient

        def record_gradient(gradient: Any) -> Any:
            try:
                self.note(gradient, name, gradient=True)
            except Exception as error:
                self._log.trouble(f"the gradient of {name!r}", error)
            return gradient

        return identity(value)

    def gradient(self, value: Any, name: str) -> None:
        """Record a gradient that the script passes."""
        self.note(value, name, gradient=True, after_loss=True)

    def note(self, value: Any, name: str, *, gradient: bool, after_loss: bool = False) -> None:
        """Record a value now, or, if a graph is being built, whenever that graph runs.

        Raises RuntimeError inside XLA.
        """
        parts = self._tf.nest.flatten(value, expand_composites=True)
        if self.in_graph():
            self._in_graph(parts, name, gradient=gradient, after_loss=after_loss)
        else:
            self._now([part.numpy() for part in parts], name, gradient, after_loss)

    def _now(self, arrays: Sequence[Any], name: str, gradient: bool, after_loss: bool) -> None:
        with self._log.lock:
            value_digest, text = self._reader.read(arrays)
            self._log.note(name, value_digest, text, gradient=gradient, after_loss=after_loss)

    def _in_graph(self, tensors: Sequence[Any], name: str, *, gradient: bool, after_loss: bool) -> Any:
        def run(*arrays: Any) -> None:
            try:
                if not self._log.full:
                    self._now(arrays, name, gradient, after_loss)
            except Exception as error:
                self._log.trouble(f"detaudit.monitor of {name!r}", error)

        return self.on_host(run, tensors)

    def on_host(self, run: Callable[..., None], tensors: Sequence[Any]) -> Any:
        """Add an operation to the graph that calls ``run`` with the arrays of these tensors. ``run`` must not raise.

        Raises RuntimeError inside XLA.
        """
        self._refuse_xla()
        return self._tf.numpy_function(run, tensors, [])

    def _refuse_xla(self) -> None:
        if self._control_flow.GraphOrParentsInXlaContext(self._ops.get_default_graph()):
            raise RuntimeError("cannot record inside a function that XLA compiles (jit_compile=True)")

    def _of_replica(self, name: str) -> str:
        # The replicas of a strategy run in threads, in no fixed order.
        replica = self._tf.distribute.get_replica_context()
        if replica is None or replica.num_replicas_in_sync == 1:
            return name
        return f"{name} (replica {int(replica.replica_id_in_sync_group)})"
