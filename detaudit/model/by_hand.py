"""What to change by hand, without detaudit."""

import msgspec

from detaudit.model.sources import Source


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that fixes it: replace the lines ``old`` of a file, from ``line`` on, with ``new``.

    ``needs`` are the imports that the new lines need.
    """

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()


class HandLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line to paste, and ``when`` it must take effect: after an import, or before Python starts."""

    line: str
    when: str


class LineToFix(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's code that a flag acts on, and the ``edit`` that does the same there, if a safe one is known.

    ``repeated``: it makes a generator each time that it runs, so that a constant seed would repeat the same numbers.
    """

    source: Source
    edit: Edit | None = None
    repeated: bool = False
