"""Changes of the user's files: lines that replace others, applied to a text, as a diff, and written all or none."""

import ast
import difflib
import io
import os
import re
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from detaudit.errors import StorageError, UsageError
from detaudit.notebooks import cells, writing
from detaudit.source.text import SourceText

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line with its end, as Python counts lines: other characters do not end one."""

_HEAD = re.compile(r"#!|#.*coding[:=]")
"""The line that says what runs a file, and that of its encoding (PEP 263), which stay the first ones."""

AFTER_IMPORTS = 0
"""The line of a change that goes after the imports of a file, wherever those end."""


@dataclass(frozen=True)
class Change:
    """The lines ``old`` of a file, from ``line`` on, and what replaces them, with the imports that it ``needs``.

    ``line`` is that of the text with all earlier changes. ``flag`` does the same, ``""`` if none does;
    ``rule`` says why.
    """

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()
    flag: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Text:
    """A file's text: its lines with their ends, in its encoding."""

    lines: tuple[str, ...]
    encoding: str

    @classmethod
    def of(cls, data: bytes) -> "Text":
        """Read the bytes of a Python file. Raises SyntaxError or UnicodeDecodeError for one that Python cannot read."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return cls(tuple(_LINE.findall(data.decode(encoding))), encoding)

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return "".join(self.lines).encode(self.encoding)

    @property
    def top(self) -> int:
        """The index of the first line that is the user's, below what says how the file is read."""
        return next((at for at, line in enumerate(self.lines[:2]) if not _HEAD.match(line)), min(2, len(self.lines)))

    @property
    def end(self) -> str:
        """How its lines end."""
        return next((line[len(line.rstrip("\r\n")) :] for line in self.lines if line[-1:] in "\r\n"), "\n")

    def parts(self) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Yield what a diff compares: its name after that of the file, its first line, and its lines."""
        yield "", 1, self.lines

    def with_lines(self, start: int, stop: int, new: Sequence[str]) -> "Text":
        """Return the text with the lines from index ``start`` to ``stop`` replaced by ``new``, which have no ends."""
        before, after, end = [*self.lines[:start]], self.lines[stop:], self.end
        if before and before[-1][-1:] not in "\r\n" and new:
            before[-1] += end
        ends = [f"{line}{end}" for line in new]
        if ends and not after and start < stop and self.lines[-1][-1:] not in "\r\n":
            ends[-1] = new[-1]  # a file that did not end with a line end still does not
        return replace(self, lines=(*before, *ends, *after))


@dataclass(frozen=True)
class NotebookText(Text):
    """The code of a notebook, whose file differs from it in nothing but the cells that were changed."""

    notebook: bytes = b""

    @classmethod
    def of(cls, data: bytes) -> "NotebookText":
        """Read the file of a notebook. Raises ValueError for one that cannot be run."""
        return cls(tuple(_LINE.findall(cells.script(cells.read(data)))), "utf-8", data)

    @property
    def data(self) -> bytes:
        """The bytes of the file. Raises ValueError if a line was edited that only IPython reads."""
        return writing.with_lines(self.notebook, self.lines)

    @property
    def top(self) -> int:
        """The index of the first line of the first cell."""
        return cells.PER_CELL

    def parts(self) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Yield each cell, with the line of the script that its first line is."""
        for number, lines in enumerate(writing.sources(self.notebook, self.lines), 1):
            yield f" cell {number}", cells.PER_CELL * number + 1, tuple(f"{line}\n" for line in lines)


def text_of(file: str, data: bytes) -> Text:
    """Return the text of a file with this name. Raises SyntaxError or ValueError for one that cannot be read."""
    return NotebookText.of(data) if cells.is_notebook(file) else Text.of(data)


