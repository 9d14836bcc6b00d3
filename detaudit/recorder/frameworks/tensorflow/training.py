"""Record gradients of tapes, eager or in a tf.function, the steps that they end, and the inputs of each."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import weakref

from .... import wire
from ...process import imports
from ...training import framework, generators
from ...training.held import plain, variable
from ...training.steps import Training
from ...training.walk import leaves
from ..hyperparameters import STAGE, Hyperparameters
from .graphs import Rings
from .models import CallOutputs, LayerStates, ModuleStates, watch_state
from .reader import TensorFlowReader
from .sessions import watch_sessions, watch_symbolic_gradients

# Notice the variables that a script adds to without any gradient, such as by a random search or its own formulas.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from ...process.guard import Guard
    from ...process.log import Sink
    from ...process.recorder import Recorder


_METHODS = ("assign_add", "assign_sub")
"""What updates a variable; ``assign`` also loads what was saved, and copies."""

_MOST_ASSIGNED = 256


class Assigned:
    """The trainable variables of floats that were added to and have no gradient, up to _MOST.

    Single numbers are left out, which count, and sum up times.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._context: Any = importlib.import_module("tensorflow.python.eager.context")
        self._operations: Any = importlib.import_module("tensorflow.python.ops.resource_variable_ops")
        self._trained: dict[int, Callable[[], Any]] = {}
        self._variables: dict[int, Any] = {}

    @property
    def variables(self) -> list[Any]:
        """The variables, in the order in which they were first added to."""
        return [*self._variables.values()]

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._variables.clear()

    def watch(self) -> None:
        """Install the hooks."""
        for kind in (self._operations.BaseResourceVariable, self._operations.ResourceVariable):
            for name in _METHODS:
                if name in vars(kind):
                    setattr(kind, name, self._noted(vars(kind)[name]))

    def trained(self, sources: Iterable[Any]) -> None:
        """Leave out what a gradient trains: a variable, the one inside a Keras variable, or those of replicas."""
        for source in sources:
            inner = getattr(source, "value", None)  # a method of TensorFlow's own variables
            variable = source if inner is None or callable(inner) else inner
            for one in getattr(variable, "values", (variable,)):
                one = getattr(one, "_variable", one)  # inside one of Keras 2 with mixed precision
                self._variables.pop(id(one), None)
                self._trained[id(one)] = weakref.ref(one)

    def _noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def assign(variable: Any, *args: Any, **kwargs: Any) -> Any:
            if id(variable) not in self._variables and len(self._variables) < _MOST_ASSIGNED:
                self._sink.guarded("assign", lambda: self._note(variable))
            return function(variable, *args, **kwargs)

        return assign

    def _note(self, variable: Any) -> None:
        if self._trained.get(id(variable), lambda: None)() is variable or not variable.trainable:
            return
        eagerly = self._context.context().executing_eagerly() or not variable._in_graph_mode
        if variable.dtype.is_floating and variable.shape.rank and eagerly:
            self._variables[id(variable)] = variable


# Make functions with added operations exportable, by saving the recorder's variables in the SavedModel.


def watch_exports(sink: Sink, used_by: Callable[[list[Any]], list[Any]]) -> None:
    """Make the recorder's variables, ``used_by(concrete functions)``, children of an object that is exported.

    TensorFlow does not export a function with a variable that no exported object holds.
    """
    trackable = importlib.import_module("tensorflow.python.trackable.autotrackable").AutoTrackable
    children = trackable._trackable_children

    def add(exports: dict[str, Any]) -> None:
        listed: list[Any] = [
            getattr(child, "_list_all_concrete_functions_for_serialization", list)() for child in exports.values()
        ]
        own = used_by([concrete for functions in listed for concrete in functions])
        exports.update({f"_detaudit_{n}": variable for n, variable in enumerate(own)})

    @functools.wraps(children)
    def _trackable_children(object_: Any, save_type: str = "checkpoint", **kwargs: Any) -> Any:
        exports = children(object_, save_type, **kwargs)
        if save_type != "checkpoint":
            sink.guarded("export", lambda: add(exports))
        return exports

    trackable._trackable_children = _trackable_children


# Find the inputs of a Keras model or a tf.function, and the loss before an optimizer scales it.


LAYERS = ("keras.src.layers.layer", "tf_keras.src.engine.base_layer", "keras.src.engine.base_layer")
"""The modules in which Keras 3, tf_keras and the Keras of older TensorFlows define Layer."""

