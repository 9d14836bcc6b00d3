"""The files of a run, as reports list them."""

import msgspec

from detaudit.compat import StrEnum, assert_never
from detaudit.model.fact import Number, shortened
from detaudit.notebooks.cells import location_of


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run wrote, compared ``by`` what it holds as a format, or by its ``bytes``.

    ``digest`` is of the values that decide, ``sha256`` of the bytes, ``""`` if they were not read.
    """

    path: str
    by: str
    digest: str
    sum_of_weights: Number = None
    sha256: str = ""


class StateRead(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the run ``left_by`` wrote, and the run ``read_by`` read before it wrote it.

    ``file`` and ``line`` are the user's code that read it, ``""`` and 0 if that is unknown. ``recipe`` is that of the
    run which left it, ``""`` if it is the same.
    """

    path: str
    left_by: int
    read_by: int
    file: str = ""
    line: int = 0
    recipe: str = ""

    def text(self) -> str:
        """Return who read what of whom."""
        by = f"run {self.left_by}" + (f" of {self.recipe}" if self.recipe else "")
        at = f" at {location_of(self.file, self.line)}" if self.file else ""
        return f"run {self.read_by} read {self.path}{at}, which {by} left"


_SHOWN = 3


class FreshStart(StrEnum):
    """What came of starting one run more without the files that earlier runs had left and later ones read.

    - ``same``        it matches, so the files were a cache
    - ``different``   it differs, so the result depends on what the first run drew
    - ``existed``     it could not be started, because a file existed before the audit, and was changed
    - ``in-use``      it could not be started, because a file is in use, or cannot be renamed
    - ``failed``      it failed
    """

    SAME = "same"
    DIFFERENT = "different"
    EXISTED = "existed"
    IN_USE = "in-use"
    FAILED = "failed"


class LeftState(msgspec.Struct, frozen=True, kw_only=True):
    """The state that runs of a group read and earlier ones had left, and what the run ``run`` without it showed.

    ``run`` is 0 if it could not be started; ``detail`` says why.
    """

    reads: tuple[StateRead, ...]
    outcome: FreshStart
    run: int = 0
    detail: str = ""

    def checked(self) -> str:
        """Return what a run without the state showed."""
        if self.outcome is FreshStart.SAME:
            return f"{self._read()}. Run {self.run} started without it and matches, so it was a cache."
        return (
            f"{self._read()}. Run {self.run} started without it and differs: the runs before matched because they "
            "shared it, and each fresh machine may have another result."
        )

    def unsettled(self) -> str:
        """Return why nobody can say whether the state matters, and what settles it."""
        match self.outcome:
            case FreshStart.EXISTED:
                why = f"existed before the audit ({self.detail}), so no run can be started without it"
            case FreshStart.IN_USE:
                why = f"cannot be put aside for a run without it: {self.detail}"
            case FreshStart.FAILED:
                why = f"was needed by run {self.run}, which started without it and failed"
            case FreshStart.SAME | FreshStart.DIFFERENT:
                why = f"does not decide: run {self.run} started without it"
            case _:
                assert_never(self.outcome)
        return f"{self._read()}; that state {why}. Use --isolate, or let the script write to another folder in each run"

    def _read(self) -> str:
        shown = [read.text() for read in self.reads[:_SHOWN]]
        return f"runs did not start from the same state: {shortened(shown, len(self.reads) - len(shown))}"
