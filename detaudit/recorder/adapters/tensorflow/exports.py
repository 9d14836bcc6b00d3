"""Make functions with added operations exportable, by saving the recorder's variables in the SavedModel."""

from __future__ import annotations

import functools
import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...process.sink import Sink


def watch_exports(sink: Sink, used_by: Callable[[list[Any]], list[Any]]) -> None:
    """Make the recorder's variables, ``used_by(concrete functions)``, children of an object that is exported.

    TensorFlow does not export a function with a variable that no exported object holds.
    """
    trackable = importlib.import_module("tensorflow.python.trackable.autotrackable").AutoTrackable
    children = trackable._trackable_children

    def add(found: dict[str, Any]) -> None:
        listed: list[Any] = [
            getattr(child, "_list_all_concrete_functions_for_serialization", list)() for child in found.values()
        ]
        own = used_by([concrete for functions in listed for concrete in functions])
        found.update({f"_detaudit_{n}": variable for n, variable in enumerate(own)})

    @functools.wraps(children)
    def _trackable_children(object_: Any, save_type: str = "checkpoint", **kwargs: Any) -> Any:
        found = children(object_, save_type, **kwargs)
        if save_type != "checkpoint":
            sink.guarded("export", lambda: add(found))
        return found

    trackable._trackable_children = _trackable_children