def applied(text: Text, change: Change) -> Text | None:
    """Return a text with a change; None if the lines that it replaces are missing, or Python cannot parse it."""
    with suppress(SyntaxError, ValueError, RecursionError):
        if change.line == AFTER_IMPORTS:
            page = SourceText("".join(text.lines))
            missing = [line for line in change.needs if not _has(page, line)]
            start = _after_imports(page, change.new, missing) or text.top
            below = [""] if start < len(text.lines) and text.lines[start].strip() else []
            new = [*missing, *([""] if start > text.top or missing else []), *change.new, *below]
            changed = text.with_lines(start, start, new)
        else:
            at = _nearest(text.lines, change.old, change.line - 1)
            if at is None:
                return None
            changed = text.with_lines(at, at + len(change.old), change.new)
            page = SourceText("".join(changed.lines))
            needed = [line for line in change.needs if not _has(page, line)]
            first = _before_imports(page)
            changed = changed.with_lines(first, first, needed)
        SourceText("".join(changed.lines))
        return changed if changed.data else None
    return None


def all_applied(texts: Mapping[str, Text], changes: Sequence[Change]) -> dict[str, Text] | None:
    """Return the texts of the changed files with these changes one after another, None if one cannot be applied."""
    changed: dict[str, Text] = {}
    for change in (*_settings_together(changes), *(one for one in changes if one.line != AFTER_IMPORTS)):
        text = applied(changed.get(change.file, texts[change.file]), change)
        if text is None:
            return None
        changed[change.file] = text
    return changed


def _settings_together(changes: Sequence[Change]) -> list[Change]:
    """Return one change for each file of all that goes after its imports, in order and each line once."""
    together: dict[str, Change] = {}
    for change in changes:
        if change.line == AFTER_IMPORTS:
            other = together.get(change.file, replace(change, new=(), needs=()))
            new, needs = (*other.new, *change.new), (*other.needs, *change.needs)
            together[change.file] = replace(
                other, new=tuple(dict.fromkeys(new)), needs=tuple(dict.fromkeys(needs)), flag=""
            )
    return list(together.values())


def _nearest(lines: Sequence[str], old: Sequence[str], start: int) -> int | None:
    """Return the index of these lines that is nearest to ``start``, None if they are nowhere."""
    bare = [line.rstrip("\r\n") for line in lines]
    matches = [n for n in range(len(bare) - len(old) + 1) if bare[n : n + len(old)] == [*old]]
    return min(matches, key=lambda n: abs(n - start), default=None)


def imported_at_top(page: SourceText) -> dict[str, str]:
    """Return the full dotted name of each name that a file imports at its top level."""
    return _names_of(page.reader.tree.body)


def _names_of(statements: Iterable[ast.stmt]) -> dict[str, str]:
    names: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, ast.Import):
            tops = ((one.asname or one.name.split(".")[0], one) for one in statement.names)
            names |= {local: one.name if one.asname else local for local, one in tops}
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names |= {one.asname or one.name: f"{statement.module}.{one.name}" for one in statement.names}
    return names


def _has(page: SourceText, statement: str) -> bool:
    """Whether a file imports at its top what a statement imports."""
    needed = imported_at_top(SourceText(statement))
    return needed.items() <= imported_at_top(page).items()


def _after_imports(page: SourceText, lines: Sequence[str], missing: Sequence[str]) -> int:
    """Return the index of the line after the last import at the top of a file, before anything that runs for long.

    In a file with imports all over it, that is before the first value that a library computes, if what these ``lines``
    use is imported by then, or by ``missing`` imports that go with them.
    """
    end, early, imported = 0, -1, dict[str, str]()
    used = {node.id for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Name)}
    for number, statement in enumerate(page.reader.tree.body):
        imports = isinstance(statement, ast.Try) and isinstance(statement.body[0], ast.Import | ast.ImportFrom)
        if isinstance(statement, ast.Import | ast.ImportFrom) or imports or _is_docstring(number, statement):
            end = statement.end_lineno or end
            if early < 0:
                imported |= _names_of([statement])
        elif not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.Pass | ast.Try):
            break
        elif early < 0 and not isinstance(statement, ast.Expr) and _calls_library(statement, imported):
            early = end
    unbound = used - _names_of(one for one in page.reader.tree.body if one.lineno <= end).keys()
    for statement in page.reader.tree.body:  # below other code, an import that these lines need
        if isinstance(statement, ast.Import | ast.ImportFrom) and not unbound.isdisjoint(_names_of([statement])):
            end = max(end, statement.end_lineno or end)
            unbound -= _names_of([statement]).keys()
    bound = {*imported, *imported_at_top(SourceText("\n".join(missing)))}
    return early if early >= 0 and used <= bound else end


