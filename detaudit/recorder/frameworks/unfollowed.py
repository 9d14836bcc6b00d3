"""Note that a package without an adapter trained: no verdict may rest on what else a script trains alone."""

from __future__ import annotations

from ..process.replace import replace
from . import UNFOLLOWED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..process.recorder import Recorder


def install(module: ModuleType, recorder: Recorder) -> None:
    """Write an ``unseen`` line at the first training of each process."""
    kind, name = UNFOLLOWED[module.__name__]
    package = module.__name__.partition(".")[0]
    call = "%s.%s" % (package, kind if name == "__init__" else "%s.%s" % (kind, name))
    noted: list[str] = []
    recorder.before_bye(lambda: None, noted.clear)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def trains(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not noted:
                noted.append(call)
                recorder.sink.write({"k": "unseen", "fw": package, "call": call})
            return function(self, *args, **kwargs)

        return trains

    replace(getattr(module, kind), name, make)
