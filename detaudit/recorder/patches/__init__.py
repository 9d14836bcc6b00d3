"""Patches: flags that no setting of a framework offers, as small named changes in the process that can be undone."""

from __future__ import annotations

import sys

from ..process.replace import replace, replace_in_os

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
    "count-clock": "clock.count",
    "fill-numpy-memory": "memory.fill_numpy",
    "fill-torch-memory": "memory.fill_torch",
    "torch-module-on-cpu": "torch.run_on_cpu",
    "torch-loader-without-workers": "torch.no_workers",
    "torch-loader-seeded-workers": "torch.seed_workers",
    "torch-loader-in-order": "torch.in_order",
    "torch-plain-cross-entropy": "torch.plain_cross_entropy",
    "tensorflow-data-in-order": "tensorflow.make_deterministic",
    "tensorflow-plain-cross-entropy": "tensorflow.plain_cross_entropy",
}
"""The name of a patch in the catalogue, and its function here, whose module is loaded only if the patch is applied."""

VARIATIONS = {
    "order-listings": "listings.order_listings",
    "move-clock": "clock.move",
    "move-datetime": "clock.move_datetime",
}
"""The name of a change in the table of variations, and its function here, which takes a number."""

_ABSENT = object()


class PatchOptions:
    """The options of a patch: the seed of the recipe, the value of the flag, and the callback for a later failure."""

    def __init__(self, seed: int = 0, value: str = "", failed: Callable[[str], None] = lambda _: None) -> None:
        self.seed, self.value, self.failed = seed, value, failed


class Changes:
    """Makes the changes of one patch, and undoes them."""

    def __init__(self) -> None:
        self.in_force = True
        self._back: list[Callable[[], object]] = []

    def replace(
        self, holder: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *, traced: bool = False
    ) -> Any:
        """Replace a function as replace.replace does.

        If someone else has replaced our replacement since, undoing keeps theirs, and ours calls the original from then
        on.
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

    def replace_in_os(self, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
        """Replace a function of os as os_functions.replace_in_os does, and return the replacement."""
        wrapper, sets = replace_in_os(name, make, self.replace)
        for members in sets:
            self._back.append(lambda members=members: members.discard(wrapper))  # type: ignore[misc]
        return wrapper

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Set an attribute."""
        before = vars(holder).get(name, _ABSENT)
        setattr(holder, name, value)
        self._back.append(lambda: put(holder, name, before))

    def on_undo(self, function: Callable[[], object]) -> None:
        """Call ``function`` when the changes are undone."""
        self._back.append(function)

    def undo(self) -> None:
        """Undo all changes, the last one first. A second call does nothing."""
        self.in_force = False
        while self._back:
            self._back.pop()()


def put(holder: Any, name: str, value: Any) -> None:
    """Restore an attribute as it was in ``vars(holder)``, or delete it if it was not there."""
    if value is _ABSENT:
        delattr(holder, name)
    else:
        setattr(holder, name, value)


def apply(name: str, options: PatchOptions) -> Callable[[], None]:
    """Apply the patch of this name, and return a function that undoes it.

    Raises whatever the framework raises, such as AttributeError if this version of it lacks something. Nothing is
    changed then.
    """
    changes = Changes()
    try:
        _function(PATCHES[name])(options, changes)
    except BaseException:
        changes.undo()
        raise
    return changes.undo


def vary(name: str, number: int) -> None:
    """Change the environment as this variation does with this number."""
    _function(VARIATIONS[name])(number)


def _function(dotted: str) -> Any:
    import importlib

    module, _, function = dotted.partition(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)


def loaded(name: str) -> Any:
    """Return a module that the script has imported, as Any."""
    return sys.modules[name]