def _calls_library(statement: ast.stmt, imported: Mapping[str, str]) -> bool:
    """Whether a statement calls what was imported from a library that does not come with Python."""
    names = {node.id for call in ast.walk(statement) if isinstance(call, ast.Call) for node in ast.walk(call.func)
             if isinstance(node, ast.Name)}  # fmt: skip
    modules = {imported[name].partition(".")[0] for name in names & imported.keys()}
    return bool(modules - sys.stdlib_module_names)


def _before_imports(page: SourceText) -> int:
    """Return the index of the line of the first import, after that of ``__future__``, or of the first code."""
    body = page.reader.tree.body
    for number, statement in enumerate(body):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not future and not _is_docstring(number, statement):
            return statement.lineno - 1
    return body[-1].end_lineno or 0 if body else 0


def _is_docstring(number: int, statement: ast.stmt) -> bool:
    constant = statement.value if isinstance(statement, ast.Expr) else None
    return number == 0 and isinstance(constant, ast.Constant) and isinstance(constant.value, str)


# A unified diff of all files, in the form of git.


def diff(before: Mapping[str, Text], after: Mapping[str, Text], prefix: str = "") -> str:
    """Return a unified diff of these files, as ``git apply`` takes it; ``prefix`` is the folder of the files in it.

    Of notebooks it has the cells, for people to read, since their file has them as JSON.
    """
    return "".join(
        _diff(os.path.normpath(f"{prefix}{name}") + part, old, new)
        for name in sorted(after)
        for (part, _, old), (_, _, new) in zip(before[name].parts(), after[name].parts(), strict=True)
    )


def _diff(name: str, before: Sequence[str], after: Sequence[str]) -> str:
    pieces = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=3, lineterm="\n")
    return "".join(f"{piece}\n\\ No newline at end of file\n" if piece[-1:] != "\n" else piece for piece in pieces)


def hunk_lines(before: Text, after: Text) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Yield the first line of each change between two texts, and its lines before and after, without their ends."""
    for (_, first, lines), (_, _, new) in zip(before.parts(), after.parts(), strict=True):
        matcher = difflib.SequenceMatcher(None, lines, new, autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag != "equal":
                old = tuple(line.rstrip("\r\n") for line in lines[a:b])
                yield first + a, old, tuple(line.rstrip("\r\n") for line in new[c:d])


# Write all files, or none.


def write_all(root: Path, before: Mapping[str, Text], after: Mapping[str, Text]) -> None:
    """Replace the files below ``root`` by their new texts, all or none; each keeps its mode.

    Raises UsageError if one is not what it was, StorageError if one cannot be written: then none is changed.
    """
    changed = [name for name in after if _bytes(root / name) != before[name].data]
    if changed:
        raise UsageError(
            f"{changed[0]} changed while changes were tried, so nothing was applied",
            "Start detaudit fix again, or apply the saved diff by hand.",
        )
    written: list[tuple[Path, Path]] = []
    try:
        for name, text in after.items():
            path = (root / name).resolve()
            written.append((_beside(path, text.data), path))
    except OSError as error:
        for new, _ in written:
            new.unlink(missing_ok=True)
        raise StorageError(f"cannot write {error.filename}: {error.strerror}", "Nothing was applied.") from error
    done: list[str] = []
    try:
        for name, (new, path) in zip(after, written, strict=True):
            os.replace(new, path)
            done.append(name)
    except OSError as error:
        for name in done:
            os.replace(_beside((root / name).resolve(), before[name].data), (root / name).resolve())
        for new, _ in written[len(done) :]:
            new.unlink(missing_ok=True)
        raise StorageError(f"cannot replace {error.filename}: {error.strerror}", "Nothing was applied.") from error


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _beside(path: Path, data: bytes) -> Path:
    """Write a new file beside one, with its mode, and return its path."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(name, path.stat().st_mode)
    return Path(name)
