"""Record backward passes, optimizer steps, scaled losses, and the gradients of one rank."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import weakref

from ...process import frames
from ...process.guard import headroom
from ...process.log import rank_and_world
from ...training import digest, framework, generators
from ...training.compilers import compiling, never_compile
from ...training.outputs import values_in
from ...training.steps import Training
from ...training.weights import EVERY_STEP_BYTES
from ..hyperparameters import STAGE, Hyperparameters
from .held import held
from .modules import Calls, ModuleStates, data_in, in_loader_worker, in_summary, targets_of
from .reader import TorchReader

# Keep what a thread trains, and which weights belong to an optimizer.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import CodeType
    from typing import Any

    from ...process.log import Sink
    from ...process.recorder import Recorder
    from ...training.digest import Part


_MOST_BY_HAND = 256
_MOST_SITES = 1024
_NODES_OF_KEY = 3
_ALWAYS_READ = 2**20
"""Weights of up to this size are read at each backward pass, if they may be written to by hand."""


class Steps(framework.Steps):
    """What one thread, or one task of a pool of threads, trains: the step that it is in."""

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self.optimizers = 0
        self.by: Steps | None = None
        """The steps of the thread that computed the last gradients of this training, which may be another one's."""
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

    def has_read(self, leaves: list[Any]) -> bool:
        """Return whether the last backward pass was for these weights as they are: threads share the work of a step."""
        return list(map(id, leaves)) == list(map(id, self.leaves)) and [one._version for one in leaves] == self.versions

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


