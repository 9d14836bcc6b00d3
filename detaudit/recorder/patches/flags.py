"""Applies a recipe's flags inside the process, right after the module they belong to was imported."""

from __future__ import annotations

import sys

from ... import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..process.sink import Sink


def orders(text: str) -> list[tuple[str, str]]:
    """Split the value of DETAUDIT_FLAGS into (module, JSON) pairs; see wire.ENV_FLAGS."""
    return [(module, order) for module, _, order in [line.partition("\t") for line in text.splitlines()]]


class UnknownNameError(Exception):
    """A name that this version of a framework does not have."""


def _resolve(dotted: str) -> tuple[Any, str]:
    """Return the object that holds the last name of ``dotted``, found in the modules already imported."""
    names = dotted.split(".")
    # The longest module there is: a submodule becomes its parent's attribute only after its hooks ran.
    depth = next((n for n in range(len(names) - 1, 0, -1) if ".".join(names[:n]) in sys.modules), 0)
    try:
        holder: Any = sys.modules[".".join(names[:depth])]
        for name in names[depth:-1]:
            holder = getattr(holder, name)
        getattr(holder, names[-1])  # a misspelt setting would be accepted silently
    except (AttributeError, KeyError):
        version = getattr(sys.modules.get(names[0]), "__version__", "")
        raise UnknownNameError(" ".join(filter(None, [names[0], version])) + " does not know " + dotted) from None
    return holder, names[-1]


def apply(order: dict[str, Any], failed: Callable[[str], None] = lambda _: None) -> None:
    """Do what one flag says: its calls, then its settings, then its patch, which may tell ``failed`` later.

    Nothing is done if a name of it does not exist.

    Raises UnknownNameError for such a name, and whatever the framework raises.
    """
    calls = [(_resolve(dotted), arguments) for dotted, arguments in order.get("call", {}).items()]
    settings = [(_resolve(dotted), value) for dotted, value in order.get("set", {}).items()]
    for (holder, name), arguments in calls:
        keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else None
        if keywords is None:
            getattr(holder, name)(*arguments)
        else:
            getattr(holder, name)(*arguments[:-1], **keywords)
    for (holder, name), value in settings:
        setattr(holder, name, value)
    if "patch" in order:
        from .. import patches

        patches.apply(order["patch"], patches.Order(order["seed"], order.get("value", ""), failed))
    if "vary" in order:
        from . import variations

        variations.VARIATIONS[order["vary"]](order["number"])


def applier(text: str, sink: Sink) -> Callable[[ModuleType], None]:
    """Return the post-import hook that applies one order and records how it went."""

    def hook(module: ModuleType) -> None:
        import json

        order = json.loads(text)

        def tell(state: str, detail: str = "") -> None:
            sink.write({"k": "flag", "id": order["id"], "state": state, "detail": detail[:500]})

        try:
            apply(order, lambda detail: tell(wire.FLAG_FAILED, detail))
        except UnknownNameError as error:
            tell(wire.FLAG_UNAVAILABLE, str(error))
        except Exception as error:
            tell(wire.FLAG_FAILED, f"{type(error).__name__}: {error}")
        else:
            tell(wire.FLAG_APPLIED)

    return hook
