"""Roles of arrays in a JAX training: collected while a function is traced, then used at its calls."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    class Observer(Protocol):
        """Gets the flat inputs and outputs of each training call that runs."""

        def before(self, plan: Plan, inputs: list[Any]) -> None:
            """Handle the inputs of a training call, before JAX may reuse their buffers."""

        def after(self, plan: Plan, outputs: list[Any]) -> None:
            """Handle the outputs of that call."""

        def collections(self, named: dict[str, Any]) -> None:
            """Handle collections that a model of Flax returned, by name."""

        def result(self, outputs: list[Any]) -> None:
            """Handle the outputs of a call that trains weights which are none of its inputs."""

        def donated(self, inputs: list[Any]) -> None:
            """Handle inputs of another call, which is about to reuse their buffers."""


class Roles:
    """The roles of arrays: the arrays themselves in a frame, their positions in a plan.

    A gradient was taken with respect to the ``weights``. ``updated`` are the weights that an optimizer returned, and
    ``histories`` are arrays that each hold the losses of all iterations of a loop. ``collections`` are what models of
    Flax returned beside their outputs. ``gradients`` are what derivatives of a loss returned. If ``inner``, something
    was trained that is none of these: it began and ended inside a function.
    """

    def __init__(self) -> None:
        self.weights: list[Any] = []
        self.losses: list[Any] = []
        self.histories: list[Any] = []
        self.updated: list[Any] = []
        self.collections: list[Any] = []
        self.gradients: list[Any] = []
        self.inner = False

    @property
    def trains(self) -> bool:
        """Whether this is part of a training."""
        return bool(self.weights or self.updated)

    @property
    def counts(self) -> bool:
        """Whether a call of this is followed."""
        return self.trains or bool(self.collections) or self.inner


class Frame(Roles):
    """The roles found in a function while it is traced, and the depth of nested gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0


class Plan(Roles):
    """The positions of each role in the flat inputs (``weights``) and outputs (all others) of a function.

    ``passed`` are the positions of outputs that are unchanged inputs, ``names`` are the paths of all outputs.
    ``carried`` is filled in when the next call takes outputs again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.passed: set[int] = set()
        self.names: list[str] = []
        self.carried: list[int] = []

    def inherit(self, before: Plan) -> None:
        """Take over what calls of an earlier trace showed, or will show, such as one for a different batch size."""
        if (self.weights, self.names, self.passed) == (before.weights, before.names, before.passed):
            self.updated, self.carried = self.updated or before.updated, before.carried


NOTHING = Plan()


def places_of(wanted: Sequence[Any], leaves: Sequence[Any]) -> list[int]:
    """Return the positions of the wanted arrays among the leaves, without repetitions and missing ones."""
    place = {id(leaf): index for index, leaf in reversed(list(enumerate(leaves)))}
    return list(dict.fromkeys([place[id(array)] for array in wanted if id(array) in place]))


def of_loop(body: Plan, first: int, number: int) -> Plan:
    """Return the plan of a loop from the plan of its body. Weights among the carried values are returned updated."""
    plan = Plan()
    plan.weights, plan.passed, plan.inner = body.weights, set(), body.inner
    plan.losses = [place for place in body.losses if place < number]
    plan.histories = [*body.histories, *[place for place in body.losses if place >= number]]
    plan.updated = body.updated or [place - first for place in body.weights if first <= place < first + number]
    return plan
