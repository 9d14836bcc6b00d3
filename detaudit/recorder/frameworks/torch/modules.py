"""Calls of modules: their inputs, their targets, what modules hold and return."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import types

from ...process.frames import top_module
from ...process.guard import headroom
from ...training.compilers import compiling, never_compile
from ...training.models import ModelStates, OwnTensor
from ...training.walk import leaves

# Observe the outermost calls of modules: what they are called with, and what they return.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType
    from typing import Any

    from .reader import TorchReader


def data_in(torch: Any, call: Any) -> list[Any]:
    """Return the tensors among the arguments of a call that do not require a gradient.

    The others are outputs of another module, not data.
    """
    return [leaf for leaf in leaves(call) if isinstance(leaf, torch.Tensor) and not leaf.requires_grad]


class _Inside(threading.local):
    """Whether this thread is inside a module's call."""

    now = False


class Calls:
    """What to do around each outermost call of a module, or of its method ``generate``. None of it may raise.

    ``entered(module, call, learns)`` precedes a call: ``call`` is (args, kwargs), or None if the values of this call
    are not to be read, and ``learns`` says whether gradients are enabled. ``returned(result)`` follows if they are.
    """

    def __init__(self, torch: Any, entered: Callable[[Any, Any, bool], None], returned: Callable[[Any], None]) -> None:
        self._torch = torch
        self._entered, self._returned = entered, returned
        self._compiling, self._inside = compiling(torch), _Inside()

    def watch(self) -> None:
        """Wrap Module.__call__, because a global hook would take every module of a model off torch's fast path."""
        module = self._torch.nn.Module
        call = module.__call__

        @functools.wraps(call)
        def __call__(module_: Any, *args: Any, **kwargs: Any) -> Any:
            if self._compiling() or self._inside.now:
                return call(module_, *args, **kwargs)
            return self._outermost(call, module_, args, kwargs)

        never_compile(self._torch, __call__, callees=False)
        never_compile(self._torch, Calls._outermost, callees=False)
        module.__call__ = __call__
        self._watch_classes(module)

    def _outermost(self, call: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        torch = self._torch
        self._inside.now = True
        with headroom:
            try:
                # In a backward pass a checkpoint is recomputed, and a call that is traced returns no values.
                counts = torch._C._current_graph_task_id() == -1
                reads = counts and torch._C._get_tracing_state() is None
                if counts:
                    self._entered(module, (args, kwargs) if reads else None, torch.is_grad_enabled())
                result = call(module, *args, **kwargs)
                if reads:
                    self._returned(result)
                return result
            finally:
                self._inside.now = False

    def _watch_classes(self, module: Any) -> None:
        """Wrap the method ``generate`` of each class of modules, when the class is made."""

        def __init_subclass__(cls: type[Any], /, **kwargs: Any) -> None:
            super(module, cls).__init_subclass__(**kwargs)
            owners: tuple[Any, ...] = cls.__mro__
            for owner in owners:  # it may come from a mixin
                generate = vars(owner).get("generate")
                if isinstance(generate, types.FunctionType) and generate not in wrapped:
                    owner.generate = self._generating(generate)
                    wrapped.add(owner.generate)

        wrapped: set[Any] = set()
        module.__init_subclass__ = classmethod(__init_subclass__)

    def _generating(self, generate: Callable[..., Any]) -> Any:
        @functools.wraps(generate)
        def generate_(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._compiling() or self._inside.now or not isinstance(module, self._torch.nn.Module):
                return generate(module, *args, **kwargs)
            return self._outermost(generate, module, args, kwargs)

        never_compile(self._torch, generate_, callees=False)
        return generate_


# Find what modules hold: what their state_dict would save, which are parameters and persistent buffers.


_GENERATOR = "seed_generator_state"
"""The name of a random state that Keras on torch keeps among the parameters."""


def in_loader_worker() -> bool:
    """Return whether this process loads data: a transform may be a module, and its output is a batch, no result."""
    worker: Any = sys.modules.get("torch.utils.data._utils.worker")
    return worker is not None and worker._worker_info is not None


_SUMMARIES = (
    "calflops",
    "ptflops",
    "pytorch_model_summary",
    "thop",
    "torchinfo",
    "torchscan",
    "torchsummary",
    "torchsummaryX",
    "torchview",
)
"""Packages that call a model with any input, often memory that is not initialized, to count its operations."""


def in_summary() -> bool:
    """Return whether a model is called to be summed up, so that what it returns is no result."""
    if not any([name in sys.modules for name in _SUMMARIES]):
        return False
    frame: FrameType | None = sys._getframe()
    while frame is not None and top_module(frame) not in _SUMMARIES:
        frame = frame.f_back
    return frame is not None


class ModuleStates(ModelStates):
    """The state of all modules in this process."""

    def __init__(self, torch: Any, reader: TorchReader, write: Callable[[Sequence[Any], bool], None]) -> None:
        super().__init__(torch.nn.Module, reader, write)
        self._torch, self._plain, self._address = torch, reader.plain, reader.address

    def runs_unseen(self) -> bool:
        """Return whether a function was compiled: the modules in it run without being called."""
        counters: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
        return bool(counters.get("frames"))

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a module and its submodules, by name."""
        named_modules: Iterable[tuple[str, Any]] = model.named_modules()
        return named_modules

    def own_tensors(self, part: Any) -> Iterator[OwnTensor]:
        """Yield the parameters and persistent buffers of a module that have values."""
        for name, tensor in part._parameters.items():
            if self._readable(tensor) and not name.endswith(_GENERATOR):
                yield OwnTensor(name, False, tensor)
        for name, tensor in part._buffers.items():
            if name not in part._non_persistent_buffers_set and self._readable(tensor):
                yield OwnTensor(name, True, tensor)
        if type(part).__module__.startswith("torch.ao.nn."):
            yield from self._quantized(part)

    def buffers(self, part: Any) -> list[Any]:
        """Return the persistent buffers of a module that are set."""
        transient = part._non_persistent_buffers_set
        return [
            one for name, one in part._buffers.items() if one is not None and name not in transient and not one.is_meta
        ]

    def _quantized(self, part: Any) -> Iterator[OwnTensor]:
        # Quantized weights are neither parameters nor buffers.
        saved: dict[str, Any] = {}
        part._save_to_state_dict(saved, "", True)
        for name in [name for name in saved if name not in part._parameters and name not in part._buffers]:
            for tensor in saved[name] if isinstance(saved[name], tuple) else (saved[name],):
                if isinstance(tensor, self._torch.Tensor) and tensor.is_quantized:
                    yield OwnTensor(f"{name}.int_repr()", False, tensor.int_repr())
                    yield OwnTensor(f"{name}.scale", False, self._scale(tensor))
                elif self._readable(tensor):
                    yield OwnTensor(name, False, tensor)

    def _scale(self, tensor: Any) -> Any:
        torch = self._torch
        if tensor.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
            return torch.stack([tensor.q_per_channel_scales().double(), tensor.q_per_channel_zero_points().double()])
        return torch.tensor([tensor.q_scale(), float(tensor.q_zero_point())], dtype=torch.float64)

    def _readable(self, tensor: Any) -> bool:
        """Return whether this is a tensor with values: not only a shape, and with memory that FSDP did not free."""
        if self._address(tensor):
            return True
        if not isinstance(tensor, self._torch.Tensor) or tensor.is_meta or hasattr(tensor, "fake_mode"):
            return False
        if type(tensor).__name__.startswith("Uninitialized"):
            return False
        plain = self._plain(tensor)
        return bool(plain.layout != self._torch.strided or not plain.numel() or plain.untyped_storage().nbytes())

    def weights(self, module: Any) -> list[Any]:
        """Return all that a module and its submodules hold."""
        return [own_tensor.tensor for _, part in self.parts(module) for own_tensor in self.own_tensors(part)]

    def tensors(self, value: Any) -> list[Any] | None:
        """Return a tensor, or none if it cannot be read; None for what is not a tensor."""
        if not isinstance(value, self._torch.Tensor):
            return None
        return [value] if self._readable(value) and not value.is_nested and not value.is_quantized else []

    def named(self, parameters: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return parameters in the order of the modules that ran since the last step, then of the leaves of the loss.

        Their place in an optimizer is no part of a training: ``list(set(model.parameters()))`` is a common idiom.
        """
        places: dict[int, int] = {}
        for module in self.recent():
            for parameter in module.parameters():
                places.setdefault(id(parameter), len(places))
        for leaf in leaves:
            places.setdefault(id(leaf), len(places))
        return sorted(parameters, key=lambda parameter: places.get(id(parameter), len(places)))


# Find what loss functions compare the outputs of a model with, in the graph of the loss.
#
# ``torch.nn.functional`` has no hook, but the graph keeps the targets for the backward pass.


NODES = 32
"""How many nodes of the graph of a loss are looked at: the loss functions are at its root."""

_SAVED = ("_saved_target", "_saved_targets")


_HEAP = 1 << 9
"""The flag of classes made by Python code, which may be freed. Torch's own nodes are of others."""

_kept: dict[type, str | None] = {}
"""Where each of these classes keeps a target."""


def _where(kind: type) -> str | None:
    if kind not in _kept:
        attribute = next((name for name in _SAVED if hasattr(kind, name)), None)
        if kind.__flags__ & _HEAP:
            return attribute
        _kept[kind] = attribute
    return _kept[kind]


def targets_of(torch: Any, losses: Iterable[Any]) -> list[Any]:
    """Return the targets of the loss functions in the graphs of these losses, nearest to the root first."""
    targets = []
    waiting = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    for node in itertools.islice(waiting, NODES):  # more are appended meanwhile
        saved = _where(type(node))
        if saved is None:
            waiting += [function for function, _ in node.next_functions if function is not None]
        elif _unhooked(node, saved):
            target = getattr(node, saved)
            if isinstance(target, torch.Tensor) and not target.requires_grad:
                targets.append(target)
    return targets


def _unhooked(node: Any, saved: str) -> bool:
    """Return whether reading a tensor of a graph calls no hook: one of a checkpoint would compute it again."""
    return getattr(getattr(node, saved.replace("_", "_raw_", 1), None), "unpack_hook", node) is None
