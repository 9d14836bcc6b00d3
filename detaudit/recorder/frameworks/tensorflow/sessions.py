"""Sessions of tf.compat.v1: their updates, and gradients of graphs."""

from __future__ import annotations

import functools
import importlib
import weakref
from typing import NamedTuple

from ...process.replace import replace

# Find which updates of weights in a graph a session run executes: those of optimizers, and assignments by hand.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ...process.log import Sink
    from ...training.steps import Training


_SOURCES = ("IteratorGetNext", "QueueDequeue")
"""Prefixes of the types of operations that read a batch from a pipeline in the graph."""

_HARMLESS = frozenset(["Variable", "VariableV2", "VarHandleOp", "ReadVariableOp"])
"""Stateful operations that can be fetched without changing their state."""

_TRAINABLE = "trainable_variables"
"""The collection of a graph that has its trainable variables."""

_ASSIGNS = ("Assign", "AssignVariableOp")
"""Writes whose value need not depend on the one before: those of an initializer, or of a restored checkpoint."""

_WRITES = ("Assign", "Apply", "Scatter", "ResourceApply", "ResourceScatter", "ResourceSparse", "SparseApply")
"""Prefixes of the types of operations that write to a variable, which is their first input."""


class Update(NamedTuple):
    """The operation by which an optimizer applies its gradients in a graph, and the tensors that belong to it.

    If ``assigned``, it is the operation that computes the gradient, and there is an update only if the same run
    writes to one of the variables.
    """

    operation: Any
    losses: tuple[Any, ...]
    gradients: tuple[Any, ...]
    variables: tuple[Any, ...]
    assigned: bool = False

    def runs(self, running: set[Any]) -> bool:
        """Return whether the update happens when these operations run."""
        if self.operation not in running:
            return False
        handles = {getattr(variable, "handle", variable).op for variable in self.variables}
        return not self.assigned or any(op.type.startswith(_WRITES) and op.inputs[0].op in handles for op in running)


class Step(NamedTuple):
    """What a session run updates, and the tensors to fetch for it. ``owner`` is one of the operations that do so."""

    owner: Any
    inputs: tuple[Any, ...]
    losses: tuple[Any, ...]
    gradients: tuple[Any, ...]
    variables: tuple[Any, ...]


def _ancestors(operations: Iterable[Any]) -> set[Any]:
    """Return the operations, and all operations that have to run before them."""
    ancestors: set[Any] = set()
    stack = list(operations)
    while stack:
        operation = stack.pop()
        if operation not in ancestors:
            ancestors.add(operation)
            stack += [tensor.op for tensor in operation.inputs]
            stack += operation.control_inputs
    return ancestors


def _assigned(graph: Any, running: set[Any]) -> tuple[dict[Any, Any], Any]:
    """Return the trainable variables that these operations give values computed from the ones before, and an operation.

    Initializers and checkpoints set them too, but to what does not depend on their values.
    """
    variables: dict[Any, Any] = {}
    writes = [op for op in running if op.type.startswith(_WRITES) and op.inputs]
    if not writes:
        return variables, None
    handles = {getattr(variable, "handle", variable).op: variable for variable in graph.get_collection(_TRAINABLE)}
    owners = []
    for op in writes:
        handle = op.inputs[0].op
        variable = handles.get(handle)
        if variable is None or not variable.dtype.base_dtype.is_floating:
            continue
        if op.type not in _ASSIGNS or handle in _ancestors([op.inputs[1].op]):
            variables[handle] = variable
            owners.append(op)
    ordered = {handle: variable for handle, variable in handles.items() if handle in variables}
    return ordered, min(owners, key=lambda op: op.name, default=None)


