"""Record which files outside of the working directory this process opens for writing."""

from __future__ import annotations

import os
import sys

from ... import wire
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .recorder import Recorder
    from .sink import Sink

_MOST = 1000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND


class _Outputs:
    """The files that were written to the event log already, and the folders that are left out."""

    def __init__(self, sink: Sink, logs: str) -> None:
        self._sink = sink
        # The auditor lists the working directory itself, and Python writes its bytecode below its prefix.
        self._left_out = (os.getcwd() + os.sep, sys.prefix + os.sep, os.path.dirname(logs) + os.sep, os.devnull)
        self._seen: set[str] = set()

    def opened(self, file: Any) -> None:
        """Write a line for a file, once."""
        if not isinstance(file, (str, bytes)) or len(self._seen) >= _MOST:
            return
        path = os.path.abspath(os.fsdecode(file))
        if path not in self._seen and not path.startswith(self._left_out):
            self._seen.add(path)
            self._sink.write({"k": "wrote", "path": path})


_outputs: list[_Outputs] = []
"""Those of this process, since the recorder was loaded."""


def watch(recorder: Recorder) -> None:
    """Record what ``open`` and ``os.open`` open for writing."""
    sink, outputs = recorder.sink, _Outputs(recorder.sink, os.environ[wire.ENV_LOGS])
    _outputs.append(outputs)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            sink.guarded("open", lambda: outputs.opened(arguments[0]))

    sys.addaudithook(hook)


def watch_torch(serialization: ModuleType, recorder: Recorder) -> None:
    """Record where ``torch.save`` writes to: C++ opens the file."""

    def make(init: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, name: Any, *args: Any, **kwargs: Any) -> None:
            for outputs in _outputs:
                recorder.sink.guarded("torch.save", lambda: outputs.opened(os.fspath(name)))  # noqa: B023
            init(self, name, *args, **kwargs)

        return __init__

    replace(serialization._open_zipfile_writer_file, "__init__", make)
