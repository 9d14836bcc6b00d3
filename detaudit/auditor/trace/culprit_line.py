"""Which line of the user's code introduced a difference that entered before the framework, and what fixes it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from detaudit.auditor.source import in_place
from detaudit.auditor.trace.user_code import UserCode
from detaudit.model import ORDERS, Cause, Edit, FlagFix, Source, SourceKind
from detaudit.recipe.fix_flags import fix_flags
from detaudit.recipe.flags import Catalogue, Flag
from detaudit.recipe.variations import Variation

_CAUSES = {
    SourceKind.SEED: Cause.SEED,
    SourceKind.CLOCK: Cause.SEED,
    SourceKind.PROCESS_ID: Cause.SEED,
    SourceKind.UNSEEDED: Cause.SEED,
    SourceKind.ENTROPY: Cause.SEED,
    SourceKind.LISTING_ORDER: Cause.ORDER,
    SourceKind.LISTING_FILES: Cause.DATA,
    SourceKind.COMPLETION_ORDER: Cause.THREADS,
    SourceKind.COMPLETION_ORDER_OPTION: Cause.THREADS,
    SourceKind.SET_ORDER: Cause.HASH,
    SourceKind.OBJECT_SET_ORDER: Cause.ADDRESS,
    SourceKind.HASH: Cause.HASH,
    SourceKind.ADDRESS: Cause.ADDRESS,
    SourceKind.UNINITIALIZED: Cause.MEMORY,
    SourceKind.RACING_OPERATION: Cause.DATA,
    SourceKind.UNORDERED_OPERATION: Cause.DATA,
    SourceKind.SYSTEM_VALUE: Cause.DATA,
    SourceKind.HYPERPARAMETER: Cause.HYPERPARAMETER,
}
"""The class of cause of each kind of line; what operations do to data is the data's."""


MOST_SUSPECTS = 5


@dataclass(frozen=True)
class Fixes:
    """What can fix a culprit: the flags, for the frameworks and the devices that a run recorded.

    ``varying`` are the variations that were asked to vary. ``files`` are the user's, below ``root``.
    """

    catalogue: Catalogue
    frameworks: Mapping[str, str]
    devices: Sequence[str]
    varying: tuple[Variation, ...] = ()
    root: Path = Path()
    files: tuple[str, ...] = ()

    @property
    def varied(self) -> Variation | None:
        """The variation that varies between the runs; None if that is none, or not the only one."""
        return self.varying[0] if len(self.varying) == 1 else None

    def pinning(self, variation: Variation) -> tuple[FlagFix, ...]:
        """Return the flags that pin a variation."""
        return tuple(self._fix(self.catalogue.get(name)) for name in variation.flags)

    def flags(self, cause: Cause, source: Source | None, op: str = "") -> tuple[FlagFix, ...]:
        """Return the flags that fix a culprit, best first."""
        of_order = Cause.ORDER if cause is Cause.ADDRESS else cause
        found = fix_flags(self.catalogue, of_order, self.frameworks, self.devices, source, op)
        return tuple(self._fix(flag, source) for flag in found)

    def _fix(self, flag: Flag, source: Source | None = None) -> FlagFix:
        """Return a flag with the lines that do the same by hand, if there are any that would help.

        A call after the import does not help against a line that makes the same call again, without a seed.
        """
        overridden = source is not None and source.call in flag.call
        lines = () if overridden else self.catalogue.by_hand(flag.id, self.devices)
        found = FlagFix(flag=flag.id, title=flag.title, by_hand="", by_hand_when="")
        if not lines:
            return found
        return replace(
            found,
            by_hand=lines[-1].line,
            by_hand_when=lines[-1].when,
            by_hand_first=lines[:-1],
            in_place=in_place.place_of(self.root, self.files, flag),
        )


@dataclass(frozen=True)
class Blamed:
    """The answer of a trace: the line, what it does if that is known, the class of cause, and what fixes it."""

    file: str
    line: int
    source: Source | None
    cause: Cause
    flags: tuple[FlagFix, ...] = ()
    edit: Edit | None = None
    repeated: bool = False


@dataclass(frozen=True)
class Known:
    """What is known beside the records of two runs: the lines that introduce randomness, the code, the fixes."""

    sources: Sequence[Source]
    code: UserCode
    fixes: Fixes

    def suspects(self, source: Source | None = None) -> tuple[Source, ...]:
        """Return the other lines that may differ."""
        return tuple(one for one in self.sources if one is not source)[:MOST_SUSPECTS]

    def at(self, file: str, line: int) -> Source | None:
        """Return what a line is known to do, None if that is nothing."""
        return next((one for one in self.sources if (one.file, one.line) == (file, line)), None)


def blame_source(source: Source, code: UserCode, fixes: Fixes) -> Blamed:
    """Return the answer for a line that is known to introduce a difference."""
    known = code.classified(source)
    cause = _CAUSES[known.kind]
    edit = code.edit(known.file, known.line, known.kind)
    repeated = edit is None and code.is_repeated(known.file, known.line, known.kind)
    return Blamed(known.file, known.line, known, cause, fixes.flags(cause, known), edit, repeated)


def choose(sources: Sequence[Source], *, orders_only: bool, near: Iterable[tuple[str, int]] = ()) -> Source | None:
    """Return the line among ``sources`` that explains a difference best, None if there is none.

    ``near`` are lines at which a variable was observed to differ. If the runs only took existing values in a different
    order, a line that introduces values is not the culprit, unless there is no other.
    """
    places = set(near)
    fitting = [source for source in sources if not orders_only or source.kind in ORDERS] or list(sources)
    # A seed that is passed may follow from a different order.
    fitting.sort(key=lambda source: source.kind is SourceKind.SEED)
    met = [source for source in fitting if (source.file, source.line) in places]
    return next(iter([*met, *fitting]), None)
