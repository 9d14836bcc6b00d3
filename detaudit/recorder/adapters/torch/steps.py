"""Keep apart what the threads of a process train, each with steps of its own."""

from __future__ import annotations

import itertools
import threading
import weakref

from ...process import threads
from ...training.weights import EVERY_STEP_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from types import CodeType
    from typing import Any

    from ...training.digest import Part
    from ...training.steps import Training
    from .reader import TorchReader

_MOST_BY_HAND = 256
_MOST_SITES = 1024
_NODES_OF_KEY = 3
_ALWAYS_READ = 2**20
"""Weights of up to this size are read at each backward pass, if they may be written to by hand."""


class Steps:
    """What one thread, or one task of a pool of threads, trains: the step that it is in."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.optimizers = 0
        self.stepping = False
        self.unscaled: tuple[Callable[[], Any], Any] | None = None
        self.leaves: list[Any] = []
        self.versions: list[int] = []
        self.unowned: list[Any] = []
        """The leaves that belong to no optimizer, whose values are ``parts``, or None if those were not read."""
        self.parts: list[Part] | None = None
        self.accumulates = False
        """Whether a second backward pass came before a step, and for weights that belong to no optimizer too."""
        self.before: dict[int, Any] = {}
        self.by_hand: dict[int, Any] = {}
        """Tensors outside of models that the first or several steps needed, though they belong to no optimizer."""
        self.replaced = False
        """Whether a script makes new weights at each step, instead of writing to those that it has."""
        self.accumulated: tuple[Callable[[], Any], int] | None = None
        """A weight of an optimizer that has a gradient since the last backward pass, and its version."""

    def forget_leaves(self) -> None:
        """Forget the leaves of the last backward pass: its step has ended."""
        self.leaves, self.versions, self.accumulated = [], [], None
        self.unowned, self.parts = [], None

    def note_unowned(self, in_models: Callable[[], Container[int]]) -> None:
        """Note, at a step of an optimizer, which tensors outside of models the script may update beside it."""
        first = self.training.steps == 0
        again = [one for one in self.unowned if (first or id(one) in self.before) and id(one) not in self.by_hand]
        if again:
            known = in_models()
            self.by_hand.update([(id(leaf), leaf) for leaf in again if id(leaf) not in known])
            while len(self.by_hand) > _MOST_BY_HAND:
                del self.by_hand[next(iter(self.by_hand))]
        self.before = {id(leaf): leaf for leaf in self.unowned}


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

    def written(self, steps: Steps, reader: TorchReader, *, at_end: bool = False) -> bool:
        """Return whether the last backward pass was for weights that were written to since, or may have been.

        Those of optimizers are left to them, unless their versions changed. What is written through ``.data`` changes
        no version, so leaves that belong to no optimizer are compared by their values. If there are no others, they
        count as written to: a script may also have replaced them.
        """
        if [leaf._version for leaf in steps.leaves] != steps.versions:
            return True
        unowned = self.unowned(steps.unowned)
        if not unowned or len(steps.unowned) == len(steps.leaves):
            return bool(unowned)
        if steps.parts is None:
            return at_end or _bytes(reader, steps.unowned) <= EVERY_STEP_BYTES
        return reader.parts(steps.unowned) != steps.parts

    def began(self, steps: Steps, leaves: list[Any], reader: TorchReader) -> None:
        """Note the leaves of a backward pass that begins."""
        before = {id(leaf) for leaf in steps.leaves}
        steps.replaced = bool(before) and before.isdisjoint(map(id, leaves))
        steps.leaves, steps.versions = leaves, [leaf._version for leaf in leaves]
        steps.unowned, steps.parts = self.unowned(leaves), None
        if 0 < len(steps.unowned) < len(leaves):
            most = EVERY_STEP_BYTES if steps.accumulates else _ALWAYS_READ
            if _bytes(reader, steps.unowned) <= most:
                steps.parts = reader.parts(steps.unowned)

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

    def unowned(self, leaves: Iterable[Any]) -> list[Any]:
        """Return those of these leaves that belong to no optimizer. A function transform gets detached weights."""
        others = {id(leaf): leaf for leaf in leaves}
        detached = any([not leaf.requires_grad for leaf in others.values()])
        places = set()
        for weight in self.owned() if others else ():
            others.pop(id(weight), None)
            if not others:
                break
            if detached:
                places.add(weight.data_ptr())
        if detached:
            return [one for one in others.values() if one.requires_grad or one.data_ptr() not in places]
        return list(others.values())

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
        return not self.unowned(leaves())

    def of_leaves(self, leaves: Iterable[Any], optimized: Iterable[tuple[Any, Steps]]) -> Steps | None:
        """Return the steps in which these weights are trained already, None if there are none.

        Several threads may compute gradients of one model.
        """
        ids = {id(leaf) for leaf in leaves}
        known = [(leaf, steps) for steps in (self.main, *self.beside) for leaf in steps.leaves]
        return next((steps for leaf, steps in (*optimized, *known) if id(leaf) in ids), None)


def leaves_of(torch: Any, outputs: Iterable[Any], reader: TorchReader) -> list[Any]:
    """Return the leaves of the graph of these losses, in an order that depends on the graph, not on addresses.

    Of a function transform such as torch.func.grad these are the tensors that it was called with.
    """
    leaves: dict[int, Any] = {}
    seen = set()
    stack = [output.grad_fn for output in outputs if output.grad_fn is not None]
    while stack:  # depth first along next_functions
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            leaf = reader.unwrapped(variable)
            leaves[id(leaf)] = leaf
        stack.extend([function for function, _ in node.next_functions])
    return list(leaves.values())


def _bytes(reader: TorchReader, tensors: Iterable[Any]) -> int:
    return sum([reader.size(tensor) for tensor in tensors])


class Sites:
    """The lines that compute gradients for nothing but weights of optimizers, so that few graphs are searched.

    A graph is recognized by its last operations. It is searched again at the 2nd, 4th, 8th, … time.
    """

    def __init__(self) -> None:
        self._times: dict[Any, int] = {}

    def is_searched(self, line: tuple[CodeType, int] | None, losses: Iterable[Any]) -> bool:
        """Return whether to search the graph of these losses."""
        key = self.key(line, losses)
        times = self._times.get(key, 0)
        if times:
            self._times[key] = times = times + 1
        return times & (times - 1) == 0

    def searched(self, line: tuple[CodeType, int] | None, losses: Iterable[Any], unowned: bool) -> None:
        """Note whether such a graph has leaves that belong to no optimizer."""
        key = self.key(line, losses)
        if unowned:
            self._times.pop(key, None)
        elif len(self._times) < _MOST_SITES:
            self._times.setdefault(key, 1)

    @staticmethod
    def key(line: tuple[CodeType, int] | None, losses: Iterable[Any]) -> Any:
        """Return what identifies a graph: the line that computes its gradients, and its last operations."""
        last = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
        for node in itertools.islice(last, _NODES_OF_KEY):  # more are appended meanwhile
            last += [function for function, _ in node.next_functions if function is not None]
        return line, tuple(map(type, last))


def calling_line(torch_folder: str, frame: Any) -> tuple[CodeType, int] | None:
    """Return the line outside of torch that called it, None if there is none."""
    while frame is not None and frame.f_code.co_filename.startswith(torch_folder):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lineno)
