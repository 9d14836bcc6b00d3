"""The layout of what ``detaudit fix`` found: each change with its evidence, what was refused, and what remains."""

from collections.abc import Sequence

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.audit import Audit, Difference
from detaudit.model.fact import count
from detaudit.model.trace import Culprit, Narrowed
from detaudit.notebooks.cells import location_of


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a file: the lines ``old`` from ``line`` on, as the user has them, and what replaces them.

    ``flag`` does the same without an edit, ``""`` if none does; ``rule`` says why it helps, ``""`` if none does.
    ``without`` is where runs differ that have all other changes, null if the change is the only one.
    """

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    flag: str = ""
    rule: str = ""
    without: Difference | None = None

    def location(self) -> str:
        """Return the file and the line."""
        return location_of(self.file, self.line)


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable that has to be set before Python starts, since no line of the script can do what it does."""

    name: str
    value: str
    flag: str
    without: Difference | None = None


class Refusal(StrEnum):
    """Why a change that was tried is not advised."""

    NO_EFFECT = "no-effect"
    FAILS = "fails"
    REPEATS_BATCHES = "repeats-batches"
    NOT_LOADED = "not-loaded"
    RARE = "rare"
    CHANCE = "chance"


REFUSALS = {
    Refusal.NO_EFFECT: "runs differ as early as without it",
    Refusal.FAILS: "a run with it failed",
    Refusal.REPEATS_BATCHES: "with it, batches repeat that were different",
    Refusal.NOT_LOADED: "the training loads this file from elsewhere",
    Refusal.RARE: "runs without it match too often to prove that it helps",
    Refusal.CHANCE: "the difference that is left moves by itself, so it may have moved by chance",
}
"""Why a change is not advised, in words."""


def in_one_line(lines: Sequence[str]) -> str:
    """Return what lines say in one: of more than two, the first."""
    said = [line.strip() for line in lines if line.strip()]
    return "; ".join(said) if len(said) < 3 else f"{said[0]} and {len(said) - 1} more lines"


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was tried and is not advised; ``flag`` is ``""`` for an edit, ``file`` for a variable."""

    file: str
    line: int
    new: tuple[str, ...]
    why: Refusal
    flag: str = ""

    def text(self) -> str:
        """Return what was tried and why it is not advised."""
        location = f"{location_of(self.file, self.line)}: " if self.file else ""
        return f"{location}{in_one_line(self.new)}: {REFUSALS[self.why]}"


class Fix(Audit, frozen=True, kw_only=True, tag="fix"):
    """A whole fix, as it is kept in audit.json.

    Its group has the runs that prove it: those with all ``hunks`` and ``variables``; of a training that nothing was
    found for, those that differ. ``diff`` is a unified diff, as ``git apply`` takes it, empty if nothing is to be
    changed. ``culprit`` and ``narrowed_to`` are of the difference that remains. ``applied``: the files were changed.
    """

    hunks: tuple[Hunk, ...]
    variables: tuple[Variable, ...]
    refused: tuple[Refused, ...]
    diff: str
    culprit: Culprit | None
    narrowed_to: Narrowed | None
    rounds: int
    total_runs: int
    applied: bool = False

    @property
    def changes(self) -> str:
        """How many changes there are: ``2 changes in 1 file``."""
        files = len({one.file for one in self.hunks})
        return f"{count(len(self.hunks), 'change')} in {count(files, 'file')}"
