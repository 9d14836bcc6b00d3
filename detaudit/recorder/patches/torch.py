"""Patches of torch: loaders, plain losses, one module on the CPU."""

from __future__ import annotations

import atexit
import functools
import inspect
import types
import weakref

from . import PatchOptions, apply, loaded

# Run one module of a torch model on the CPU.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes


_WRAPPERS = ("_orig_mod.", "module.")
"""Prefixes that torch.compile and the data-parallel wrappers add to the names of modules."""


def _plain(name: str) -> str:
    for prefix in _WRAPPERS:
        name = name.removeprefix(prefix)
    return name


def run_on_cpu(options: PatchOptions, changes: Changes) -> None:
    """Run a module on the CPU; the flag's value is its name in the model's ``named_modules()``.

    The weights keep their device, and a copy on the CPU replaces them during each call. Optimizers, checkpoints and
    the rest of the model are not affected. Nothing changes if everything is on the CPU anyway.
    """
    torch = loaded("torch")
    searched: Any = weakref.WeakSet()
    seen = {"models": 0, "matches": 0}

    def search(module: Any, _: Any) -> None:
        # The first module to be called is the whole model; those inside it are called later.
        if module in searched:
            return
        searched.update(module.modules())
        seen["models"] += 1
        try:
            for name, part in module.named_modules():
                if _plain(name) == options.value:
                    _wrap(torch, part, changes)
                    seen["matches"] += 1
        except Exception as error:
            options.failed(f"{type(error).__name__}: {error}")

    def report_missing() -> None:
        if seen["models"] and not seen["matches"]:
            options.failed(f"no model that ran has a module named {options.value!r}")

    changes.on_undo(torch.nn.modules.module.register_module_forward_pre_hook(search).remove)
    atexit.register(report_missing)
    changes.on_undo(lambda: atexit.unregister(report_missing))


def _wrap(torch: Any, module: Any, changes: Changes) -> None:
    original = module.forward
    if hasattr(original, "__detaudit_cpu__"):
        return  # this module is part of two models
    bound = getattr(original, "__self__", None) is module
    function = original.__func__ if bound else original

    @functools.wraps(function)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = functools.partial(function, self) if bound else function
        device = _device(torch, (*self.parameters(), *self.buffers()), args, kwargs)
        if device is None or not changes.in_force:
            return call(*args, **kwargs)
        return _moved(torch, _on_cpu(torch, self, call, args, kwargs), device)

    forward.__detaudit_cpu__ = True  # type: ignore[attr-defined]
    # A bound method can be copied and pickled. The module is not kept alive to undo the change.
    object.__setattr__(module, "forward", types.MethodType(forward, module))


def _device(torch: Any, *trees: Any) -> Any:
    """Return the device of the first tensor that is not on the CPU, or None if all are."""
    leaves = torch.utils._pytree.tree_leaves(trees)
    return next((leaf.device for leaf in leaves if torch.is_tensor(leaf) and leaf.device.type != "cpu"), None)


def _moved(torch: Any, tree: Any, device: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda leaf: leaf.to(device) if torch.is_tensor(leaf) else leaf, tree)


