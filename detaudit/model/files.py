"""The files of a run, as reports list them."""

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.fact import Number


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
