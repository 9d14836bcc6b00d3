"""Apply the flags of a recipe inside the process, each right after the import of the module that it belongs to."""

from __future__ import annotations

import sys

from ... import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..process.log import Sink


def instructions(text: str) -> list[tuple[str, str]]:
    """Split the value of DETAUDIT_FLAGS into (module, JSON) pairs; see wire.ENV_FLAGS."""
    return [(module, instruction) for module, _, instruction in [line.partition("\t") for line in text.splitlines()]]


class UnknownNameError(Exception):
    """A name does not exist in this version of a framework."""


def _resolve(dotted: str) -> tuple[Any, str]:
    """Return the object that holds the last name of ``dotted``, and that name, from the modules imported so far."""
    names = dotted.split(".")
    # Find the longest module name: a submodule becomes an attribute of its parent only after its hooks ran.
    depth = next((n for n in range(len(names) - 1, 0, -1) if ".".join(names[:n]) in sys.modules), 0)
    try:
        holder: Any = sys.modules[".".join(names[:depth])]
        for name in names[depth:-1]:
            holder = getattr(holder, name)
        getattr(holder, names[-1])  # setting a misspelled name would raise nothing
    except (AttributeError, KeyError):
        version = getattr(sys.modules.get(names[0]), "__version__", "")
        raise UnknownNameError(" ".join(filter(None, [names[0], version])) + " has no " + dotted) from None
    return holder, names[-1]


def apply(instruction: dict[str, Any], failed: Callable[[str], None] = lambda _: None) -> None:
    """Apply one flag: its calls, then its settings, then its patch, which may call ``failed`` later.

    Raises UnknownNameError, having changed nothing, if a name does not exist, and whatever the framework raises.
    """
    calls = [(_resolve(dotted), arguments) for dotted, arguments in instruction.get("call", {}).items()]
    settings = [(_resolve(dotted), value) for dotted, value in instruction.get("set", {}).items()]
    for (holder, name), arguments in calls:
        keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else None
        if keywords is None:
            getattr(holder, name)(*arguments)
        else:
            getattr(holder, name)(*arguments[:-1], **keywords)
    for (holder, name), value in settings:
        setattr(holder, name, value)
    if "patch" in instruction:
        from .. import patches

        options = patches.PatchOptions(instruction["seed"], instruction.get("value", ""), failed)
        patches.apply(instruction["patch"], options)
    if "vary" in instruction:
        from .. import patches

        patches.vary(instruction["vary"], instruction["number"])


def applier(text: str, sink: Sink) -> Callable[[ModuleType], None]:
    """Return the post-import hook that applies one flag and records the outcome."""

    def hook(module: ModuleType) -> None:
        import json

        instruction = json.loads(text)

        def report(state: str, detail: str = "") -> None:
            sink.write({"k": "flag", "id": instruction["id"], "state": state, "detail": detail[:500]})

        try:
            apply(instruction, lambda detail: report(wire.FLAG_FAILED, detail))
        except UnknownNameError as error:
            report(wire.FLAG_UNAVAILABLE, str(error))
        except Exception as error:
            report(wire.FLAG_FAILED, f"{type(error).__name__}: {error}")
        else:
            report(wire.FLAG_APPLIED)

    return hook
