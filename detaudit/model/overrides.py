"""How a script undid a flag."""

from typing import Literal

import msgspec

from detaudit.model.sources import SourceKind


class ScriptCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call in the user's code, with the text of its argument."""

    file: str
    line: int
    call: str
    value: str


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """What the script set instead of a flag.

    ``at`` says when it was noticed: a variable had ``value`` at the ``start`` of the process, a switch at its ``end``,
    or the script passed a ``seed`` of its own, or none. ``differs`` says how that seed differs between runs, null if it
    is the same in all of them.
    """

    at: Literal["start", "end", "seed"]
    name: str = ""
    value: str = ""
    call: ScriptCall | None = None
    differs: SourceKind | None = None
