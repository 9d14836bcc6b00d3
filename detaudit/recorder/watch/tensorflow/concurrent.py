"""Record calls of tf.functions by threads of the script, with the variables before and after each call.

While several threads are inside functions, an operation cannot be assigned to one of them. So each call is recorded as
one operation.
"""

from __future__ import annotations

import importlib
import sys

from .... import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..stream import OpStream
    from .calls import Call
    from .places import Places
    from .runs import Runs


class ThreadCalls:
    """Writes a line for each outermost call inside the window, except calls of the main thread."""

    def __init__(self, stream: OpStream, runs: Runs, places: Places) -> None:
        self._stream, self._runs, self._places = stream, runs, places
        self._flatten: Any = importlib.import_module("tensorflow.python.util.nest").flatten

    def around(self, call: Call, arguments: Any) -> Callable[[], None] | None:
        """Digest the arguments and the variables before a call. Return a function that writes the line after it."""
        if call.thread == wire.MAIN_THREAD or self._stream.level != "ops":
            return None
        place = self._places.ran("", (), (), sys._getframe(1))
        given = [self._runs.digest(value) for value in self._flatten(arguments) if hasattr(value, "shape")]
        found = self._digests()
        step = self._stream.step(False)

        def after() -> None:
            self._runs.forget()
            self._runs.variables.read_all_unknown()
            left = self._digests()
            shared = [] if call.alone else sorted(left)
            self._stream.write(
                "op",
                n=self._stream.next_number(),
                thread=call.thread,
                step=step,
                op="tf.function",
                ins=[*([text, -1] for text in given), *([found.get(number, ""), number] for number in sorted(left))],
                outs=[[text, number, True] for number, text in sorted(left.items()) if text != found.get(number)],
                file=place.file,
                line=place.line,
                **({"shared": shared} if shared else {}),
            )

        return after

    def _digests(self) -> dict[int, str]:
        return {number: state.digest for number, state in self._runs.variables.states.items()}
