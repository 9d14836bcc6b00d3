"""Record which line of user code reads which file below the working directory."""

from __future__ import annotations

import os
import sys

from ...process import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ..stream import OpStream

_MOST = 1000


def install(stream: OpStream) -> None:
    """Write each file that is opened for reading, once per line of code; see ``opened`` in wire.py."""
    root = os.getcwd() + os.sep
    seen: set[tuple[str, str, int]] = set()

    def opened(path: Any, flags: Any, frame: FrameType | None) -> None:
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int) or flags & (os.O_WRONLY | os.O_CREAT):
            return
        name = os.path.join(root, os.fsdecode(path))
        found = frames.user_frame(frame) if name.startswith(root) and len(seen) < _MOST else None
        if found is None:
            return
        file, line = frames.place(found)
        key = (name[len(root) :], file, line)
        if key not in seen and not name.endswith((".py", ".pyc")):
            seen.add(key)
            stream.write("opened", path=key[0], file=file, line=line)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and stream.open:
            try:
                opened(arguments[0], arguments[2], sys._getframe().f_back)  # Python opens the script without a frame
            except Exception as error:
                stream.trouble("open", error)

    sys.addaudithook(hook)
