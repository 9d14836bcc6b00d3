"""Record the hyperparameters of optimizers whenever they change: one that differs explains a different update."""

from __future__ import annotations

import linecache
import sys

from ..process import frames
from ..randomness import seeds
from ..training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FrameType
    from typing import Any

    from ..process.log import Sink
    from ..training.steps import Training


STAGE = "hyperparameters"

_PLAIN = frozenset((float, int, bool, type(None), str))
_MOST_GROUPS = 64
_MOST_SHOWN = 8
"""The first groups of parameters whose hyperparameters are read, and those whose values are written."""

_MOST_OPTIMIZERS = 4096
_MOST_LOOKED_FOR = 64
"""The first changes whose line is looked for in a file."""


class Hyperparameters:
    """What the optimizers of one framework were set to last, and on which line.

    ``number`` identifies an optimizer in its training, and ``known`` one that is alive.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._last: dict[Any, tuple[Any, ...]] = {}
        self._set_at: dict[Any, tuple[str, int]] = {}
        self._looked = 0

    def set_by(self, known: Any, frame: FrameType | None) -> None:
        """Note the line of user code that makes an optimizer, or calls what sets its hyperparameters."""
        user_frame = frames.user_frame(frame)
        if user_frame is not None:
            self._set_at[known] = frames.location(user_frame)

    def at_step(
        self, training: Training, number: int, known: Any, groups: Sequence[dict[str, Any]], plain: Callable[[Any], Any]
    ) -> None:
        """Record what a step was made with, if it is not what the last one was made with."""
        now = tuple([_values(group, plain) for group in groups[:_MOST_GROUPS]])
        key = id(training), number
        before = self._last.get(key)
        if now == before:
            return
        self._last[key] = now
        if len(self._last) > _MOST_OPTIMIZERS:
            del self._last[next(iter(self._last))]
        prefix = "" if number == 1 else "optimizer %d " % number
        shown = [
            "%s%s%s=%s" % (prefix, "group %d " % index if index else "", name, _text(value))
            for index, (group, values) in enumerate(zip(groups[:_MOST_SHOWN], now))
            for name, value in zip([name for name in group if name != "params"], values)
        ]
        full_digest = digest.of_bytes(repr(now).encode("utf-8", "backslashreplace"))
        training.event(training.steps + 1, STAGE, "%s %s" % (full_digest, "; ".join(shown)))
        self._write_source(known, groups, before, now)

    def _write_source(self, known: Any, groups: Sequence[dict[str, Any]], before: Any, now: Any) -> None:
        names = [name for name in groups[0] if name != "params"] if groups else []
        changed = [name for index, name in enumerate(names) if before is None or before[0][index] != now[0][index]]
        location = self._set_at.pop(known, None)
        for name in changed:
            where = location or self._assigned(name)
            if where is not None and seeds.has_room(name, where):
                seeds.write(self._sink, "hyperparameter", name, where, _text(now[0][names.index(name)]))

    def _assigned(self, name: str) -> tuple[str, int] | None:
        """Return the only line that assigns this key, in the files of the user code that is running."""
        self._looked += 1
        frame = frames.user_frame(sys._getframe().f_back) if self._looked <= _MOST_LOOKED_FOR else None
        files: dict[str, None] = {}
        while frame is not None:
            if frames.is_user_code(file := frames.file_of(frame)):
                files[file] = None
            frame = frame.f_back
        locations = [(file, line) for file in files for line in _assigning(linecache.getlines(file), name)]
        return locations[0] if len(locations) == 1 else None


def _assigning(lines: Iterable[str], name: str) -> list[int]:
    keys = ('["%s"]' % name, "['%s']" % name)
    line_numbers = []
    for number, line in enumerate(lines, start=1):
        after = next((line.partition(key)[2].lstrip() for key in keys if key in line), "")
        if (after[:1] == "=" and after[:2] != "==") or after[:2] in ("*=", "/=", "+=", "-="):
            line_numbers.append(number)
    return line_numbers


def _values(group: dict[str, Any], plain: Callable[[Any], Any]) -> tuple[Any, ...]:
    return tuple(
        [one if type(one) in _PLAIN else _value(one, plain) for name, one in group.items() if name != "params"]
    )


def _value(value: Any, plain: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple([one if type(one) in _PLAIN else _value(one, plain) for one in value])
    return plain(value)


def _text(value: Any) -> str:
    """Return a value as text that needs no escaping in JSON, and has no separator of values."""
    text = repr(value)[:60]
    return "".join([one for one in text if one.isalnum() or one in " .,+-_()"]) if text.isascii() else "?"
