"""Find which updates of weights in a graph a session run executes: those of optimizers, and assignments by hand."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

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
    found: set[Any] = set()
    stack = list(operations)
    while stack:
        operation = stack.pop()
        if operation not in found:
            found.add(operation)
            stack += [tensor.op for tensor in operation.inputs]
            stack += operation.control_inputs
    return found


def _assigned(graph: Any, running: set[Any]) -> tuple[dict[Any, Any], Any]:
    """Return the trainable variables that these operations give values computed from the ones before, and an operation.

    Initializers and checkpoints set them too, but to what does not depend on their values.
    """
    found: dict[Any, Any] = {}
    writes = [op for op in running if op.type.startswith(_WRITES) and op.inputs]
    if not writes:
        return found, None
    handles = {getattr(variable, "handle", variable).op: variable for variable in graph.get_collection(_TRAINABLE)}
    owners = []
    for op in writes:
        handle = op.inputs[0].op
        variable = handles.get(handle)
        if variable is None or not variable.dtype.base_dtype.is_floating:
            continue
        if op.type not in _ASSIGNS or handle in _ancestors([op.inputs[1].op]):
            found[handle] = variable
            owners.append(op)
    ordered = {handle: variable for handle, variable in handles.items() if handle in found}
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