class Optimizers:
    """All optimizers of a process, and which weights are theirs."""

    def __init__(self) -> None:
        self.constructed: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.latest: Callable[[], Any] = lambda: None
        """The optimizer that was made last or made the latest step, None if it was freed."""
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child, in which all optimizers that were ``constructed`` exist too."""
        self.homes: weakref.WeakKeyDictionary[Any, tuple[int, Steps]] = weakref.WeakKeyDictionary()
        """The optimizers that stepped, each with its number in the training of the thread in which it did so first."""

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
            _, home = self.homes.get(optimizer, (0, None)) if steps is not None else (0, None)
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


# Notice what is captured in CUDA graphs: no hook sees a step that is in one when the graph is replayed.


class _Captured:
    """What one graph trains: the weights that its backward passes reach, and the optimizers that step in it."""

    def __init__(self) -> None:
        self.leaves: dict[int, Any] = {}  # whose memory must be kept for as long as the graph is
        self.optimizers: dict[int, weakref.ref[Any]] = {}


class _Here(threading.local):
    """The graph that this thread captures."""

    graph: _Captured | None = None


class CudaGraphs:
    """The backward passes and steps of optimizers in each ``torch.cuda.CUDAGraph``."""

    def __init__(self, torch: Any, sink: Sink) -> None:
        self._torch, self._sink = torch, sink
        self._here = _Here()
        self._of_graph: weakref.WeakKeyDictionary[Any, _Captured] = weakref.WeakKeyDictionary()

    def watch(self, before: Callable[..., None], after: Callable[..., None]) -> None:
        """Call ``before(leaves, optimizers)`` and ``after(leaves, optimizers)`` around replays of what trains."""
        kind = getattr(self._torch.cuda, "CUDAGraph", None)
        if not isinstance(kind, type) or not {"capture_begin", "capture_end", "replay"} <= vars(kind).keys():
            return  # a torch without CUDA graphs
        begin, end, replay = kind.capture_begin, kind.capture_end, kind.replay  # type: ignore[attr-defined]

        @functools.wraps(begin)
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = begin(graph, *args, **kwargs)
            self._here.graph = self._of_graph[graph] = _Captured()
            return result

        @functools.wraps(end)
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._here.graph = None
            return end(graph, *args, **kwargs)

        @functools.wraps(replay)
        def replay_(graph: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._of_graph.get(graph)
            if known is None or not (known.leaves or known.optimizers):
                return replay(graph, *args, **kwargs)
            optimizers = [one for reference in known.optimizers.values() if (one := reference()) is not None]
            before([*known.leaves.values()], optimizers)
            result = replay(graph, *args, **kwargs)
            after([*known.leaves.values()], optimizers)
            return result

        for function in (capture_begin, capture_end, replay_):
            never_compile(self._torch, function, callees=False)
        kind.capture_begin, kind.capture_end, kind.replay = (  # type: ignore[attr-defined]
            capture_begin,
            capture_end,
            replay_,
        )

    def capturing(self) -> bool:
        """Return whether this thread captures a graph."""
        return self._here.graph is not None

    def stepped(self, optimizer: Any) -> None:
        """Note that an optimizer makes a step in the graph that is being captured."""
        if self._here.graph is not None:
            self._here.graph.optimizers[id(optimizer)] = weakref.ref(optimizer)

    def differentiated(self, outputs: Iterable[Any], reader: TorchReader) -> None:
        """Note the weights that a backward pass in the graph that is being captured computes gradients for."""
        graph = self._here.graph
        if graph is not None:
            losses = [output for output in outputs if isinstance(output, self._torch.Tensor)]
            self._sink.guarded(
                "graph", lambda: graph.leaves.update([(id(one), one) for one in leaves_of(self._torch, losses, reader)])
            )


# Make hooks: functions of the recorder that torch or the script calls, and that neither notices.


class Hooks:
    """Makes hooks that record their failures, and that torch.compile skips."""

    def __init__(self, torch: Any, sink: Sink, training: Training, reader: TorchReader) -> None:
        self._torch, self._sink, self._training, self._reader = torch, sink, training, reader

    def within(self, observe: Callable[..., None]) -> Callable[..., None]:
        """Return a hook that is called only where there is headroom."""
        is_compiling, training, reader = compiling(self._torch), self._training, self._reader
        c, transform = self._torch._C, reader.transform

        def guarded(*args: Any) -> None:
            if is_compiling() or not reader.may_read():
                return
            try:
                # What reader.undisturbed() does, in the same few calls but none of Python's if there is no mode.
                with training.lock, c.DisableTorchFunction():
                    if c._len_torch_dispatch_stack() or transform() is not None:
                        with reader.undisturbed():
                            observe(*args)
                        return
                    learns = c.is_grad_enabled()
                    c._set_grad_enabled(False)
                    try:
                        observe(*args)
                    finally:
                        c._set_grad_enabled(learns)
            except Exception as error:
                self._sink.trouble(observe.__name__, error)

        never_compile(self._torch, guarded, callees=True)
        return guarded

    def anywhere(self, observe: Callable[..., None]) -> Callable[..., None]:
        """Return a hook that makes its own headroom."""
        within = self.within(observe)

        def guarded(*args: Any) -> None:
            with headroom:
                within(*args)

        never_compile(self._torch, guarded, callees=True)
        return guarded


# Digest the gradients of one rank as its backward pass computes them, before they are combined with those of others.
#
# DistributedDataParallel adds up gradients during the backward pass, a script may do so after it. What the optimizer is
# given then differs on all ranks if it does on one.


class _Hook:
    """Digests the gradient of one weight. Unless it says that it is not saved, torch warns when the weight is."""

    __torch_unserializable__ = True

    def __init__(self, take: Callable[[int, Any], None], weight_id: int) -> None:
        self._take, self._place = take, weight_id

    def __call__(self, gradient: Any) -> None:
        self._take(self._place, gradient)


class OwnGradients:
    """Hooks weights, whose gradients are digested one by one until the step ends."""

    def __init__(self, reader: TorchReader) -> None:
        self._reader = reader
        self._parts: dict[int, list[digest.Part]] = {}
        self._due = False
        self._take: Callable[[int, Any], None] = self._digest

    def install(self, hooks: Hooks) -> None:
        """Let these make the hooks."""
        self._take = hooks.anywhere(self._digest)

    def before_backward(self, weights: Sequence[Any], training: Training) -> None:
        """Put a hook on each weight that has none."""
        self._due = training.due(training.steps + 1, weights)
        for weight in weights if self._due else ():
            known = weight._backward_hooks or {}
            if weight.requires_grad and weight.is_leaf and not any([type(one) is _Hook for one in known.values()]):
                weight.register_hook(_Hook(self._take, id(weight)))

    def _digest(self, weight_id: int, gradient: Any) -> None:
        if self._due:
            self._parts.setdefault(weight_id, []).extend(self._reader.parts([gradient]))

    def forget(self) -> None:
        """Drop what was digested: the gradients were thrown away."""
        self._parts.clear()

    def taken(self, weights: Sequence[Any]) -> str | None:
        """Return one digest of the gradients of these weights since their last step, None if there are none."""
        parts = [part for weight in weights for part in self._parts.pop(id(weight), ())]
        return digest.of_parts(parts) if parts else None


def has_others() -> bool:
    """Return whether other ranks train with this process."""
    if (rank_and_world()[1] or 1) > 1:
        return True
    group = sys.modules.get("torch.distributed")
    return bool(group and group.is_available() and group.is_initialized() and group.get_world_size() > 1)


# Find the losses that the script computed, before a GradScaler scaled them for the backward pass.


class ScaledLosses:
    """The losses that were scaled last, by thread."""

    def __init__(self, torch: Any, all_steps: framework.Framework[Steps]) -> None:
        self._torch, self._all_steps = torch, all_steps

    def watch(self, scaler: Any) -> None:
        """Wrap the method of a class of scalers that scales a loss."""
        scale = scaler.scale

        @functools.wraps(scale)
        def scale_(scaler_: Any, outputs: Any) -> Any:
            scaled = scale(scaler_, outputs)
            with self._all_steps.guard("scale"):
                self._keep(scaled, outputs)
            return scaled

        scaler.scale = scale_

    def _keep(self, scaled: Any, outputs: Any) -> None:
        if isinstance(outputs, self._torch.Tensor):
            self._all_steps.now.unscaled = (weakref.ref(scaled), outputs.detach())

    def unscaled(self, output: Any) -> Any:
        """Return the loss from which a scaled loss was computed, or the loss itself if it was not scaled."""
        scaled, loss = self._all_steps.now.unscaled or (lambda: None, output)
        return loss if scaled() is output else output


# Find the weights that a last update by hand made: no backward pass has them, only the script's own variables.


_MOST = 100_000
"""Values that are looked at."""


def successors(torch: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return the tensors in global variables of the script that have the shape and type of a leaf and are none.

    What is in no variable at the end can have no effect any more, but for what was printed or saved.
    """
    kinds = {(tuple(leaf.shape), leaf.dtype) for leaf in leaves}
    known = {id(leaf) for leaf in leaves}
    main = sys.modules.get("__main__")
    tensors = []
    for value in _values(vars(main) if main is not None else {}, torch.nn.Module):
        if isinstance(value, torch.Tensor) and id(value) not in known and (tuple(value.shape), value.dtype) in kinds:
            known.add(id(value))
            tensors.append(value)
    return tensors


