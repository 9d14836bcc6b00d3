"""Drop the recorder's weak references to tensors that are swapped, because torch swaps no tensor that has any."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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
