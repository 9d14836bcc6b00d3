"""Compute cross-entropy in torch from basic operations instead of kernels with atomic additions on a GPU."""

from __future__ import annotations

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes, PatchOptions


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
    return weight.reshape([-1 if place == axis else 1 for place in range(like.dim())])


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
