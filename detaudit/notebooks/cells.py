"""A notebook as one script, in which the number of a line says its cell: line 3 of cell 5 is line 5003.

So whatever names a file and a line, or reads or edits code, works with notebooks as it does with scripts. Cells are
counted as Jupyter does after "Restart and Run All": only those with code.
"""

from __future__ import annotations

import ast
import json
import re
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

SUFFIX = ".ipynb"

SCRIPTS = (".py", SUFFIX)
"""How the names of files end that are run as scripts."""

PER_CELL = 1000
"""Line n of cell k is line k * PER_CELL + n, and the line before the first of a cell is its marker."""

LINE_END = re.compile(r"\r\n?|\n")

SKIPPED, MAY_RAISE = "skip-execution", "raises-exception"
"""Tags of cells that are not run, and of those that may fail, as nbclient reads them."""


class NotebookError(ValueError):
    """A notebook that cannot be run, and what to do about it; ``place`` is the cell and the line, if it is one."""

    def __init__(self, problem: str, hint: str, place: str = "") -> None:
        super().__init__(problem)
        self.hint, self.place = hint, place


class Cell:
    """A cell with code: its lines as the notebook has them, and as Python.

    ``ipython`` are the numbers of the lines that only IPython can run, ``installs`` those that are not run because they
    install packages. ``capture`` is the variable that takes what the cell prints, None if it is printed.
    """

    def __init__(self, number: int, source: str, tags: Sequence[str] = ()) -> None:
        self.number = number
        self.lines = LINE_END.split(source)
        self.is_skipped, self.may_raise = SKIPPED in tags, MAY_RAISE in tags
        self.ipython: list[int] = []
        self.installs: list[int] = []
        self.capture: str | None = None
        self.code = ["# " + line for line in self.lines] if self.is_skipped else self._python()

    def _python(self) -> list[str]:
        lines = list(self.lines)
        first = next((n for n, line in enumerate(lines) if line.strip()), 0)
        if lines[first].startswith("%%"):
            lines = self._cell_magic(first)
        return lines if _parses(lines) else self._without_magics(lines)

    def _cell_magic(self, first: int) -> list[str]:
        name, _, words = self.lines[first][2:].strip().partition(" ")
        body = self.lines[first + 1 :]
        before = self.lines[:first]
        said = "# " + self.lines[first]
        if name == "capture":
            self.capture = next((word for word in words.split() if not word.startswith("-")), "")
        if name in ("time", "capture", "prun"):
            return [*before, said, *body]
        if name == "timeit":
            setup = _OPTIONS.sub("", words.strip())
            return [*before, f"{setup}  {said}" if setup else said, *body]
        commented = ["# " + line for line in body]
        if name in _SHOWN_CELLS:
            return [*before, said, *commented]
        if name in ("writefile", "file"):
            *options, file = words.split() or [""]
            text = "\n".join(body) + "\n"
            written = "open({!r}, {!r}, encoding='utf-8').write({!r});".format(
                file, "a" if "-a" in options else "w", text
            )
            return [*before, written, *commented]
        if any(_is_install(line.strip()) for line in body):
            self.installs.append(first + 1)
            if any(line.strip() and line.strip()[0] != "#" and not _is_install(line.strip()) for line in body):
                raise NotebookError(
                    f"a cell of %%{name} installs packages and does something else",
                    "Move the installation to a cell of its own, which an audit does not run.",
                    "cell %d, line %d" % (self.number, first + 1),
                )
            return [*before, "pass  " + said, *commented]
        self.ipython.append(first + 1)
        return [
            *before,
            "get_ipython().run_cell_magic({!r}, {!r}, {!r})".format(name, words, "\n".join(body) + "\n"),
            *commented,
        ]

    def _without_magics(self, lines: list[str]) -> list[str]:
        """Return the lines with Python for each statement that only IPython reads. Lines within others stay."""
        code: list[str] = []
        while len(code) < len(lines):
            rest = lines[len(code) :]
            text = rest[0].strip()
            if _MAGIC.match(text) or _HELP.match(text):
                length = next((n + 1 for n, line in enumerate(rest) if not line.endswith("\\")), len(rest))
                text = " ".join(line.rstrip("\\").strip() for line in rest[:length])
                indent = rest[0][: len(rest[0]) - len(rest[0].lstrip())]
                code.append(indent + self._statement(text, len(code) + 1))
                code += ["# " + line for line in rest[1:length]]
            else:
                code += rest[: _length(rest)]
        return code

    def _statement(self, text: str, line: int) -> str:
        """Return Python for a line magic, a command of the shell, or a question."""
        nothing = "pass  # " + text
        if _HELP.match(text):
            return nothing
        target, sign, rest = _MAGIC.match(text).groups()  # type: ignore[union-attr]
        rest = rest.strip()
        if sign[0] == "!":
            if _is_install(rest):
                self.installs.append(line)
                return nothing
            self.ipython.append(line)
            function = "getoutput" if target or sign == "!!" else "system"
            return "{}get_ipython().{}({!r})".format(target or "", function, rest)
        name, _, words = rest.partition(" ")
        words = words.strip()
        if not target:
            if name in _INSTALLERS:
                self.installs.append(line)
                return nothing
            python = _line_magic(name, words)
            if python is not None:
                return python or nothing
        self.ipython.append(line)
        return "{}get_ipython().run_line_magic({!r}, {!r})".format(target or "", name, words)