SCALERS = {
    "keras.src.optimizers.base_optimizer": ("BaseOptimizer", "scale_loss"),
    "keras.src.optimizers.loss_scale_optimizer": ("LossScaleOptimizer", "scale_loss"),
    "tf_keras.src.mixed_precision.loss_scale_optimizer": ("LossScaleOptimizerV3", "get_scaled_loss"),
}
"""Module, class and method that scale a loss before its gradient is computed."""


class InputData:
    """Finds the data among the arguments of a call."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._np: Any = importlib.import_module("numpy")
        self._composite: Any = importlib.import_module("tensorflow.python.framework.composite_tensor").CompositeTensor
        self._tensor: Any = importlib.import_module("tensorflow.python.framework.ops").EagerTensor
        self._record: Any = importlib.import_module("tensorflow.python.eager.record")

    def of(self, arguments: Any) -> list[Any]:
        """Return the arrays and tensors among the arguments, except variables and tensors that a tape follows.

        The latter are outputs of another model, not data.
        """
        tf, tensors = self._tf, []
        for leaf in leaves(arguments):
            if type(leaf) is self._tensor:  # what follows asks abstract classes, which takes long
                if self._is_data(leaf):
                    tensors.append(leaf)
                continue
            parts = tf.nest.flatten(leaf, expand_composites=True) if isinstance(leaf, self._composite) else [leaf]
            for part in parts:
                if isinstance(part, self._np.ndarray) or (tf.is_tensor(part) and self._is_data(part)):
                    tensors.append(part)
        return tensors

    def _is_data(self, tensor: Any) -> bool:
        usual = type(tensor) is self._tensor or isinstance(tensor, self._tf.Tensor)
        if not usual or tensor.dtype in (self._tf.resource, self._tf.variant):
            return False  # a variable, an iterator
        return not self._record.should_record_backprop([tensor])

    def under_tape(self) -> bool:
        """Return whether a tape records the present computation."""
        return bool(self._record.could_possibly_record())


def watch_layers(
    sink: Sink,
    guard: Callable[[str], Guard],
    inside: threading.local,
    observe: Callable[[Any, Any], None],
    outputs: CallOutputs,
    imported: Callable[[type[Any]], None],
) -> None:
    """Call ``observe(layer, (args, kwargs))`` at each outermost call of a Keras layer or model.

    Record its ``outputs``. ``imported(Layer)`` is called for each class of layers, of which there is one for each
    version of Keras.
    """

    def watch(module: Any) -> None:
        imported(module.Layer)
        call = module.Layer.__call__

        @functools.wraps(call)
        def __call__(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "layer", False):
                return call(layer, *args, **kwargs)
            inside.layer = True
            try:
                with guard("batch"):
                    observe(layer, (args, kwargs))
                return outputs.of(layer, call, args, kwargs)
            finally:
                inside.layer = False

        module.Layer.__call__ = __call__

    for name in LAYERS:
        imports.when_imported(name, sink, watch)


class ScaledLosses:
    """Finds the loss that the script computed, if an optimizer scaled it before its gradient is computed."""

    def __init__(self, sink: Sink, inside: threading.local) -> None:
        self._sink, self._inside = sink, inside

    def watch(self) -> None:
        """Install the hooks as soon as the optimizers are imported."""
        for module, (name, method) in SCALERS.items():
            imports.when_imported(module, self._sink, functools.partial(self._watch, name, method))

    def _watch(self, name: str, method: str, module: Any) -> None:
        owner = getattr(module, name)
        scale = getattr(owner, method)

        @functools.wraps(scale)
        def scaled(optimizer: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            result = scale(optimizer, loss, *args, **kwargs)
            if result is not loss:
                self._sink.guarded("scale", lambda: self._keep(result, loss))
            return result

        setattr(owner, method, scaled)

    def _keep(self, result: Any, loss: Any) -> None:
        if hasattr(loss, "dtype"):
            self._inside.scaled = (weakref.ref(result), loss)

    def unscaled(self, target: Any) -> Any:
        """Return the loss that was scaled to ``target``, or ``target`` if there is none."""
        result, loss = getattr(self._inside, "scaled", None) or (lambda: None, None)
        return loss if result() is target else target


# Record the hyperparameters of Keras' optimizers, and the lines that make them or set their learning rate.


_NUMBERS = ("momentum", "nesterov", "beta_1", "beta_2", "rho", "epsilon", "weight_decay", "amsgrad")
_CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")
_MOST_OPTIMIZERS = 4
"""The first optimizers whose hyperparameters are recorded: they are read at each step."""


class Optimizers:
    """The first optimizers that this process made, in their order."""

    def __init__(self, sink: Sink, reader: TensorFlowReader) -> None:
        self._sink, self._reader = sink, reader
        self._hyperparameters = Hyperparameters(sink)
        self._made: list[weakref.ref[Any]] = []

    def watch(self) -> None:
        """Watch the optimizers of Keras once it is imported."""
        imports.when_imported("keras.src.optimizers.base_optimizer", self._sink, self._install)

    def forget(self) -> None:
        """Start over, as in a forked child, in which the optimizers exist too."""
        self._hyperparameters.forget()

    def _install(self, module: Any) -> None:
        base, hyperparameters, sink = module.BaseOptimizer, self._hyperparameters, self._sink
        construct, rate = base.__init__, base.learning_rate

        @functools.wraps(construct)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            construct(optimizer, *args, **kwargs)
            if len(self._made) < _MOST_OPTIMIZERS:
                frame = sys._getframe().f_back
                sink.guarded("optimizer", lambda: self._add(optimizer, frame))

        def set_rate(optimizer: Any, value: Any) -> None:
            frame = sys._getframe().f_back
            sink.guarded("optimizer", lambda: hyperparameters.set_by(id(optimizer), frame))
            rate.fset(optimizer, value)

        base.__init__ = __init__
        base.learning_rate = rate.setter(set_rate)

    def _add(self, optimizer: Any, frame: Any) -> None:
        self._made.append(weakref.ref(optimizer))
        self._hyperparameters.set_by(id(optimizer), frame)

    def at_step(self, training: Training) -> None:
        """Record what a step was made with that is about to be written."""
        if self._made and training.wants(STAGE):
            self._sink.guarded("hyperparameters", lambda: self._at_step(training))

    def _at_step(self, training: Training) -> None:
        for number, reference in enumerate(self._made, start=1):
            optimizer = reference()
            if optimizer is not None:
                group = dict(self._values(optimizer))
                self._hyperparameters.at_step(training, number, id(optimizer), [group], lambda one: type(one).__name__)

    def held(self, trains: Callable[[Any], bool]) -> Iterator[tuple[str, str, str, str]]:
        """Yield the state of each optimizer of variables that ``trains``, but for its rate, which is recorded by step.

        One that was not built has none, such as that of a model in whose place another one was loaded.
        """
        for optimizer in [reference() for reference in self._made]:
            if optimizer is None or not any([trains(one) for one in optimizer._trainable_variables]):
                continue
            outer = variable(optimizer, type(optimizer).__name__)
            weights = {"%s_" % one.path.replace("/", "_"): one.path for one in optimizer._trainable_variables}
            for one in optimizer.variables:
                if one.name == "learning_rate":
                    continue
                name, array = "%s: %s" % (outer, _state_name(one.name, weights)), self._reader.array(one)
                if array.ndim:
                    _, dtype, shape, words = self._reader.part(name, one)
                    yield wire.HELD_OPTIMIZER, name, "", "%s%s:%016x" % (dtype, shape, words)
                else:
                    yield from plain(wire.HELD_OPTIMIZER, name, array.item())

    def _values(self, optimizer: Any) -> Iterator[tuple[str, Any]]:
        rate = optimizer._learning_rate
        if hasattr(rate, "get_config"):  # a schedule
            yield "learning_rate", tuple([one for _, one in sorted(rate.get_config().items())])
        else:
            yield "learning_rate", self._reader.scalar(getattr(rate, "_value", rate)) if not callable(rate) else None
        for name in (*_NUMBERS, *_CLIPPING):
            value = getattr(optimizer, name, None)
            if value is not None:
                yield name, value


def _state_name(name: str, weights: dict[str, str]) -> str:
    """Return ``velocity of dense/kernel`` for a variable of an optimizer, its own name if it is of no weight.

    Its own name begins with the path of the weight, in which a model that was loaded lacks the name of the model.
    """
    prefix = max([one for one in weights if name.startswith(one)], key=len, default="")
    return "%s of %s" % (name[len(prefix) :], "/".join(weights[prefix].split("/")[-2:])) if prefix else name


# Keep what a thread trains, and for its graphs a ring buffer.
#
# Graphs are traced in the thread that trains with them, as by ``Model.fit``. A graph that was traced in another thread
# belongs to the training of that thread.


class Steps(framework.Steps):
    """What one thread, or one task of a pool of threads, trains."""

    def __init__(self, training: Training, rings: Rings) -> None:
        super().__init__(training)
        self.rings = rings
        self.eager: list[Any] = []
        """The variables of the last gradient in eager code, whose step has not ended."""
        self.noted: list[Any] = []
        """The variables of gradients in the graph that is being traced."""
        self.latest: tuple[int, list[Any]] = (0, [])
        """The number and the variables of the last set that a graph trains."""
        self._sets = 0
        self._of_function: weakref.WeakKeyDictionary[Any, tuple[int, list[Any]]] = weakref.WeakKeyDictionary()

    def end_eager(self) -> None:
        """End the step of the last gradient in eager code."""
        with self.training.lock:
            if self.eager and self.training.pending:
                self.training.step(("eager", *[id(v) for v in self.eager]), self.eager)

    def end_traced(self, function: Any) -> tuple[int, list[Any]]:
        """Return what an outermost tf.function trains, after a call that may have traced it."""
        noted, self.noted = self.noted, []
        known = self._of_function.get(function, (0, []))[1]
        if noted and (len(noted) != len(known) or any(a is not b for a, b in zip(noted, known))):
            self._sets += 1
            self._of_function[function] = self.latest = (self._sets, noted)
        return self._of_function.get(function, self.latest)

    def trains(self, function: Any) -> bool:
        """Return whether a step was recorded in a call of this tf.function."""
        return function in self._of_function

    def keep(self, function: Any, weights: tuple[int, list[Any]]) -> None:
        """Keep what a tf.function trains that calls others, which were traced before."""
        self._of_function.setdefault(function, weights)


# Hook the gradients that a GradientTape computes.


def watch_tapes(
    tape: Any, guard: Callable[[str], Guard], inside: Any, observe: Callable[[Any, Any, Any], None]
) -> None:
    """Call ``observe(target, sources, gradients)`` after each outermost gradient of a thread."""
    compute = tape.gradient

    @functools.wraps(compute)
    def gradient(tape_: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "gradient", False):  # of a checkpoint that is recomputed
            return compute(tape_, target, sources, *args, **kwargs)
        inside.gradient = True
        try:
            gradients = compute(tape_, target, sources, *args, **kwargs)
        finally:
            inside.gradient = False
        with guard("gradient"):
            observe(target, sources, gradients)
        return gradients

    tape.gradient = gradient


# Hook TensorFlow, and Keras on it: every GradientTape.gradient, eager or inside a tf.function.
#
# Inside a graph, the digests of a step are written to a ring buffer of the recorder, which is read when the outermost
# tf.function returns.


class TensorFlow(framework.Framework[Steps]):
    """Installs the hooks, and turns their calls into steps.

    A step is one gradient. Its weights are the variables that the gradient is taken with respect to. In eager code
    they are read at the next gradient, in a tf.function when the outermost one returns.
    """

    name = "tensorflow"

    def __init__(self, tf: Any, recorder: Recorder) -> None:
        self._tf = tf
        self._ops = importlib.import_module("tensorflow.python.framework.ops")
        self._context = importlib.import_module("tensorflow.python.eager.context")
        self._reader = TensorFlowReader()
        self._owners: weakref.WeakKeyDictionary[Any, Steps] = weakref.WeakKeyDictionary()
        super().__init__(recorder, self._reader)
        generators.watch("tensorflow", self._generator_state)
        self._optimizers = Optimizers(self.sink, self._reader)
        self._data = InputData(tf)
        # Whether this thread is in the outermost tf.function (and called it under a tape), layer or gradient.
        self._inside = threading.local()
        self._scaled = ScaledLosses(self.sink, self._inside)
        self._outputs = CallOutputs(tf, self.sink, lambda: self.now.training, self._inside)
        self._layers: list[LayerStates] = []
        self._started: dict[int, Any] = {}
        self._assigned = Assigned(self.sink)
        self.training.held = lambda: self._optimizers.held(self._trains)

    def steps(self, training: Training) -> Steps:
        """Return the steps of a thread that begins to train, with a ring buffer of its own for its graphs."""
        return Steps(training, Rings(self._tf, self._reader.array))

    def undisturbed(self) -> AbstractContextManager[object]:
        """Return the context of eager code."""
        context: AbstractContextManager[object] = self._ops.init_scope()
        return context

    def end_open_step(self, steps: Steps) -> None:
        """End the steps of the last gradients, in eager code and in graphs."""
        steps.end_eager()
        self._end_graph_steps(steps, steps.latest, None)
        if steps is self.main:
            self._end_assigned(steps.training)

    def forget(self, forked: bool) -> None:
        """Start over. A forked child traces functions of its own, the next task of a pool calls the same ones."""
        self._assigned.forget()
        self._optimizers.forget()
        self.main.noted, self.main.eager = [], []
        if forked:
            self._owners = weakref.WeakKeyDictionary()
            super().forget(forked)

    def install(self, tf: Any) -> None:
        """Install the hooks."""
        backprop = importlib.import_module("tensorflow.python.eager.backprop")
        functions = "tensorflow.python.eager.polymorphic_function."
        watch_tapes(backprop.GradientTape, self.guard, self._inside, self._note)
        self._watch_calls(importlib.import_module(functions + "polymorphic_function").Function)
        self._watch_calls(importlib.import_module(functions + "concrete_function").ConcreteFunction)
        self._scaled.watch()
        watch_layers(
            self.sink,
            self.guard,
            self._inside,
            self._on_layer,
            self._outputs,
            lambda layer: self._layers.extend(watch_state(layer, self.training, self._reader, self._ops.init_scope)),
        )
        self._outputs.watch_trainers()
        self._optimizers.watch()
        self._assigned.watch()
        if self.training.wants("state"):
            self.training.states.append(ModuleStates(tf, self._reader, self.training.freed))
        watch_exports(self.sink, self._used_by)
        sessions = watch_sessions(tf, self.sink, self.training)

        def observe(losses: Any, sources: Any, gradients: Any) -> None:
            if not sessions.taken(losses, sources, gradients):
                self._note(losses, sources, gradients)

        watch_symbolic_gradients(tf, self.sink, observe)

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
                with self.guard("function"):
                    self._before_call(function_, (args, kwargs))
                return call(function_, *args, **kwargs)
            finally:
                self._inside.function = self._inside.forward = False
                with self.guard("function"):
                    self._after_call(function_, (args, kwargs))

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
        parts = parts if self.training.wants("backward") else []
        with self.training.lock:
            now = self.kept
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
            now.training.begins()
        now.noted += [v for v in variables if not any(v is noted for noted in now.noted)]
        now.rings.write(losses, gradients)

    def _initial(self, now: Steps, variables: list[Any]) -> None:
        new = [v for v in variables if self._started.get(id(v), lambda: None)() is not v]
        self._started.update([(id(v), weakref.ref(v)) for v in new])
        if new:
            self._assigned.trained(new)
            now.training.initial(new)

    def _trains(self, trained: Any) -> bool:
        inner = getattr(trained, "value", trained)  # of a variable of Keras
        return any([self._started.get(id(one), lambda: None)() is one for one in (trained, inner)])

    def _on_layer(self, layer: Any, call: Any) -> None:
        with self.training.lock:
            for layers in self._layers:
                layers.ran(layer)
        if not self.training.wants("batch"):
            return
        inside = self._inside
        if getattr(inside, "gradient", False) or getattr(inside, "forward", False) or not self._data.under_tape():
            return
        data, now = self._data.of(call), self.now
        with self.training.lock:
            if self._context.executing_eagerly():
                now.end_eager()
                now.training.inputs(data)
            elif data and self._ops.get_default_graph().building_function:
                now.rings.inputs([part for part in data if isinstance(part, self._tf.Tensor)])

    def _before_call(self, function: Any, call: Any) -> None:
        forward = self.training.wants("batch") and not getattr(self._inside, "layer", False) and self._data.under_tape()
        self._inside.forward = forward
        now = self.now
        trains = now.trains(function)
        if not (forward or trains):
            return
        now.end_eager()
        with self.training.lock:
            if trains:
                now.training.begins()
            if forward:  # called under a tape, so its arguments are the batch
                now.training.inputs(self._data.of(call))

    def _after_call(self, function: Any, call: Any) -> None:
        with self.training.lock:
            now = self.now
            if now.noted:  # the function was traced in this thread
                self._owners[function] = now
            steps = self._owners.get(function) or now
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
            self.sink.write({"k": "trouble", "where": "losses", "error": error})
            training.steps += lost
        if not rows[0].batch and training.wants("batch"):
            training.inputs(self._data.of(call))
        for row in rows:
            if row is not rows[0]:
                training.unseen_step()
                training.began()
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

    def _used_by(self, functions: Iterable[Any]) -> list[Any]:
        """Return the recorder's variables that these concrete functions use."""
        return [variable for steps in self.every for variable in steps.rings.used_by(functions)]

    def _end_assigned(self, training: Training) -> None:
        """Record what the script added to without any gradient, by the values at the end."""
        variables = self._assigned.variables
        if variables and not training.steps:
            training.step("assigned", variables)
        elif variables:
            training.weights.hold("assigned", variables, None)


install = TensorFlow.start
