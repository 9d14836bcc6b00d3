"""What plays which part in a JAX training: noted while a function is traced, planned for its calls."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    class Observer(Protocol):
        """Is told of calls that are executed, with their flat inputs and outputs."""

        def before(self, plan: Plan, inputs: list[Any]) -> None:
            """Take notice of a training call, before JAX may reuse the buffers of its inputs."""

        def after(self, plan: Plan, outputs: list[Any]) -> None:
            """Take notice of what that call returned."""

        def donated(self, inputs: list[Any]) -> None:
            """Take notice that the buffers of these inputs are about to be reused by another call."""


class Roles:
    """Which arrays are what: the arrays themselves in a frame, their positions in a plan.

    ``weights`` are what a gradient was taken with respect to, ``updated`` what an optimizer made of them;
    ``histories`` are losses of all rounds of a loop in one array.
    """

    def __init__(self) -> None:
        self.weights: list[Any] = []
        self.losses: list[Any] = []
        self.histories: list[Any] = []
        self.updated: list[Any] = []

    @property
    def trains(self) -> bool:
        """Whether there is any training in it."""
        return bool(self.weights or self.updated)


class Frame(Roles):
    """What was noted in a function while it is traced, and how deep in gradients it just is."""

    def __init__(self) -> None:
        super().__init__()
        self.gradients = 0


class Plan(Roles):
    """What is where among the flat inputs (``weights``) and outputs (all else) of a function.

    ``passed`` are the outputs that are inputs, untouched; ``size`` is the number of outputs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.passed: set[int] = set()
        self.size = 0

    def follow(self, before: Plan) -> None:
        """Take over what only the calls of an earlier trace, such as for another size of batch, could show."""
        if not self.updated and (self.weights, self.size, self.passed) == (before.weights, before.size, before.passed):
            self.updated = before.updated


NOTHING = Plan()


def places_of(wanted: Sequence[Any], leaves: Sequence[Any]) -> list[int]:
    """Return where the wanted arrays stand among the leaves, each once, those that are there."""
    place = {id(leaf): index for index, leaf in reversed(list(enumerate(leaves)))}
    return list(dict.fromkeys([place[id(array)] for array in wanted if id(array) in place]))


def of_loop(body: Plan, first: int, number: int) -> Plan:
    """Return the plan of a loop, given the one of its body: what is carried comes back updated."""
    plan = Plan()
    plan.weights, plan.passed = body.weights, set()
    plan.losses = [place for place in body.losses if place < number]
    plan.histories = [*body.histories, *[place for place in body.losses if place >= number]]
    plan.updated = body.updated or [place - first for place in body.weights if first <= place < first + number]
    return plan