def _once(things: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({id(thing): thing for thing in things}.values())


class Updates:
    """Keeps the updates in one graph, and finds those that run for the fetches of the script."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self._steps: dict[tuple[str, ...], Step | None] = {}

    def add(self, update: Update) -> None:
        """Add an update that an optimizer added to the graph."""
        self.updates.append(update)
        self._steps.clear()

    def step(self, graph: Any, elements: Sequence[Any]) -> Step | None:
        """Return the step of a run that fetches these tensors and operations, None if it trains nothing."""
        names = tuple([element.name for element in elements])
        if names not in self._steps:
            self._steps[names] = self._find(graph, [getattr(element, "op", element) for element in elements])
        return self._steps[names]

    def _find(self, graph: Any, fetched: list[Any]) -> Step | None:
        running = _ancestors(fetched)
        hit = [update for update in self.updates if update.runs(running)]
        assigned, owner = _assigned(graph, running)
        if not hit and owner is None:
            return None
        trained = {getattr(one, "handle", one).op: one for update in hit for one in update.variables}

        def harmless(tensor: Any) -> bool:
            """Return whether fetching a tensor runs no other stateful operation, such as a random one."""
            more = _ancestors([tensor.op]) - running if graph.is_fetchable(tensor) else {None}
            return not any(
                op is None or op.type == "Placeholder" or (op.op_def.is_stateful and op.type not in _HARMLESS)
                for op in more
            )

        return Step(
            hit[0].operation if hit else owner,
            self._batch(graph, running),
            _once([loss for update in hit for loss in update.losses if harmless(loss)]),
            _once([part for update in hit for part in update.gradients if harmless(part)]),
            tuple({**trained, **{op: one for op, one in assigned.items() if op not in trained}}.values()),
        )

    @staticmethod
    def _batch(graph: Any, running: set[Any]) -> tuple[Any, ...]:
        sources = sorted([op for op in running if op.type.startswith(_SOURCES)], key=lambda op: op.name)
        kinds = ("resource", "variant")
        return tuple([t for op in sources for t in op.outputs if t.dtype.name not in kinds and graph.is_fetchable(t)])


# Hook tf.compat.v1 sessions: a session run that applies the gradients of an optimizer is a step.
#
# So is one that computes what tf.gradients returned, and assigns to one of its variables, and one that gives a
# trainable variable a value computed from the one before, by whatever gradients. Callables that a session made, by
# which Keras trains without eager execution, can fetch no more than they were made for: their steps have no losses.
#
# Nothing is added to the user's graph. The loss and the gradients are fetched together with the fetches of the script,
# and the weights are read by a separate session run afterwards.


_UPDATES = "_detaudit_updates"


class _Weight:
    """The last value of a variable, which can be read only in its session.

    It does not keep a reference to the variable, which would keep the graph alive.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.array: Any = None

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def shape(self) -> Any:
        return self.array.shape

    def numpy(self) -> Any:
        return self.array


class SessionWatcher:
    """Finds the updates in graphs for sessions, and records the session runs that execute them."""

    def __init__(self, tf: Any, sink: Sink, training: Training) -> None:
        self._tf, self._sink, self._training = tf, sink, training
        self._np: Any = importlib.import_module("numpy")
        self._loss_of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._weights: weakref.WeakKeyDictionary[Any, dict[str, _Weight]] = weakref.WeakKeyDictionary()

    def install(self) -> None:
        """Install the hooks."""
        optimizer = importlib.import_module("tensorflow.python.training.optimizer").Optimizer
        session = importlib.import_module("tensorflow.python.client.session").BaseSession
        self._watch_optimizer(optimizer)
        self._watch_runs(session)
        self._watch_callables(session)

    def _watch_optimizer(self, optimizer: Any) -> None:
        compute, apply = optimizer.compute_gradients, optimizer.apply_gradients

        @functools.wraps(compute)
        def compute_gradients(optimizer_: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            result = compute(optimizer_, loss, *args, **kwargs)
            self._sink.guarded("compute_gradients", lambda: self._keep_loss(optimizer_, loss))
            return result

        @functools.wraps(apply)
        def apply_gradients(optimizer_: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(grads_and_vars, (list, tuple)):
                grads_and_vars = list(grads_and_vars)  # an iterator could be read only once
            result = apply(optimizer_, grads_and_vars, *args, **kwargs)
            self._sink.guarded("apply_gradients", lambda: self._keep_update(optimizer_, result, grads_and_vars))
            return result

        optimizer.compute_gradients, optimizer.apply_gradients = compute_gradients, apply_gradients

    def _is_for_sessions(self, graph: Any) -> bool:
        return graph is not None and not self._tf.executing_eagerly() and not graph.building_function

    def _keep_loss(self, optimizer: Any, loss: Any) -> None:
        if self._tf.is_tensor(loss) and self._is_for_sessions(getattr(loss, "graph", None)):
            self._loss_of[optimizer] = loss

    def _keep_update(self, optimizer: Any, result: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
        operation = getattr(result, "op", result)
        if self._is_for_sessions(getattr(operation, "graph", None)):
            loss = self._loss_of.get(optimizer)
            losses = (loss,) if loss is not None and loss.graph is operation.graph else ()
            self._keep(operation, losses, pairs, assigned=False)

    def taken(self, losses: Any, sources: Any, gradients: Any) -> bool:
        """Keep the gradients that a script took in a graph for sessions. Return False if it is another graph."""
        flatten = self._tf.nest.flatten
        loss_tensors = flatten(losses)
        if not loss_tensors or not self._is_for_sessions(getattr(loss_tensors[0], "graph", None)):
            return False
        pairs = [
            (gradient, variable)
            for gradient, variable in zip(gradients, flatten(sources))
            if gradient is not None and hasattr(variable, "assign")
        ]
        if pairs:
            first = flatten(pairs[0][0], expand_composites=True)[0]
            self._keep(first.op, tuple(loss_tensors), pairs, assigned=True)
        return True

    def _keep(
        self, operation: Any, losses: tuple[Any, ...], pairs: Sequence[tuple[Any, Any]], *, assigned: bool
    ) -> None:
        graph = operation.graph
        trained = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        parts = self._tf.nest.flatten([gradient for gradient, _ in trained], expand_composites=True)
        gradients = tuple([part for part in parts if part is not None]) if self._training.wants("backward") else ()
        variables = tuple([variable for _, variable in trained])
        _updates_in(graph).add(Update(operation, losses, gradients, variables, assigned))

    def _watch_runs(self, session: Any) -> None:
        run = session.run

        @functools.wraps(run)
        def run_(
            session_: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
        ) -> Any:
            steps: list[Step] = []
            self._sink.guarded("session", lambda: steps.extend(self._before(run, session_, fetches)))
            if not steps:
                return run(session_, fetches, feed_dict, options, run_metadata)
            (step,) = steps
            extra = [step.inputs, step.losses, step.gradients]
            result, seen = run(session_, [fetches, extra], feed_dict, options, run_metadata)
            self._sink.guarded("session", lambda: self._after(run, session_, step, seen, feed_dict))
            return result

        session.run = run_

    def _watch_callables(self, session: Any) -> None:
        run, make, made = session.run.__wrapped__, session.make_callable, session._Callable
        construct, execute = made.__init__, made.__call__
        fetched: weakref.WeakKeyDictionary[Any, tuple[Any, list[str]]] = weakref.WeakKeyDictionary()

        def around(session_: Any, fetches: Any, call: Callable[[], Any]) -> Any:
            steps: list[Step] = []
            self._sink.guarded("session", lambda: steps.extend(self._before(run, session_, fetches)))
            result = call()
            if steps:
                self._sink.guarded("session", lambda: self._after(run, session_, steps[0], ((), (), ()), None))
            return result

        @functools.wraps(make)
        def make_callable(session_: Any, fetches: Any, feed_list: Any = None, *args: Any, **kwargs: Any) -> Any:
            function = make(session_, fetches, feed_list, *args, **kwargs)
            if feed_list is not None:  # then it calls run()
                return function
            return lambda *args, **kwargs: around(session_, fetches, lambda: function(*args, **kwargs))

        @functools.wraps(construct)
        def __init__(callable_: Any, session_: Any, options: Any) -> None:
            construct(callable_, session_, options)
            fetched[callable_] = weakref.ref(session_), [*options.fetch, *options.target]

        @functools.wraps(execute)
        def __call__(callable_: Any, *args: Any, **kwargs: Any) -> Any:
            reference, names = fetched[callable_]
            return around(reference(), names, lambda: execute(callable_, *args, **kwargs))

        session.make_callable, made.__init__, made.__call__ = make_callable, __init__, __call__

    def _before(self, run: Callable[..., Any], session: Any, fetches: Any) -> Iterator[Step]:
        graph = session.graph
        step = _updates_in(graph).step(graph, self._elements(graph, fetches))
        if step is None:
            return
        weights = self._weights.setdefault(session, {})
        new = [variable for variable in step.variables if variable.name not in weights]
        if new:
            weights.update({variable.name: _Weight(str(variable.device)) for variable in new})
            with self._training.lock:
                self._training.initial(self._read(run, session, new))
        yield step

    def _read(self, run: Callable[..., Any], session: Any, variables: Sequence[Any]) -> list[_Weight]:
        weights = [self._weights[session][variable.name] for variable in variables]
        for weight, array in zip(weights, run(session, list(variables))):
            weight.array = array
        return weights

    def _elements(self, graph: Any, fetches: Any) -> list[Any]:
        elements = []
        for leaf in self._tf.nest.flatten(fetches, expand_composites=True):
            if leaf is not None:
                elements.append(graph.as_graph_element(leaf, allow_tensor=True, allow_operation=True))
        return elements

    def _after(self, run: Callable[..., Any], session: Any, step: Step, seen: Any, feeds: Any) -> None:
        inputs, losses, gradients = seen
        with self._training.lock:
            weights = self._read(run, session, step.variables)
            if self._training.wants("batch"):
                self._training.inputs([*self._fed(feeds), *inputs])
            if gradients:
                self._training.gradients(gradients)
            for loss in losses:
                self._training.loss(loss)
            self._training.step(tuple([id(weight) for weight in weights]), weights, step.owner)

    def _fed(self, feeds: Any) -> list[Any]:
        named = sorted(
            [(getattr(key, "name", str(key)), value) for key, value in (feeds or {}).items()], key=lambda p: p[0]
        )
        return [self._np.asarray(value) for _, value in named]


def _updates_in(graph: Any) -> Updates:
    """Return the updates in a graph: an attribute of it, so that they are freed together."""
    if not hasattr(graph, _UPDATES):
        setattr(graph, _UPDATES, Updates())
    updates: Updates = getattr(graph, _UPDATES)
    return updates


def watch_sessions(tf: Any, sink: Sink, training: Training) -> SessionWatcher:
    """Record what every session trains from now on as steps of ``training``."""
    watcher = SessionWatcher(tf, sink, training)
    watcher.install()
    return watcher


# Hook tf.gradients, by which a script takes gradients in a graph without a tape or an optimizer.


def watch_symbolic_gradients(tf: Any, sink: Sink, observe: Callable[[Any, Any, Any], None]) -> None:
    """Call ``observe(losses, sources, gradients)`` after each call in a script. The optimizers' own are left out."""

    def watched(compute: Callable[..., Any]) -> Callable[..., Any]:
        def gradients(ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
            derivatives = compute(ys, xs, *args, **kwargs)
            sink.guarded("gradients", lambda: observe(ys, xs, derivatives))
            return derivatives

        return gradients

    for holder in (tf, tf.compat.v1, tf.compat.v2):
        replace(holder, "gradients", watched)
