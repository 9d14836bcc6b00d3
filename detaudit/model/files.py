"""What runs leave beside their results: files and lines on stdout that differ, and do not decide."""

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.number import Number


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run wrote, compared ``by`` its ``tensors`` or its ``bytes``."""

    path: str
    by: str
    digest: str
    sum_of_weights: Number = None


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs between two runs of a group, or that only one of them wrote, and that does not decide.

    ``parts`` names what differs beside the tensors of a file whose tensors match; ``more`` are not listed.
    ``only_run`` is the run that wrote it, 0 if both did. ``problem`` says why its tensors could not be read.
    """

    path: str
    runs: tuple[int, int]
    only_run: int = 0
    parts: tuple[str, ...] = ()
    more: int = 0
    problem: str = ""


class PrintedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The first lines that only one of two runs printed, but for times and paths; ``""`` if it has none."""

    runs: tuple[int, int]
    lines: tuple[str, str]


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
