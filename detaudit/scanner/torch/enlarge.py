"""Enlarge a sample until its operation does enough work to race.

The database of torch has small samples: most of them take the path of one thread, because torch divides work only above
32,768 elements. A tensor is enlarged along one dimension, by slices of it that are drawn at random. So all elements
stay valid for their operation, and an index occurs many times. Which tensors of a sample must grow together is not
known: it is tried, in the order of GROWTHS, and what the operation refuses is not done.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

GROWTHS = tuple((which, dim) for dim in (0, -1) for which in ("all", "every", "same", "first"))
"""Which tensors grow, and along which dimension: all with more than one slice, those with one slice too, those with as
many slices as the first, or the first alone."""

FIXED = ("offsets", "lengths")
"""Options that do not grow: they have to be in order, or to add up to something."""

STEP = 4
"""How much larger the next attempt is."""

ENOUGH = 1 << 16
"""Elements from which on no other growth is tried: of the largest index, or without any of the largest tensor."""

MOST = 1 << 17
"""Such elements at most."""

LARGEST = 1 << 20
"""Elements of any tensor at most."""

INDICES = ("torch.int64", "torch.int32")
"""Types of indices."""

MOST_RETURNED = 1 << 21
"""Elements that an operation may be expected to return."""

EACH = 1 << 10
"""What a tensor costs that is returned, as so many elements."""

SECONDS = 0.1
"""Processor time that one call may be expected to take."""

MOST_SECONDS = 1.0
"""Processor time after which no other growth is tried, and that one call takes at most."""


def mapped(value: Any, change: Callable[[Any], Any], kind: type) -> Any:
    """Return nested lists, tuples and dictionaries with each value of a ``kind`` changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [mapped(item, change, kind) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: mapped(item, change, kind) for key, item in value.items()}
    return value


def instances(value: Any, kind: type) -> list[Any]:
    """Return the values of a ``kind`` in nested lists, tuples and dictionaries."""
    matches: list[Any] = []

    def note(one: Any) -> Any:
        matches.append(one)
        return one

    mapped(value, note, kind)
    return matches


def grown(torch: Any, arguments: Any, growth: int, factor: int, seed: int) -> Any:
    """Return arguments in which tensors are so many times larger; the same for the same ``seed``."""
    which, dim = GROWTHS[growth]
    generator = torch.Generator()
    generator.manual_seed(seed)
    first = instances(arguments, torch.Tensor)[0]
    length = first.shape[dim]
    fixed = {id(one) for name in FIXED for one in instances(_enlarged_options(arguments).get(name), torch.Tensor)}

    def grow(tensor: Any) -> Any:
        if (
            id(tensor) in fixed
            or tensor.layout is not torch.strided
            or not tensor.dim()
            or not _grows(which, tensor, first, dim, length)
        ):
            return tensor
        slices = torch.randint(tensor.shape[dim], (tensor.shape[dim] * factor,), generator=generator)
        return tensor.index_select(dim, slices.to(tensor.device))

    return mapped(arguments, grow, torch.Tensor)


def _enlarged_options(arguments: Any) -> dict[str, Any]:
    """Return the arguments that are given by name, which are last."""
    return arguments[-1] if isinstance(arguments[-1], dict) else {}


def _grows(which: str, tensor: Any, first: Any, dim: int, length: int) -> bool:
    if tensor is first or which == "every":
        return bool(tensor.shape[dim])
    return which != "first" and tensor.shape[dim] > 1 and (which == "all" or tensor.shape[dim] == length)


def enlarged(torch: Any, call: Callable[[Any], Any], arguments: Any, seed: int) -> list[int] | None:
    """Return the growth and the factor that make a sample large, None if it cannot grow."""
    every = instances(arguments, torch.Tensor)
    if not every or not every[0].dim() or not every[0].numel():
        return None
    best: tuple[tuple[int, int], list[int] | None] = ((0, 0), None)
    started = time.process_time()
    for growth in range(len(GROWTHS)):
        for factor, size in _factors(torch, call, arguments, growth, seed):
            best = max(best, (size, [growth, factor]), key=lambda candidate: candidate[0])
        if best[0][0] >= ENOUGH or time.process_time() - started > MOST_SECONDS:
            break
    return best[1]


def _factors(
    torch: Any, call: Callable[[Any], Any], arguments: Any, growth: int, seed: int
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the factors that work, each with the elements that count, as in ENOUGH, and all elements."""
    factor, returned = STEP, 1
    before = sum(tensor.numel() for tensor in instances(arguments, torch.Tensor))
    while True:
        larger = grown(torch, arguments, growth, factor, seed)
        sizes = [tensor.numel() for tensor in instances(larger, torch.Tensor)]
        indices = [tensor.numel() for tensor in instances(larger, torch.Tensor) if str(tensor.dtype) in INDICES]
        size = max(indices or sizes)
        if size > MOST or max(sizes) > LARGEST or sum(sizes) <= before:  # sparse tensors do not grow
            return
        try:
            elements, took = _one_call(torch, call, larger)
        except Exception:
            return
        if took > MOST_SECONDS:  # an operation whose work grows faster than its inputs
            return
        yield factor, (size, sum(sizes))
        rate = elements / returned if factor > STEP else STEP
        if elements * max(rate, STEP) > MOST_RETURNED or took * STEP * (STEP if rate > 1.5 * STEP else 1) > SECONDS:
            return
        factor, returned, before = factor * STEP, max(elements, 1), sum(sizes)


def _one_call(torch: Any, call: Callable[[Any], Any], arguments: Any) -> tuple[int, float]:
    """Return how many elements a call returns, and its processor time, the least of three if it is slow."""
    elements, took = 0, float("inf")
    for _ in range(3):
        started = time.process_time()
        elements = sum(tensor.numel() + EACH for tensor in instances(call(arguments), torch.Tensor))
        took = min(took, time.process_time() - started)
        if took * STEP < SECONDS or took > MOST_SECONDS:
            break
    return elements, took
