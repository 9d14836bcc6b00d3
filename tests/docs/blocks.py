"""The fenced blocks of a page, and what its comments say about running them.

A comment right above a block says how it is run, and a reader of the page does not see it:

- ``<!-- test: exit 1 -->``: the last command of the block ends with this exit status; all others end with 0.
- ``<!-- test: full -->``: it takes long or has a race, so only ``make test-pages`` runs it. Both:
  ``<!-- test: exit 1, full -->``.
- ``<!-- test: not here: needs a GPU -->``: it cannot be run here, and why.
- ``<!-- test: file train.py -->``: it is the content of a file, which the commands after it find in their folder.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^ *<!-- test: (?P<test>[^\n]*?) -->\n)?^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_OPERATORS = {";", "&&", "||", "|", "&", ">", ">>", "<", "(", ")"}


@dataclass(frozen=True)
class Command:
    """A command of a console block, and the lines that the page shows of its output."""

    text: str
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and what the comment above it says."""

    page: str
    line: int
    language: str
    text: str
    exit_code: int = 0
    full: bool = False
    not_here: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether its commands are run."""
        return self.language == "console" and not self.not_here and not self.file

    @property
    def commands(self) -> list[Command]:
        """The commands of a console block: a line that starts with ``$``, and what follows a backslash at its end."""
        found: list[Command] = []
        lines = iter(self.text.splitlines())
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command += "\n" + next(lines)
                found.append(Command(command, ()))
            elif found:
                found[-1] = Command(found[-1].text, (*found[-1].shown, line))
        return found


def blocks(page: Path, root: Path) -> list[Block]:
    """Return the blocks of a page. Raises ValueError for a comment that says nothing known."""
    text = page.read_text()
    name = str(page.relative_to(root))
    return [_block(match, name, text.count("\n", 0, match.start("language")) + 1) for match in _BLOCK.finditer(text)]


def _block(match: re.Match[str], page: str, line: int) -> Block:
    said = (match["test"] or "").strip()
    block = Block(page, line, match["language"], textwrap.dedent(match["text"]))
    if said.startswith("not here: "):
        return replace(block, not_here=said.removeprefix("not here: "))
    if said.startswith("file "):
        return replace(block, file=said.removeprefix("file "))
    for word in filter(None, said.split(", ")):
        if word == "full":
            block = replace(block, full=True)
        elif re.fullmatch(r"exit \d+", word):
            block = replace(block, exit_code=int(word.split()[1]))
        else:
            raise ValueError(f"{page}:{line}: unknown `test: {word}`")
    return block


def calls(block: Block) -> Iterator[list[str]]:
    """Yield the words of each ``detaudit`` that a block for a shell calls, without that word."""
    if block.language == "console":
        texts = [command.text for command in block.commands]
    elif block.language in ("sh", "bash"):
        texts = block.text.replace("\\\n", " ").splitlines()
    else:
        texts = []
    for text in texts:
        yield from _calls(text.replace("\\\n", " "))


def _calls(text: str) -> Iterator[list[str]]:
    words = shlex.shlex(re.sub(r"(^|\s)# .*", "", text), posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    call: list[str] | None = None
    for word in [*words, ";"]:
        if word in _OPERATORS:
            if call is not None:
                yield call
            call = None
        elif call is not None:
            call.append(word)
        elif word == "detaudit":
            call = []
