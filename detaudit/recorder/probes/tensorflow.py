"""Records TensorFlow tensors, eager or each time that a graph runs, and the gradients that come back.

Inside a tf.function a NumPy function is put beside the tensor. TensorFlow takes a random operation's seed from a
counter of its own (framework/random_seed.py), so the added operations shift no random stream. XLA has no such
operation: there nothing is recorded, and that is said.
"""

from __future__ import annotations

import importlib

from .values import ArrayReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .notebook import Notebook


class TensorFlowProbes:
    """Reads tensors, and gives back identities that see the gradient."""

    def __init__(self, tf: Any, notebook: Notebook) -> None:
        self._tf, self._notebook = tf, notebook
        self._reader = ArrayReader()
        self._ops = importlib.import_module("tensorflow.python.framework.ops")
        self._control_flow = importlib.import_module("tensorflow.python.ops.control_flow_util")
        self._record = importlib.import_module("tensorflow.python.eager.record")

    def in_graph(self) -> bool:
        """Whether a graph is being built, such as that of a tf.function."""
        return not self._tf.executing_eagerly()

    def monitor(self, value: Any, name: str) -> Any:
        """Record a tensor, and return it, or its identity if a gradient may come back through it.

        Raises RuntimeError inside XLA.
        """
        tf = self._tf
        name = self._of_replica(name)
        if not isinstance(value, tf.Tensor) or isinstance(value, tf.Variable):  # variables stay what can be assigned
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
        mask = getattr(value, "_keras_mask", None)  # Keras lets a layer's mask travel on its output
        if mask is not None:
            identity._keras_mask = mask
        return identity

    def _identity(self, value: Any, name: str, *, recorded: bool) -> Any:
        tf = self._tf

        @tf.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
        def identity(tensor: Any) -> tuple[Any, Callable[[Any], Any]]:
            first = [] if recorded else [self._in_graph([tensor], name, gradient=False, after_loss=False)]
            with tf.control_dependencies(first):  # a graph without tf.function runs only what its result needs
                return tf.identity(tensor), see_gradient

        def see_gradient(gradient: Any) -> Any:
            try:
                self.note(gradient, name, gradient=True)
            except Exception as error:
                self._notebook.complain(f"the gradient of {name!r}", error)
            return gradient

        return identity(value)

    def note(self, value: Any, name: str, *, gradient: bool, after_loss: bool = False) -> None:
        """Record a value now, or whenever the graph that is being built runs.

        Raises RuntimeError inside XLA.
        """
        parts = self._tf.nest.flatten(value, expand_composites=True)
        if self.in_graph():
            self._in_graph(parts, name, gradient=gradient, after_loss=after_loss)
        else:
            self._now([part.numpy() for part in parts], name, gradient, after_loss)

    def _now(self, arrays: Sequence[Any], name: str, gradient: bool, after_loss: bool) -> None:
        with self._notebook.lock:
            found, text = self._reader.read(arrays)
            self._notebook.note(name, found, text, gradient=gradient, after_loss=after_loss)

    def _in_graph(self, tensors: Sequence[Any], name: str, *, gradient: bool, after_loss: bool) -> Any:
        def run(*arrays: Any) -> None:
            try:
                if not self._notebook.full:
                    self._now(arrays, name, gradient, after_loss)
            except Exception as error:
                self._notebook.complain(f"detaudit.monitor of {name!r}", error)

        return self.on_host(run, tensors)

    def on_host(self, run: Callable[..., None], tensors: Sequence[Any]) -> Any:
        """Add an operation to the graph that calls ``run``, which never raises, with the arrays of these tensors.

        Raises RuntimeError inside XLA.
        """
        self._refuse_xla()
        return self._tf.numpy_function(run, tensors, [])

    def _refuse_xla(self) -> None:
        if self._control_flow.GraphOrParentsInXlaContext(self._ops.get_default_graph()):
            raise RuntimeError(
                "nothing is recorded in what XLA compiles (jit_compile=True): it runs nothing on the host"
            )

    def _of_replica(self, name: str) -> str:
        # The replicas of a strategy are threads: which comes first says nothing.
        replica = self._tf.distribute.get_replica_context()
        if replica is None or replica.num_replicas_in_sync == 1:
            return name
        return f"{name} (replica {int(replica.replica_id_in_sync_group)})"
