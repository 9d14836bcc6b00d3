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
    - ``existed``     none was started: all files existed before the audit, and are a part of what each run starts from
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

    ``run`` is 0 if it was not started; ``detail`` says why it could not be. ``older`` are the files among them that
    existed before the audit, and were there in every run.
    """

    reads: tuple[StateRead, ...]
    outcome: FreshStart
    run: int = 0
    detail: str = ""
    older: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether it is known what the state does to the result."""
        return self.outcome in (FreshStart.SAME, FreshStart.DIFFERENT, FreshStart.EXISTED)

    def checked(self) -> str:
        """Return what a run without the state showed, or that there was none."""
        said = [self._read()]
        if self.outcome is FreshStart.SAME:
            said.append(f"Run {self.run} started without it and matches, so it was a cache")
        elif self.outcome is FreshStart.DIFFERENT:
            said.append(
                f"Run {self.run} started without it and differs: the runs before matched because they shared it, and "
                "each fresh machine may have another result"
            )
        if self.older:
            names = shortened(self.older[:_SHOWN], len(self.older[_SHOWN:]))
            said.append(
                "A machine without what existed before the audit, and was there in every run, may have another "
                f"result: {names}"
            )
        return ". ".join(said) + "."

    def unsettled(self) -> str:
        """Return why nobody can say whether the state matters, and what settles it."""
        match self.outcome:
            case FreshStart.IN_USE:
                why = f"cannot be put aside for a run without it: {self.detail}"
            case FreshStart.FAILED:
                why = f"was needed by run {self.run}, which started without it and failed"
            case FreshStart.SAME | FreshStart.DIFFERENT | FreshStart.EXISTED:
                why = "does not decide"
            case _:
                assert_never(self.outcome)
        return f"{self._read()}; that state {why}. Use --isolate, or let the script write to another folder in each run"

    def _read(self) -> str:
        shown = [read.text() for read in self.reads[:_SHOWN]]
        return f"runs did not start from the same state: {shortened(shown, len(self.reads) - len(shown))}"