def _on_cpu(torch: Any, module: Any, call: Any, args: Any, kwargs: Any) -> Any:
    # Gradients flow back through the copies.
    state = {name: tensor.cpu() for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    args, kwargs = _moved(torch, (args, kwargs), "cpu")
    with torch.nn.utils.stateless._reparametrize_module(module, state, tie_weights=True):
        result = call(*args, **kwargs)
    with torch.no_grad():
        for name, buffer in module.named_buffers():  # such as the running mean of a batch norm
            if state[name] is not buffer:
                buffer.copy_(state[name])
    return result


# Change the DataLoaders of torch: no workers, seeded workers, or batches in order.


_OF_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout", "in_order")


def _edit(changes: Changes, edit: Callable[[dict[str, Any], Any], None]) -> None:
    """Call ``edit`` to change the arguments of every DataLoader, including subclasses, before it is created."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError:
                bound = None  # the original raises for these arguments
            if bound is None:
                function(self, *args, **kwargs)
            else:
                edit(bound.arguments, signature.parameters)
                function(*bound.args, **bound.kwargs)

        return __init__

    changes.replace(loaded("torch.utils.data.dataloader").DataLoader, "__init__", make)


def no_workers(options: PatchOptions, changes: Changes) -> None:
    """Load data in the training process, and drop the options that need workers, which would raise."""

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        for name in ("num_workers", *_OF_WORKERS):
            arguments.pop(name, None)

    _edit(changes, edit)


def in_order(options: PatchOptions, changes: Changes) -> None:
    """Return batches in order. Versions of torch without the option ``in_order`` always do."""

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        if "in_order" in parameters:
            arguments["in_order"] = True

    _edit(changes, edit)


class WorkerInit:
    """A ``worker_init_fn`` that seeds before and after the user's own one. It is pickled for spawned workers."""

    def __init__(self, users: Callable[[int], Any] | None) -> None:
        self._users = users

    def __call__(self, worker: int) -> None:
        """Seed this worker."""
        seed = loaded("torch.utils.data").get_worker_info().seed  # the loader's base seed plus the worker's number
        _seed(seed)
        if self._users is not None:
            self._users(worker)
            _seed(seed)
        for module, patch in (
            ("random", "seed-python-generators"),
            ("numpy.random.bit_generator", "seed-numpy-entropy"),
            ("torch", "seed-torch-generators"),
        ):
            if _is_loaded(module):
                apply(patch, PatchOptions(seed))


def _is_loaded(module: str) -> bool:
    import sys

    return module in sys.modules


def _seed(seed: int) -> None:
    loaded("random").seed(seed)
    loaded("torch").manual_seed(seed)
    if _is_loaded("numpy.random"):
        loaded("numpy.random").seed(seed % 2**32)


def seed_workers(options: PatchOptions, changes: Changes) -> None:
    """Seed Python, NumPy, torch and unseeded generators in each worker.

    The seeds derive from the base seed of the loader, which its generator draws, or torch's global one.
    """

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        users = arguments.get("worker_init_fn")
        if arguments.get("num_workers") and not isinstance(users, WorkerInit):
            arguments["worker_init_fn"] = WorkerInit(users)

    _edit(changes, edit)


# Compute cross-entropy in torch from basic operations instead of kernels with atomic additions on a GPU.


def _of_classes(torch: Any, logits: Any, target: Any, weight: Any, ignored: int, smoothing: float) -> tuple[Any, Any]:
    """Return the loss of each target that is a class index, and the divisor of the mean."""
    axis = 0 if logits.dim() == 1 else 1
    log_p = torch.log_softmax(logits, axis)
    counts = target != ignored
    safe = torch.where(counts, target, 0).long()
    weights = weight[safe] if weight is not None else torch.ones_like(safe, dtype=log_p.dtype)
    weights = torch.where(counts, weights, 0)
    # Each row has one target, so the backward pass of gather adds no two gradients.
    picked = log_p.gather(axis, safe.unsqueeze(axis)).squeeze(axis)
    loss = torch.where(counts, -picked * weights, 0)
    if smoothing > 0:
        spread = log_p if weight is None else log_p * _along(weight, log_p, axis)
        spread = torch.where(counts, -spread.sum(axis), 0)
        loss = (1 - smoothing) * loss + smoothing / logits.shape[axis] * spread
    return loss, weights.sum()


def _of_probabilities(torch: Any, logits: Any, target: Any, weight: Any, smoothing: float) -> tuple[Any, Any]:
    """Return the loss of each target that has a probability per class, and the divisor of the mean."""
    axis = 0 if logits.dim() == 1 else 1
    classes = logits.shape[axis]
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    log_p = torch.log_softmax(logits, axis) * target
    loss = -(log_p if weight is None else log_p * _along(weight, log_p, axis)).sum(axis)
    return loss, logits.numel() / classes if logits.numel() else float("nan")


def _along(weight: Any, like: Any, axis: int) -> Any:
    return weight.reshape([-1 if dimension == axis else 1 for dimension in range(like.dim())])


def _fits(logits: Any, target: Any, weight: Any) -> bool:
    """Return whether the original accepts these arguments. If not, it is called, since its error explains why."""
    if logits.dim() == 0 or not logits.is_floating_point():
        return False
    axis = 0 if logits.dim() == 1 else 1
    if target.is_floating_point():
        shapes = target.shape == logits.shape
    else:
        shapes = (*target.shape[:axis], *target.shape[axis:]) == (*logits.shape[:axis], *logits.shape[axis + 1 :])
    return bool(shapes) and (
        weight is None or (tuple(weight.shape) == (logits.shape[axis],) and not weight.requires_grad)
    )


def plain_cross_entropy(options: PatchOptions, changes: Changes) -> None:
    """Replace ``torch.nn.functional.cross_entropy``, which ``nn.CrossEntropyLoss`` calls."""
    torch = loaded("torch")
    functional = torch.nn.functional

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def cross_entropy(
            input: Any,
            target: Any,
            weight: Any = None,
            size_average: Any = None,
            ignore_index: int = -100,
            reduce: Any = None,
            reduction: str = "mean",
            label_smoothing: float = 0.0,
        ) -> Any:
            if size_average is not None or reduce is not None:
                reduction = torch.nn._reduction.legacy_get_string(size_average, reduce)
            special = torch.overrides.has_torch_function((input, target, weight))
            if special or reduction not in ("none", "mean", "sum") or not _fits(input, target, weight):
                return function(
                    input,
                    target,
                    weight,
                    ignore_index=ignore_index,
                    reduction=reduction,
                    label_smoothing=label_smoothing,
                )
            input = _widened(torch, input)
            if target.is_floating_point():
                loss, total = _of_probabilities(torch, input, target, weight, label_smoothing)
            else:
                loss, total = _of_classes(torch, input, target, weight, ignore_index, label_smoothing)
            if reduction == "none":
                return loss
            return loss.sum() / total if reduction == "mean" else loss.sum()

        return cross_entropy

    original = functional.cross_entropy
    _script_as(torch, changes.replace(functional, "cross_entropy", make), original)


def _script_as(torch: Any, wrapper: Any, original: Any) -> None:
    """Make TorchScript, which compiles the source of a function, compile the original instead of the wrapper."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            torch.jit._state._set_jit_function_cache(wrapper, torch.jit.script(original))
    except Exception:
        pass  # a version without it


def _widened(torch: Any, logits: Any) -> Any:
    """Return the logits as the original converts them: to float32 if autocast is on."""
    try:
        on = torch.is_autocast_enabled(logits.device.type)
    except TypeError:  # before torch 2.4
        on = torch.is_autocast_cpu_enabled() if logits.device.type == "cpu" else torch.is_autocast_enabled()
    return logits.float() if on and logits.dtype in (torch.float16, torch.bfloat16) else logits
