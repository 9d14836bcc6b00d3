"""Applies a recipe's flags inside the process, right after the module they belong to was imported."""

from __future__ import annotations

import sys

from .. import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .sink import Sink


def orders(text: str) -> list[tuple[str, str]]:
    """Split the value of DETAUDIT_FLAGS into (module, JSON) pairs; see wire.ENV_FLAGS."""
    return [(module, order) for module, _, order in [line.partition("\t") for line in text.splitlines()]]


def _resolve(dotted: str) -> tuple[Any, str]:
    """Return the object that holds the last name of ``dotted``, found in the modules already imported."""
    names = dotted.split(".")
    # The longest module there is: a submodule becomes its parent's attribute only after its hooks ran.
    depth = next(n for n in range(len(names) - 1, 0, -1) if ".".join(names[:n]) in sys.modules)
    holder: Any = sys.modules[".".join(names[:depth])]
    for name in names[depth:-1]:
        holder = getattr(holder, name)
    return holder, names[-1]


def apply(order: dict[str, Any]) -> None:
    """Do what one flag says: its calls, then its settings, then its patch.

    Raises whatever the framework raises, AttributeError if this version has no such name.
    """
    for dotted, arguments in order.get("call", {}).items():
        holder, name = _resolve(dotted)
        getattr(holder, name)(*arguments)
    for dotted, value in order.get("set", {}).items():
        holder, name = _resolve(dotted)
        getattr(holder, name)  # a misspelt setting would be accepted silently
        setattr(holder, name, value)
    if "patch" in order:
        from . import patches

        patches.PATCHES[order["patch"]](order["seed"])
    if "vary" in order:
        from . import vary

        vary.VARIATIONS[order["vary"]](order["number"])


def applier(text: str, sink: Sink) -> Callable[[ModuleType], None]:
    """Return the post-import hook that applies one order and records how it went."""

    def hook(module: ModuleType) -> None:
        import json

        order = json.loads(text)
        line = {"k": "flag", "id": order["id"], "state": wire.FLAG_APPLIED, "detail": ""}
        try:
            apply(order)
        except Exception as error:
            line["state"], line["detail"] = wire.FLAG_FAILED, f"{type(error).__name__}: {error}"[:500]
        sink.write(line)

    return hook
