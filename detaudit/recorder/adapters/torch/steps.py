"""Keep apart what the threads of a process train, each with steps of its own."""

from __future__ import annotations

import itertools
import threading
import weakref

from ...process import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ...training.steps import Training


class Steps:
    """What one thread, or one task of a pool of threads, trains: the step that it is in."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.optimizers = 0
        self.stepping = False
        self.unscaled: tuple[Callable[[], Any], Any] | None = None
        self.leaves: list[Any] = []
        self.versions: list[int] = []
        self.accumulated: tuple[Callable[[], Any], int] | None = None
        """A weight of an optimizer that has a gradient since the last backward pass, and its version."""

    def forget_leaves(self) -> None:
        """Forget the leaves of the last backward pass: its step has ended."""
        self.leaves, self.versions, self.accumulated = [], [], None


class ThreadSteps(threads.PerThread):
    """The steps of all threads. What the main thread trains, and threads of torch, is one training."""

    main: Steps
    beside: list[Steps]

    def __init__(self, training: Training) -> None:
        self.constructed: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.homes: weakref.WeakKeyDictionary[Any, Steps] = weakref.WeakKeyDictionary()
        self.latest: Callable[[], Any] = lambda: None
        """The optimizer that was made last or made the latest step, None if it was freed."""
        super().__init__(Steps(training), lambda: Steps(training.beside()))

    def forget(self) -> None:
        """Start over, as in a forked child, in which all optimizers that were ``constructed`` exist too."""
        self.main.training.forget()
        self.homes = weakref.WeakKeyDictionary()
        self.restart(Steps(self.main.training))

    def add(self, optimizer: Any) -> None:
        """Note that this thread constructed an optimizer."""
        with self.main.training.lock:  # under which the hooks of other threads go through them
            self.constructed[optimizer] = threading.get_ident()

    def now(self) -> Steps:
        """Return the steps of this thread."""
        found: Steps = super().now()
        return found

    def written(self, steps: Steps) -> bool:
        """Return whether the last backward pass was for weights that were written to since, or may have been.

        What is written through ``.data``, and a weight that is replaced by another tensor, cannot be seen. So all
        weights that belong to no optimizer count as written to.
        """
        if [leaf._version for leaf in steps.leaves] != steps.versions:
            return True
        leaves = {id(leaf) for leaf in steps.leaves}
        return not any(id(p) in leaves for p in self.owned())

    def owned(self, steps: Steps | None = None) -> Iterator[Any]:
        """Yield the weights of all optimizers, those of the ``latest`` first: mostly that is the one in question.

        With ``steps``, only of those that stepped there, and that this thread constructed and no thread used so far.
        The gradients of others must not be touched: another thread may be computing them, and reading one that is
        replaced crashes.
        """
        here, latest = threading.get_ident(), self.latest()
        for optimizer in itertools.chain([latest] if latest is not None else [], self.constructed):
            home = self.homes.get(optimizer) if steps is not None else None
            if home is steps or (home is None and self.constructed.get(optimizer) == here):
                for group in optimizer.param_groups:
                    yield from group["params"]

    def _are_owned(self, leaves: Iterable[Any]) -> bool:
        others = {id(leaf) for leaf in leaves}
        for weight in self.owned():
            others.discard(id(weight))
            if not others:
                break
        return not others

    def accumulated(self, steps: Steps) -> tuple[Callable[[], Any], int] | None:
        """Return a weight of an optimizer that has a gradient, and its version; None if there is none."""
        return next(((weakref.ref(p), p._version) for p in self.owned(steps) if p.grad is not None), None)

    def drop_references(self, tensors: Sequence[Any]) -> None:
        """Drop all weak references to these tensors."""
        for steps in (self.main, *self.beside):
            steps.training.weights.drop_references(tensors)
            weight = steps.accumulated[0]() if steps.accumulated is not None else None
            if any([weight is one for one in tensors]):
                steps.accumulated = None

    def thrown_away(self, steps: Steps, leaves: Callable[[], list[Any]]) -> bool:
        """Return whether nothing was done with the gradients of the last backward pass, and no weight has one any more.

        So it was a probe, such as for a batch size, or its loss was not finite. If the ``leaves`` of the next one are
        not all of optimizers, weights may be updated by hand.
        """
        if steps.accumulated is None or steps.stepping or not steps.training.pending:
            return False
        weight = steps.accumulated[0]()
        if weight is not None and weight._version != steps.accumulated[1]:
            return False
        if any(p.grad is not None for p in itertools.chain(steps.leaves, self.owned(steps))):
            return False
        return self._are_owned(leaves())

    def of_leaves(self, leaves: Iterable[Any], optimized: Iterable[tuple[Any, Steps]]) -> Steps | None:
        """Return the steps in which these weights are trained already, None if there are none.

        Several threads may compute gradients of one model.
        """
        ids = {id(leaf) for leaf in leaves}
        known = [(leaf, steps) for steps in (self.main, *self.beside) for leaf in steps.leaves]
        return next((steps for leaf, steps in (*optimized, *known) if id(leaf) in ids), None)


def leaves_of(torch: Any, outputs: Iterable[Any]) -> list[Any]:
    """Return the leaves of the graph of these losses, in an order that depends on the graph, not on addresses."""
    leaves, seen = [], set()
    stack = [output.grad_fn for output in outputs if output.grad_fn is not None]
    while stack:  # depth first along next_functions
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            leaves.append(variable)
        stack.extend([function for function, _ in node.next_functions])
    return leaves