def _line_magic(name: str, words: str) -> str | None:
    """Return Python for a magic, ``""`` if it only displays, None if IPython has to run it."""
    if name in _SHOWN or (name in ("load_ext", "reload_ext") and words in _SHOWN_EXTENSIONS):
        return ""
    if name in ("time", "timeit"):
        statement = _OPTIONS.sub("", words) if name == "timeit" else words
        return statement if _parses([statement]) else None
    if name in ("env", "set_env"):
        assigned = re.match(r"(\w+)(?:\s*=\s*|\s+)(.+)$", words)
        if assigned is None or re.search(r"[${]", words):
            return "" if name == "env" and assigned is None else None
        return "__import__('os').environ[{!r}] = {!r}".format(*assigned.groups())
    if name == "cd":
        folder = re.sub(r"^-q\s+", "", words).strip("'\"")
        if folder and not re.search(r"^-|[${]", folder):
            return f"__import__('os').chdir(__import__('os').path.expanduser({folder!r}))"
    return None


_MAGIC = re.compile(r"((?:[\w.\[\]'\",* ]+\s=\s*|\w+=\s*)?)(%(?!%)|!!?)(?=\S)(.*)$")
_HELP = re.compile(r"\?{1,2}[\w.%*]+$|[%\w.*]+(?:\[\w+\])?\?{1,2}$")
_OPTIONS = re.compile(r"^(?:-[nrtcpqov]\s*\d*\s+)*")
_SHOWN = frozenset(
    (
        *("matplotlib", "autoreload", "config", "autosave", "colors", "xmode", "precision", "pdb", "aimport"),
        *("who", "whos", "who_ls", "pwd", "ls", "lsmagic", "magic", "quickref", "history", "hist", "notebook", "page"),
        *("pinfo", "pinfo2", "pdoc", "pdef", "psource", "pfile", "psearch", "watermark", "tensorboard"),
        *("logstart", "logstop", "logoff", "logon", "logstate", "automagic", "alias_magic", "unload_ext"),
    )
)  # fmt: skip
"""Magics that change what is shown, and nothing that is computed."""

_SHOWN_CELLS = frozenset(("html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"))
_SHOWN_EXTENSIONS = frozenset(
    (
        *("autoreload", "tensorboard", "watermark", "line_profiler", "memory_profiler"),
        *("jupyter_black", "nb_black", "lab_black"),
    )
)
_INSTALLERS = frozenset(("pip", "conda", "mamba", "micromamba", "uv"))
_INSTALL = re.compile(
    r"(?:sudo\s+)?(?:\S*python[\d.]*\s+-m\s+|\{sys\.executable\}\s+-m\s+)?(?:pip[\d.]*|conda|mamba|uv|apt|apt-get|npm|brew)\s"
    r"(?:.*\s)?(?:install|uninstall|update|upgrade|remove|add|sync)\b"
)


def _is_install(command: str) -> bool:
    return _INSTALL.match(command) is not None


