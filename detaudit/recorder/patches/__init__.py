"""Flags that no setting of a framework offers: small named changes in the process, each of which can be taken back."""

from __future__ import annotations

import sys

from ..process.replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PATCHES = {
    "seed-python-generators": "generators.seed_python",
    "seed-numpy-entropy": "generators.seed_numpy",
    "seed-torch-generators": "generators.seed_torch",
    "seed-tensorflow-generators": "generators.seed_tensorflow",
    "sort-listings": "listings.sort",
    "fill-numpy-memory": "memory.fill_numpy",
    "fill-torch-memory": "memory.fill_torch",
    "torch-module-on-cpu": "torch_cpu.run_on_cpu",
    "torch-loader-without-workers": "torch_loader.no_workers",
    "torch-loader-seeded-workers": "torch_loader.seed_workers",
    "torch-loader-in-order": "torch_loader.in_order",
    "torch-plain-cross-entropy": "torch_loss.plain_cross_entropy",
    "tensorflow-data-in-order": "tensorflow_data.make_deterministic",
    "tensorflow-plain-cross-entropy": "tensorflow_loss.plain_cross_entropy",
}
"""The name in the catalogue, and the function here; its module is loaded only where the patch is wanted."""

_ABSENT = object()


class Order:
    """What a patch is told: the recipe's seed, the flag's own value, and whom to tell if it fails later."""

    def __init__(self, seed: int = 0, value: str = "", failed: Callable[[str], None] = lambda _: None) -> None:
        self.seed, self.value, self.failed = seed, value, failed


class Changes:
    """What one patch changed, and how to take it back."""

    def __init__(self) -> None:
        self.in_force = True
        self._back: list[Callable[[], object]] = []

    def replace(
        self, holder: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *, traced: bool = False
    ) -> Any:
        """Replace a function as replace.replace does.

        Where another has replaced ours since, taking back leaves theirs alone, and ours calls what it replaced.
        """

        def switch(function: Callable[..., Any]) -> Callable[..., Any]:
            changed = make(function)

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return (changed if self.in_force else function)(*args, **kwargs)

            return wrapper

        before = vars(holder).get(name, _ABSENT)
        wrapper = replace(holder, name, switch, traced=traced)
        ours = vars(holder)[name]

        def back() -> None:
            if vars(holder).get(name) is ours:
                put(holder, name, before)

        self._back.append(back)
        return wrapper

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Set an attribute."""
        before = vars(holder).get(name, _ABSENT)
        setattr(holder, name, value)
        self._back.append(lambda: put(holder, name, before))

    def on_undo(self, function: Callable[[], object]) -> None:
        """Have something else done when all is taken back."""
        self._back.append(function)

    def undo(self) -> None:
        """Take everything back, the last first. A second call does nothing."""
        self.in_force = False
        while self._back:
            self._back.pop()()


def put(holder: Any, name: str, value: Any) -> None:
    """Put an attribute back as it stood in ``vars(holder)``, or take it away where it did not stand there."""
    if value is _ABSENT:
        delattr(holder, name)
    else:
        setattr(holder, name, value)


def apply(name: str, order: Order) -> Callable[[], None]:
    """Make the change with this name and return what takes it back.

    Raises what the framework does, having changed nothing; AttributeError where this version has no such thing.
    """
    import importlib

    module, _, function = PATCHES[name].partition(".")
    changes = Changes()
    try:
        getattr(importlib.import_module(f"{__name__}.{module}"), function)(order, changes)
    except BaseException:
        changes.undo()
        raise
    return changes.undo


def loaded(name: str) -> Any:
    """Return a module that the script has imported, whatever its type checker says of it."""
    return sys.modules[name]