def _values(variables: dict[str, Any], recorded: type) -> Iterator[Any]:
    """Yield the values in nested collections, and in objects of classes of the script, in their order.

    What is in ``recorded`` objects, the modules, is recorded already, but for buffers that no checkpoint has.
    """
    waiting = [value for name, value in reversed(list(variables.items())) if not name.startswith("__")]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += reversed(list(value.values()))
        elif isinstance(value, (list, tuple)):
            waiting += reversed(value)
        elif isinstance(value, recorded):
            continue
        elif type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
            waiting += reversed(list(vars(value).values()))
        else:
            yield value


# Drop the recorder's weak references to tensors that are swapped, because torch swaps no tensor that has any.


def watch_swaps(torch: Any, drop: Callable[[Any], None]) -> None:
    """Call ``drop`` with both tensors before each ``swap_tensors``, as in ``model.to()`` of a sharded model."""
    swap = getattr(torch.utils, "swap_tensors", None)
    if swap is None:  # before torch 2.3
        return

    @functools.wraps(swap)
    def swap_tensors(t1: Any, t2: Any) -> Any:
        drop((t1, t2))
        return swap(t1, t2)

    torch.utils.swap_tensors = swap_tensors


# Hook torch: every backward pass for its loss, every optimizer step for its weights.