def _parses(lines: Sequence[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _length(lines: Sequence[str]) -> int:
    """Return how many lines the statement or the beginning of a block has that the first of these begins."""
    waiting = iter([lines[0].lstrip() + "\n", *(line + "\n" for line in lines[1:])])
    try:
        for token in tokenize.generate_tokens(lambda: next(waiting, "")):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER) and not _is_within(token, lines):
                return min(token.start[0], len(lines))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass
    return 1


def _is_within(token: tokenize.TokenInfo, lines: Sequence[str]) -> bool:
    """Whether a line ends here that is not the end of its statement: NL within brackets."""
    if token.type != tokenize.NL:
        return False
    text = lines[0].strip()
    return bool(text) and not text.startswith("#")


# Read a notebook.


def read(data: bytes) -> list[Cell]:
    """Return the cells with code. Raises NotebookError for what is not a notebook in Python."""
    return [Cell(number, text_of(cell), tags_of(cell)) for number, cell in numbered(document(data))]


def document(data: bytes) -> dict[str, Any]:
    """Return the document of a notebook in Python, of format 4. Raises NotebookError for anything else."""
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"is not a notebook: {error}", "Open it in Jupyter and save it again.") from error
    if isinstance(parsed, dict) and isinstance(parsed.get("nbformat"), int) and parsed["nbformat"] < 4:
        raise NotebookError(
            "has the notebook format %d, which Jupyter replaced in 2015" % parsed["nbformat"],
            "Open it in Jupyter and save it again, which writes format 4.",
        )
    if not isinstance(parsed, dict) or not isinstance(parsed.get("cells"), list):
        raise NotebookError("is not a notebook: it has no cells", "Open it in Jupyter and save it again.")
    language = _language(parsed)
    if language.lower() not in ("python", "python3", "ipython", ""):
        raise NotebookError(f"is a notebook in {language}, not in Python", "detaudit runs notebooks in Python.")
    return parsed


def _language(parsed: dict[str, Any]) -> str:
    metadata = parsed.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        one = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(one, dict) and isinstance(one.get(name), str):
            return str(one[name])
    return ""


def numbered(parsed: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the cells with code with their numbers. Raises NotebookError for one with too many lines."""
    number = 0
    for cell in parsed["cells"]:
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and text_of(cell).strip():
            number += 1
            lines = len(LINE_END.split(text_of(cell)))
            if lines >= PER_CELL:
                raise NotebookError(
                    "has a cell of %d lines, more than %d" % (lines, PER_CELL - 1),
                    "Split it, or move code of it to a module.",
                    "cell %d" % number,
                )
            yield number, cell


def text_of(cell: dict[str, Any]) -> str:
    """Return the source of a cell."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def tags_of(cell: dict[str, Any]) -> list[str]:
    """Return the tags of a cell."""
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


# The script that the cells are together.


def marker(number: int) -> str:
    """Return the line before the first of a cell."""
    return "# In [%d]:" % number


def script(cells: Sequence[Cell]) -> str:
    """Return the code of all cells as one text, in which each line has the number that its place says."""
    lines = [""] * (PER_CELL - 1)
    for cell in cells:
        lines += [marker(cell.number), *cell.code]
        lines += [""] * (PER_CELL - 1 - len(cell.code))
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode() + "\n"


def is_notebook(file: str) -> bool:
    """Whether a file is a notebook, by its name."""
    return file.endswith(SUFFIX)


def code_of(path: Path) -> bytes:
    """Return the code of a file: of a notebook that of its cells, else all of it. Raises OSError."""
    data = path.read_bytes()
    if not is_notebook(path.name):
        return data
    try:
        return script(read(data)).encode()
    except NotebookError as error:
        raise OSError(str(error)) from error


# Places, as people name them.


def location_of(file: str, line: int | None) -> str:
    """Return a file and a line in words: ``train.py:40``, ``thesis.ipynb cell 5, line 3``."""
    number, within = divmod(line or 0, PER_CELL)
    if not is_notebook(file) or not number:
        return "%s:%s" % (file, line)
    return "%s cell %d, line %d" % (file, number, within)


def first_line(file: str, line: int) -> int:
    """Return the first line of the cell of a line; of a script 1."""
    return max(1, line // PER_CELL * PER_CELL + 1) if is_notebook(file) else 1


def line_within(file: str, line: int) -> int:
    """Return a line as counted from the first one of its cell; of a script as it is."""
    return line - first_line(file, line) + 1
