"""The user's files: how people name them, what a line says, and how to edit it."""

import re
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from detaudit.auditor.evidence.event_logs import display_path
from detaudit.auditor.source import origins, rewrite, suspect_code
from detaudit.auditor.source.origins import Origin
from detaudit.model import Edit, Source, SourceKind


@dataclass(frozen=True)
class UserCode:
    """``root`` has the files after the runs; ``cwd`` is where a run had them."""

    root: Path
    cwd: Path

    def display(self, file: str) -> str:
        """Return a file of a run as people name it."""
        return display_path(file, self.cwd)

    def text(self, file: str | None, line: int | None) -> str:
        """Return a line, ``""`` if it cannot be read."""
        if not file or not line:
            return ""
        try:
            lines = re.split(r"\r\n?|\n", (self.root / file).read_bytes().decode(errors="replace"))
        except OSError:
            return ""
        return lines[line - 1].strip() if line <= len(lines) else ""

    def edit(self, file: str, line: int, kind: SourceKind) -> Edit | None:
        """Return the edit that fixes what is of this kind at a line, None if no safe one is known."""
        return rewrite.edit(self.root, file, line, kind)

    def is_repeated(self, file: str, line: int, kind: SourceKind) -> bool:
        """Whether a line seeds a generator at a place where a constant seed repeats the same numbers."""
        return rewrite.is_repeated_in(self.root, file, line, kind)

    def origins(self, file: str, line: int) -> tuple[Origin, ...]:
        """Return what makes the values that are used at a line, nearest first; nothing if it cannot be read."""
        try:
            return tuple(origins.origins((self.root / file).read_bytes(), line))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return ()

    def suspect(self, file: str, origin: Origin) -> Source | None:
        """Return what the code of an expression shows that introduces a value that may differ, None if nothing."""
        for line, kind, call in suspect_code.scanned(self.root / file):
            if origin.line <= line <= origin.last and kind is not SourceKind.UNINITIALIZED:
                return Source(file=file, line=line, kind=kind, call=call, suspect=True)
        return None

    def classified(self, source: Source) -> Source:
        """Return a line that iterates over a set with the kind of its elements.

        Objects only keep their order if no set is made of them, so the edit that fixes them makes a dict.
        """
        if source.kind is not SourceKind.SET_ORDER:
            return source
        edit = self.edit(source.file, source.line, source.kind)
        of_objects = edit is not None and any("dict.fromkeys(" in line for line in edit.new)
        return replace(source, kind=SourceKind.OBJECT_SET_ORDER) if of_objects else source