class Torch(framework.Framework[Steps]):
    """Installs the hooks, and turns their calls into steps.

    With an optimizer, a step is a call of its ``step``. Without one (``p -= lr * p.grad``), a step ends when the next
    backward pass begins, and its weights are the leaves of the graph of the loss.
    """

    name = "torch"

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._reader = TorchReader(torch)
        super().__init__(recorder, self._reader)
        generators.watch("torch", self._reader.generator_states)
        self._modules = ModuleStates(torch, self._reader, self.training.freed)
        self._scaled = ScaledLosses(torch, self)
        self._own = OwnGradients(self._reader)
        self._graphs = CudaGraphs(torch, self.sink)
        self._optimizers = Optimizers()
        self._orders: weakref.WeakKeyDictionary[Any, tuple[list[int], list[int]]] = weakref.WeakKeyDictionary()
        self._any_optimizer = False
        self._sites = Sites()
        self._hyperparameters = Hyperparameters(self.sink)

    def steps(self, training: Training) -> Steps:
        """Return the steps of a thread that begins to train."""
        return Steps(training)

    def undisturbed(self) -> AbstractContextManager[object]:
        """Return the context in which reading a tensor is no part of a training."""
        return self._reader.undisturbed()

    def forget(self, forked: bool) -> None:
        """Start over."""
        headroom.forget()
        self._optimizers.forget()
        self._modules.forget()
        self._hyperparameters.forget()
        super().forget(forked)

    def install(self, torch: Any) -> None:
        """Install the hooks."""
        hooks = Hooks(torch, self.sink, self.training, self._reader)
        optimizer = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizer, "register_optimizer_step_post_hook"):
            for register, observe in (
                (optimizer.register_optimizer_step_pre_hook, self._before_step),  # type: ignore[union-attr]
                (optimizer.register_optimizer_step_post_hook, self._after_step),  # type: ignore[union-attr]
            ):
                register(self._outside_of_gradients(hooks.anywhere(observe)))
            self._watch_optimizers(torch.optim.Optimizer)
            if self.training.wants(STAGE):
                self._watch_schedulers(sys.modules.get("torch.optim.lr_scheduler"))
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
        self._scaled.watch(scaler)
        watch_swaps(torch, hooks.anywhere(self._drop_references))
        graph = sys.modules.get("torch.autograd.graph")
        run = torch.autograd._engine_run_backward if hasattr(torch.autograd, "_engine_run_backward") else None
        if run is None or graph is None:
            raise AttributeError(f"cannot record losses: torch {torch.__version__} has no _engine_run_backward")
        self._own.install(hooks)
        before, after = hooks.within(self._before_backward), hooks.within(self._after_backward)
        captured = self._graphs.capturing
        self._graphs.watch(hooks.anywhere(self._before_replay), hooks.anywhere(self._after_replay))
        folder, in_progress = os.path.dirname(torch.__file__) + os.sep, self._reader.gradients_in_progress

        def run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            with headroom:
                if (
                    in_progress() > 1
                ):  # what it computes is part of the function that the outer transform differentiates
                    return run(t_outputs, *args, **kwargs)
                if captured():
                    self._graphs.differentiated(t_outputs, self._reader)
                before(t_outputs, calling_line(folder, sys._getframe().f_back))
                result = run(t_outputs, *args, **kwargs)
                after(result, kwargs.get("accumulate_grad"))
            return result

        never_compile(torch, run_backward, callees=False)
        torch.autograd._engine_run_backward = run_backward
        graph._engine_run_backward = run_backward  # type: ignore[attr-defined]
        Calls(torch, hooks.within(self._on_call), hooks.within(self._on_return)).watch()
        if self.training.wants("state"):
            self.training.states.append(self._modules)
            self._modules.install(hooks.anywhere)
        self.training.held = lambda: held(torch, self._modules, self._reader)

    def _on_call(self, module: Any, call: Any, learns: bool) -> None:
        self._modules.ran(module)
        if call is None:
            return
        if learns:
            self.now.training.begins()
        if learns and self.training.wants("batch"):
            data = [one for one in data_in(self._torch, call) if self._modules.tensors(one)]
            self.now.training.inputs(data)
        outputs = self.training.outputs
        outputs.entered()
        if outputs.each and not in_loader_worker() and not in_summary():
            arguments = values_in(call, self._modules.tensors)
            outputs.calling(module, lambda: self._modules.weights(module), arguments)

    def _on_return(self, result: Any) -> None:
        if not in_loader_worker() and not in_summary():
            self.training.outputs.returned(values_in(result, self._modules.tensors))

    def _watch_optimizers(self, base: Any) -> None:
        construct = base.__init__

        @functools.wraps(construct)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._any_optimizer = True
            self.training.ends_late = self.now.training.ends_late = False
            construct(optimizer, *args, **kwargs)
            with self.training.lock:  # under which the hooks of other threads go through them
                self._optimizers.constructed[optimizer] = threading.get_ident()
            self._optimizers.latest = weakref.ref(optimizer)
            with self.guard("optimizer"):
                self._hyperparameters.set_by(id(optimizer), sys._getframe().f_back)

        base.__init__ = __init__

    def _watch_schedulers(self, schedulers: Any) -> None:
        """Note which line calls a scheduler, in each class that has a ``step`` of its own."""

        def make(step: Callable[..., Any]) -> Callable[..., Any]:
            @frames.unseen_by_warnings
            @functools.wraps(step)
            def step_(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
                with self.guard("scheduler"):
                    self._hyperparameters.set_by(id(getattr(scheduler, "optimizer", None)), sys._getframe().f_back)
                return step(scheduler, *args, **kwargs)

            return step_

        kinds: list[Any] = list(vars(schedulers).values()) if schedulers is not None else []
        for kind in kinds:
            if isinstance(kind, type) and "step" in vars(kind) and kind.__module__ == schedulers.__name__:
                setattr(kind, "step", make(vars(kind)["step"]))  # noqa: B010 - types have no such attribute

    def _outside_of_gradients(self, hook: Callable[..., None]) -> Callable[..., None]:
        """Return a hook that leaves out what a function does while torch.func.grad differentiates it."""

        def observe(*args: Any) -> None:
            if self._graphs.capturing():
                self._graphs.stepped(args[0])
            elif not self._reader.gradients_in_progress():
                hook(*args)

        never_compile(self._torch, observe, callees=True)
        return observe

    def _before_backward(self, outputs: Any, line: tuple[CodeType, int] | None) -> None:
        if self._inside_backward():
            return  # inside another backward pass: checkpoint recomputation
        losses = [output for output in outputs if isinstance(output, self._torch.Tensor)]
        steps = self.now
        if self._optimizers.thrown_away(steps, lambda: leaves_of(self._torch, losses, self._reader)):
            steps.training.discard()
            self._own.forget()
            steps.forget_leaves()
        if not steps.optimizers or self._maybe_by_hand(steps, line, losses):
            leaves = leaves_of(self._torch, losses, self._reader)
            own, steps = steps, self._steps_of(leaves, steps)
            if steps.by in (None, own) or not steps.has_read(leaves):
                self._end_undetected_step(steps)
            steps.by = own
            self._optimizers.began(steps, leaves, self._reader)
            if steps.optimizers:
                self._sites.searched(line, losses, bool(steps.unowned))
            if steps.training.steps == 0 and not steps.training.pending:
                steps.training.initial(leaves)
        if self.training.wants("batch"):
            steps.training.inputs(targets_of(self._torch, losses))
        if self.training.wants("backward", "reduce") and has_others():
            self._own.before_backward([*steps.leaves, *self._optimizers.owned()], steps.training)
        for loss in losses:
            steps.training.loss(self._reader.plain(self._scaled.unscaled(loss)).clone())

    def _steps_of(self, leaves: list[Any], steps: Steps) -> Steps:
        """Return the steps in which these weights are trained, those of this thread if there are no others."""
        self.keep(steps)
        if steps is self.main or steps.optimizers:
            return steps
        optimized = [(p, home) for one, (_, home) in self._optimizers.homes.items() for p in self._parameters(one)]
        owning_steps = self._of_leaves(leaves, optimized) or steps
        if owning_steps is not steps:
            owning_steps.training.take_over(steps.training)
        return owning_steps

    def _of_leaves(self, leaves: Iterable[Any], optimized: Iterable[tuple[Any, Steps]]) -> Steps | None:
        """Return the steps in which these weights are trained already, None if there are none.

        Several threads may compute gradients of one model.
        """
        ids = {id(leaf) for leaf in leaves}
        known = [(leaf, steps) for steps in self.every for leaf in steps.leaves]
        return next((steps for leaf, steps in (*optimized, *known) if id(leaf) in ids), None)

    def _drop_references(self, tensors: Sequence[Any]) -> None:
        """Drop all weak references to these tensors."""
        for steps in self.every:
            steps.training.weights.drop_references(tensors)
            weight = steps.accumulated[0]() if steps.accumulated is not None else None
            if any([weight is one for one in tensors]):
                steps.accumulated = None

    def _after_backward(self, result: Any, accumulates: Any) -> None:
        steps = self.now
        if not self._any_optimizer and self.training.wants("backward", "reduce"):
            returned = [gradient for gradient in result or () if gradient is not None]  # of autograd.grad
            gradients = returned or [leaf.grad for leaf in steps.leaves if leaf.grad is not None]
            steps.training.gradients(gradients, self._own.taken(steps.leaves))
        steps.accumulated = self._optimizers.accumulated(steps) if accumulates else None

    def _maybe_by_hand(self, steps: Steps, line: tuple[CodeType, int] | None, losses: list[Any]) -> bool:
        """Return whether the script may update weights by hand, although there is an optimizer.

        That is if the loss depends on weights that belong to no optimizer, or at the second backward pass since a step,
        as long as weights were written to since the last one. Otherwise, gradients are being accumulated. Inside a
        step, LBFGS computes its loss several times.
        """
        if steps.stepping:
            return False
        if not steps.training.pending:
            return self._sites.is_searched(line, losses)
        steps.accumulates = steps.accumulates or bool(steps.unowned)
        return not steps.leaves or self._optimizers.written(steps, self._reader)

    def _end_undetected_step(self, steps: Steps, at_end: bool = False) -> None:
        """End a step whose end no hook detected: in a loop without an optimizer, or with a compiled optimizer step."""
        if not steps.leaves or not steps.training.pending:
            return
        if self._optimizers.written(steps, self._reader, at_end=at_end):
            steps.training.step(tuple([id(leaf) for leaf in steps.leaves]), steps.leaves)

    def _parameters(self, optimizer: Any) -> list[Any]:
        """Return the parameters of an optimizer in the order of their modules, not of its groups."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        ids = [id(parameter) for parameter in parameters]
        known, order = self._orders.get(optimizer, ([], []))
        if known != ids:
            named = self._modules.named(parameters, self.now.leaves)
            places = {id(parameter): index for index, parameter in enumerate(named)}
            order = sorted(range(len(parameters)), key=lambda index: places[ids[index]])
            self._orders[optimizer] = ids, order
        return [parameters[index] for index in order]

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        now = self.now
        now.stepping = True
        if optimizer not in self._optimizers.homes:
            now.optimizers += 1
            self.keep(now)
            self._optimizers.homes[optimizer] = now.optimizers, now
            parameters = self._parameters(optimizer)
            steps = self._of_leaves(parameters, ())
            if steps is not None and steps is not now and not steps.training.steps:
                now.training.take_over(steps.training)  # other threads compute the gradients
                steps.forget_leaves()
            now.forget_leaves()
            now.training.initial(parameters)

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._before_step(optimizer)
        parameters = self._parameters(optimizer)
        now, (number, steps) = self.now, self._optimizers.homes[optimizer]
        if now is not steps:  # the last step was in another thread
            steps.training.take_over(now.training)
            now.forget_leaves()
        if self.training.wants("backward", "reduce"):
            steps.training.gradients([p.grad for p in parameters if p.grad is not None], self._own.taken(parameters))
        if self.training.wants(STAGE):
            self._hyperparameters.at_step(
                steps.training, number, id(optimizer), optimizer.param_groups, self._plain_number
            )
        now.note_unowned(self._modules.names)
        steps.training.step(number, parameters, optimizer)
        self._optimizers.latest = weakref.ref(optimizer)
        self.training.outputs.updated()
        steps.forget_leaves()
        now.stepping = False

    def _before_replay(self, leaves: list[Any], _: Any) -> None:
        if leaves and not self._inside_backward():
            self._end_undetected_step(self.now)

    def _after_replay(self, leaves: list[Any], optimizers: list[Any]) -> None:
        """Record the steps that were captured in a CUDA graph, which no hook sees when it is replayed: their weights.

        Weights without an optimizer may be updated in the graph or after it. Those whose optimizer steps after the
        replay are left to it, and a graph that is replayed within a backward pass to that.
        """
        if self._inside_backward():
            return
        for optimizer in optimizers:
            self._after_step(optimizer)
        unowned = self._optimizers.unowned(leaves)
        steps = self.now
        if optimizers or len(unowned) < len(leaves):
            steps.by_hand.update([(id(leaf), leaf) for leaf in unowned])
        elif unowned:
            steps.training.step(("replayed", *map(id, unowned)), unowned)

    def _inside_backward(self) -> bool:
        return bool(self._torch._C._current_graph_task_id() != -1)

    def _plain_number(self, value: Any) -> Any:
        """Return what is recorded of a hyperparameter that is no number, such as a learning rate in a tensor."""
        if isinstance(value, self._torch.Tensor):
            return self._reader.scalar(value) if value.is_cpu and value.numel() == 1 else "tensor"
        return type(value).__name__

    def end_open_step(self, steps: Steps) -> None:
        """Hold what was updated by hand until the end, when also tensors count that a last update made."""
        training, pending = steps.training, steps.training.pending
        self._end_undetected_step(steps, at_end=True)
        if steps.leaves and pending and (steps.replaced or training.steps <= 1):
            made = successors(self._torch, steps.unowned)
            if made:
                training.weights.hold("made last", made, None)
        if steps.by_hand:
            training.weights.hold("by hand", [*steps.by_hand.values()], None)


install = Torch.start
