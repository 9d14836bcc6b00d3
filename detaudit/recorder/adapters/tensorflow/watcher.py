"""Hook TensorFlow, and Keras on it: every GradientTape.gradient, eager or inside a tf.function.

Inside a graph, the digests of a step are written to a ring buffer of the recorder, which is read when the outermost
tf.function returns.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
import weakref

from ...training import generators
from ...training.steps import Training
from .assigned import Assigned
from .calls import CallOutputs
from .exports import watch_exports
from .graphs import Rings
from .inputs import InputData, ScaledLosses, watch_layers
from .models import LayerStates, ModuleStates, watch_state
from .optimizers import Optimizers
from .reader import TensorFlowReader
from .sessions import watch_sessions
from .steps import Steps, ThreadSteps
from .symbolic import watch_symbolic_gradients
from .tapes import watch_tapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ...process.recorder import Recorder


class TensorFlowWatcher:
    """Installs the hooks, and turns their calls into steps.

    A step is one gradient. Its weights are the variables that the gradient is taken with respect to. In eager code
    they are read at the next gradient, in a tf.function when the outermost one returns.
    """

    def __init__(self, tf: Any, recorder: Recorder) -> None:
        self._tf = tf
        self._sink = recorder.sink
        self._ops = importlib.import_module("tensorflow.python.framework.ops")
        self._context = importlib.import_module("tensorflow.python.eager.context")
        generators.watch("tensorflow", self._generator_state)
        self._reader = TensorFlowReader()
        self._training = Training("tensorflow", recorder, self._reader)
        self._optimizers = Optimizers(self._sink, self._reader)
        self._threads = ThreadSteps(self._training, lambda: Rings(tf, self._reader.array))
        self._data = InputData(tf)
        # Whether this thread is in the outermost tf.function (and called it under a tape), layer or gradient.
        self._inside = threading.local()
        self._scaled = ScaledLosses(self._sink, self._inside)
        self._outputs = CallOutputs(tf, self._sink, lambda: self._threads.now().training, self._inside)
        self._layers: list[LayerStates] = []
        self._started: dict[int, Any] = {}
        self._assigned = Assigned(self._sink)
        self._pid = os.getpid()
        recorder.at_end(self._finish, self._forget)

    def install(self) -> None:
        """Install the hooks."""
        backprop = importlib.import_module("tensorflow.python.eager.backprop")
        functions = "tensorflow.python.eager.polymorphic_function."
        watch_tapes(backprop.GradientTape, self._sink, self._inside, self._note)
        self._watch_calls(importlib.import_module(functions + "polymorphic_function").Function)
        self._watch_calls(importlib.import_module(functions + "concrete_function").ConcreteFunction)
        self._scaled.watch()
        watch_layers(
            self._sink,
            self._inside,
            lambda layer, call: self._sink.guarded("batch", lambda: self._on_layer(layer, call)),
            self._outputs,
            lambda layer: self._layers.extend(watch_state(layer, self._training, self._reader, self._ops.init_scope)),
        )
        self._outputs.watch_trainers()
        self._optimizers.watch()
        self._assigned.watch()
        if self._training.wants("state"):
            self._training.states.append(ModuleStates(self._tf, self._reader, self._training.freed))
        watch_exports(self._sink, self._threads.used_by)
        sessions = watch_sessions(self._tf, self._sink, self._training)

        def observe(losses: Any, sources: Any, gradients: Any) -> None:
            if not sessions.taken(losses, sources, gradients):
                self._note(losses, sources, gradients)

        watch_symbolic_gradients(self._tf, self._sink, observe)

    def _watch_calls(self, function: Any) -> None:
        call = function.__call__

        @functools.wraps(call)
        def __call__(function_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "function", False) or not self._context.executing_eagerly():
                return call(function_, *args, **kwargs)
            return self._outputs.of(function_, outermost, args, kwargs)

        def outermost(function_: Any, *args: Any, **kwargs: Any) -> Any:
            self._inside.function = True
            try:
                self._sink.guarded("function", lambda: self._before_call(function_, (args, kwargs)))
                return call(function_, *args, **kwargs)
            finally:
                self._inside.function = self._inside.forward = False
                self._sink.guarded("function", lambda: self._after_call(function_, (args, kwargs)))

        function.__call__ = __call__

    def _note(self, target: Any, sources: Any, gradients: Any) -> None:
        flatten = self._tf.nest.flatten
        variables = [source for source in flatten(sources) if hasattr(source, "assign") and hasattr(source, "shape")]
        losses = [
            self._scaled.unscaled(loss) for loss in flatten(target) if loss is not None and hasattr(loss, "dtype")
        ]
        if not variables or not losses or not losses[0].dtype.is_floating:
            return  # such as a gradient penalty with respect to inputs
        parts = [part for part in flatten(gradients, expand_composites=True) if part is not None]
        parts = parts if self._training.wants("backward") else []
        with self._training.lock:
            now = self._threads.now()
            self._threads.keep(now)
            if isinstance(losses[0], self._ops.EagerTensor):
                self._note_eager(now, losses, variables, parts)
            elif self._ops.get_default_graph().building_function:  # otherwise a graph for sessions
                self._note_in_graph(now, losses, variables, parts)

    def _note_eager(self, now: Steps, losses: list[Any], variables: list[Any], gradients: list[Any]) -> None:
        now.end_eager()
        self._initial(now, variables)
        self._optimizers.at_step(now.training)
        now.eager = variables
        if gradients:
            now.training.gradients(gradients)
        for loss in losses:
            now.training.loss(loss)

    def _note_in_graph(self, now: Steps, losses: list[Any], variables: list[Any], gradients: list[Any]) -> None:
        with self._ops.init_scope():  # tracing comes before the first execution
            now.end_eager()
            self._initial(now, variables)
        now.noted += [v for v in variables if not any(v is noted for noted in now.noted)]
        now.rings.write(losses, gradients)

    def _initial(self, now: Steps, variables: list[Any]) -> None:
        new = [v for v in variables if self._started.get(id(v), lambda: None)() is not v]
        self._started.update([(id(v), weakref.ref(v)) for v in new])
        if new:
            self._assigned.trained(new)
            now.training.initial(new)

    def _on_layer(self, layer: Any, call: Any) -> None:
        with self._training.lock:
            for layers in self._layers:
                layers.ran(layer)
        if not self._training.wants("batch"):
            return
        inside = self._inside
        if getattr(inside, "gradient", False) or getattr(inside, "forward", False) or not self._data.under_tape():
            return
        data, now = self._data.of(call), self._threads.now()
        with self._training.lock:
            if self._context.executing_eagerly():
                now.end_eager()
                now.training.inputs(data)
            elif data and self._ops.get_default_graph().building_function:
                now.rings.inputs([part for part in data if isinstance(part, self._tf.Tensor)])

    def _before_call(self, function: Any, call: Any) -> None:
        forward = (
            self._training.wants("batch") and not getattr(self._inside, "layer", False) and self._data.under_tape()
        )
        self._inside.forward = forward
        now = self._threads.now()
        if forward or now.trains(function):
            now.end_eager()
        if forward:  # called under a tape, so its arguments are the batch
            with self._training.lock:
                now.training.inputs(self._data.of(call))

    def _after_call(self, function: Any, call: Any) -> None:
        with self._training.lock:
            self._threads.traced(function)
            steps = self._threads.of_function(function)
            self._end_graph_steps(steps, steps.end_traced(function), function, call)

    def _end_graph_steps(self, steps: Steps, weights: tuple[int, list[Any]], owner: Any, call: Any = ()) -> None:
        added, rows = steps.rings.new()
        if not added:
            return
        training = steps.training
        if owner is not None:
            steps.keep(owner, weights)
        if added > len(rows):
            lost = added - len(rows)
            error = f"one call of a tf.function ran too many steps: {lost} of {added} were not recorded"
            self._sink.write({"k": "trouble", "where": "losses", "error": error})
            training.steps += lost
        if not rows[0].batch and training.wants("batch"):
            training.inputs(self._data.of(call))
        for row in rows:
            if row is not rows[0]:
                training.unseen_step()
            if row.batch:
                training.inputs([row.batch])
            if row.gradients:
                training.gradients([row.gradients])
            if row.losses:
                training.loss(row.losses)
            training.loss(row.loss, steps.rings.loss_type)
        self._optimizers.at_step(training)
        training.step(*weights, owner)

    def _generator_state(self) -> bytes:
        # After tf.random.set_seed, eager operations take their seeds from this generator.
        generator = getattr(self._context.context(), "_rng", None)
        return repr(hash(generator.getstate()[1])).encode() if generator is not None else b""

    def _finish(self) -> None:
        with self._training.lock, self._ops.init_scope():
            for steps in (*self._threads.beside, self._threads.main):
                steps.end_eager()
                self._end_graph_steps(steps, steps.latest, None)
            self._end_assigned(self._threads.main.training)
            self._training.finish_all([steps.training for steps in self._threads.beside])

    def _end_assigned(self, training: Training) -> None:
        """Record what the script added to without any gradient, by the values at the end."""
        variables = self._assigned.variables
        if variables and not training.steps:
            training.step("assigned", variables)
        elif variables:
            training.weights.hold("assigned", variables, None)

    def _forget(self) -> None:
        self._assigned.forget()
        self._training.forget()
        self._optimizers.forget()
        forked = self._pid != os.getpid()  # otherwise a task of a pool ended, and the next one calls the same functions
        self._pid = os.getpid()
        self._threads.forget(functions=forked)


def install(tf: ModuleType, recorder: Recorder) -> None:
    """Record the trainings of this TensorFlow from now on."""
    recorder.sink.write({"k": "framework", "name": "tensorflow", "version": str(tf.__version__)})
    TensorFlowWatcher(tf, recorder).install()
