"""Hook torch: every backward pass for its loss, every optimizer step for its weights."""

from __future__ import annotations

import functools
import os
import sys
import weakref

from ...process.headroom import headroom
from ...training import generators
from ...training.outputs import values_in
from ...training.steps import Training
from ..hyperparameters import STAGE, Hyperparameters
from .compiling import never_compile
from .graphs import CudaGraphs
from .hooks import Hooks
from .inputs import Calls, data_in
from .modules import ModuleStates, in_loader_worker
from .ranks import OwnGradients, has_others
from .reader import TorchReader
from .scaling import ScaledLosses
from .steps import Sites, Steps, ThreadSteps, calling_line, leaves_of
from .successors import successors
from .swaps import watch_swaps
from .targets import targets_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

    from ...process.recorder import Recorder


class TorchWatcher:
    """Installs the hooks, and turns their calls into steps.

    With an optimizer, a step is a call of its ``step``. Without one (``p -= lr * p.grad``), a step ends when the next
    backward pass begins, and its weights are the leaves of the graph of the loss.
    """

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._sink = recorder.sink
        self._reader = TorchReader(torch)
        generators.watch("torch", self._reader.generator_states)
        self._training = Training("torch", recorder, self._reader)
        self._modules = ModuleStates(torch, self._reader, self._training.freed)
        self._threads = ThreadSteps(self._training)
        self._scaled = ScaledLosses(torch, self._sink, self._threads)
        self._own = OwnGradients(self._reader)
        self._graphs = CudaGraphs(torch, self._sink)
        self._optimizers: weakref.WeakKeyDictionary[Any, tuple[int, Steps]] = weakref.WeakKeyDictionary()
        self._orders: weakref.WeakKeyDictionary[Any, tuple[list[int], list[int]]] = weakref.WeakKeyDictionary()
        self._any_optimizer = False
        self._sites = Sites()
        self._hyperparameters = Hyperparameters(recorder.sink)
        recorder.at_end(self._finish, self._forget)

    def install(self) -> None:
        """Install the hooks."""
        torch, hooks = self._torch, Hooks(self._torch, self._sink, self._training, self._reader)
        optimizer = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizer, "register_optimizer_step_post_hook"):
            for register, observe in (
                (optimizer.register_optimizer_step_pre_hook, self._before_step),  # type: ignore[union-attr]
                (optimizer.register_optimizer_step_post_hook, self._after_step),  # type: ignore[union-attr]
            ):
                register(self._outside_of_gradients(hooks.anywhere(observe)))
            self._watch_optimizers(torch.optim.Optimizer)
            if self._training.wants(STAGE):
                self._watch_schedulers(sys.modules.get("torch.optim.lr_scheduler"))
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
        self._scaled.watch(scaler)
        watch_swaps(torch, hooks.anywhere(self._threads.drop_references))
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
                before(t_outputs, calling_line(folder, sys._getframe(1)))
                result = run(t_outputs, *args, **kwargs)
                after(result, kwargs.get("accumulate_grad"))
            return result

        never_compile(torch, run_backward, callees=False)
        torch.autograd._engine_run_backward = run_backward
        graph._engine_run_backward = run_backward  # type: ignore[attr-defined]
        Calls(torch, hooks.within(self._on_call), hooks.within(self._on_return)).watch()
        if self._training.wants("state"):
            self._training.states.append(self._modules)
            self._modules.install(hooks.anywhere)

    def _on_call(self, module: Any, call: Any, learns: bool) -> None:
        self._modules.ran(module)
        if call is None:
            return
        if learns and self._training.wants("batch"):
            data = [one for one in data_in(self._torch, call) if self._modules.tensors(one)]
            self._threads.now().training.inputs(data)
        outputs = self._training.outputs
        outputs.entered()
        if outputs.each and not in_loader_worker():
            arguments = values_in(call, self._modules.tensors)
            outputs.calling(module, lambda: self._modules.weights(module), arguments)

    def _on_return(self, result: Any) -> None:
        if not in_loader_worker():
            self._training.outputs.returned(values_in(result, self._modules.tensors))

    def _watch_optimizers(self, base: Any) -> None:
        construct = base.__init__

        @functools.wraps(construct)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._any_optimizer = True
            self._training.ends_late = self._threads.now().training.ends_late = False
            construct(optimizer, *args, **kwargs)
            self._threads.add(optimizer)
            self._threads.latest = weakref.ref(optimizer)
            frame = sys._getframe(1)
            self._sink.guarded("optimizer", lambda: self._hyperparameters.set_by(id(optimizer), frame))

        base.__init__ = __init__

    def _watch_schedulers(self, schedulers: Any) -> None:
        """Note which line calls a scheduler, in each class that has a ``step`` of its own."""

        def make(step: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(step)
            def step_(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
                optimizer, frame = getattr(scheduler, "optimizer", None), sys._getframe(1)
                self._sink.guarded("scheduler", lambda: self._hyperparameters.set_by(id(optimizer), frame))
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
        steps = self._threads.now()
        if self._threads.thrown_away(steps, lambda: leaves_of(self._torch, losses, self._reader)):
            steps.training.discard()
            self._own.forget()
            steps.forget_leaves()
        if not steps.optimizers or self._maybe_by_hand(steps, line, losses):
            leaves = leaves_of(self._torch, losses, self._reader)
            steps = self._training_them(leaves, steps)
            self._end_undetected_step(steps)
            self._threads.began(steps, leaves, self._reader)
            if steps.optimizers:
                self._sites.searched(line, losses, bool(steps.unowned))
            if steps.training.steps == 0 and not steps.training.pending:
                steps.training.initial(leaves)
        if self._training.wants("batch"):
            steps.training.inputs(targets_of(self._torch, losses))
        if self._training.wants("backward", "reduce") and has_others():
            self._own.before_backward([*steps.leaves, *self._threads.owned()], steps.training)
        for loss in losses:
            steps.training.loss(self._reader.plain(self._scaled.unscaled(loss)).clone())

    def _training_them(self, leaves: list[Any], steps: Steps) -> Steps:
        """Return the steps in which these weights are trained, those of this thread if there are no others."""
        self._threads.keep(steps)
        if steps is self._threads.main or steps.optimizers:
            return steps
        optimized = [(p, home) for one, (_, home) in self._optimizers.items() for p in self._parameters(one)]
        found = self._threads.of_leaves(leaves, optimized) or steps
        if found is not steps:
            found.training.take_over(steps.training)
        return found

    def _after_backward(self, result: Any, accumulates: Any) -> None:
        steps = self._threads.now()
        if not self._any_optimizer and self._training.wants("backward", "reduce"):
            returned = [gradient for gradient in result or () if gradient is not None]  # of autograd.grad
            found = returned or [leaf.grad for leaf in steps.leaves if leaf.grad is not None]
            steps.training.gradients(found, self._own.taken(steps.leaves))
        steps.accumulated = self._threads.accumulated(steps) if accumulates else None

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
        return not steps.leaves or self._threads.written(steps, self._reader)

    def _end_undetected_step(self, steps: Steps, at_end: bool = False) -> None:
        """End a step whose end no hook detected: in a loop without an optimizer, or with a compiled optimizer step."""
        if not steps.leaves or not steps.training.pending:
            return
        if self._threads.written(steps, self._reader, at_end=at_end):
            steps.training.step(tuple([id(leaf) for leaf in steps.leaves]), steps.leaves)

    def _parameters(self, optimizer: Any) -> list[Any]:
        """Return the parameters of an optimizer in the order of their modules, not of its groups."""
        found = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        ids = [id(parameter) for parameter in found]
        known, order = self._orders.get(optimizer, ([], []))
        if known != ids:
            named = self._modules.named(found, self._threads.now().leaves)
            places = {id(parameter): place for place, parameter in enumerate(named)}
            order = sorted(range(len(found)), key=lambda place: places[ids[place]])
            self._orders[optimizer] = ids, order
        return [found[place] for place in order]

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        now = self._threads.now()
        now.stepping = True
        if optimizer not in self._optimizers:
            now.optimizers += 1
            self._threads.keep(now)
            self._optimizers[optimizer] = now.optimizers, now
            self._threads.homes[optimizer] = now
            parameters = self._parameters(optimizer)
            elsewhere = self._threads.of_leaves(parameters, ())
            if elsewhere is not None and elsewhere is not now and not elsewhere.training.steps:
                now.training.take_over(elsewhere.training)  # other threads compute the gradients
                elsewhere.forget_leaves()
            now.forget_leaves()
            now.training.initial(parameters)

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._before_step(optimizer)
        parameters = self._parameters(optimizer)
        now, (number, steps) = self._threads.now(), self._optimizers[optimizer]
        if now is not steps:  # the last step was in another thread
            steps.training.take_over(now.training)
            now.forget_leaves()
        if self._training.wants("backward", "reduce"):
            steps.training.gradients([p.grad for p in parameters if p.grad is not None], self._own.taken(parameters))
        if self._training.wants(STAGE):
            self._hyperparameters.at_step(
                steps.training, number, id(optimizer), optimizer.param_groups, self._plain_number
            )
        now.note_unowned(self._modules.names)
        steps.training.step(number, parameters, optimizer)
        self._threads.latest = weakref.ref(optimizer)
        self._training.outputs.updated()
        steps.forget_leaves()
        now.stepping = False

    def _before_replay(self, leaves: list[Any], _: Any) -> None:
        if leaves and not self._inside_backward():
            self._end_undetected_step(self._threads.now())

    def _after_replay(self, leaves: list[Any], optimizers: list[Any]) -> None:
        """Record the steps that were captured in a CUDA graph, which no hook sees when it is replayed: their weights.

        Weights without an optimizer may be updated in the graph or after it. Those whose optimizer steps after the
        replay are left to it, and a graph that is replayed within a backward pass to that.
        """
        if self._inside_backward():
            return
        for optimizer in optimizers:
            self._after_step(optimizer)
        unowned = self._threads.unowned(leaves)
        steps = self._threads.now()
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

    def _finish(self) -> None:
        with self._reader.undisturbed():
            for steps in (*self._threads.beside, self._threads.main):
                self._end_by_hand(steps)
            self._training.finish_all([steps.training for steps in self._threads.beside])

    def _end_by_hand(self, steps: Steps) -> None:
        """Hold what was updated by hand until the end, when also tensors count that a last update made."""
        training, pending = steps.training, steps.training.pending
        self._end_undetected_step(steps, at_end=True)
        if steps.leaves and pending and (steps.replaced or training.steps <= 1):
            made = successors(self._torch, steps.unowned)
            if made:
                training.weights.hold("made last", made, None)
        if steps.by_hand:
            training.weights.hold("by hand", [*steps.by_hand.values()], None)

    def _forget(self) -> None:
        headroom.forget()
        self._threads.forget()
        self._modules.forget()
        self._optimizers = weakref.WeakKeyDictionary()
        self._hyperparameters.forget()


def install(torch: ModuleType, recorder: Recorder) -> None:
    """Record the trainings of this torch from now on."""
    recorder.sink.write({"k": "framework", "name": "torch", "version": str(torch.__version__)})
    TorchWatcher(torch, recorder).install()
