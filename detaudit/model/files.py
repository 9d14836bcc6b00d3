"""The files of a run, as reports list them."""

import msgspec

from detaudit.model.number import Number


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run wrote, compared ``by`` what it holds as a format, or by its ``bytes``.

    ``digest`` is of the values that decide, ``sha256`` of the bytes, ``""`` if they were not read.
    """

    path: str
    by: str
    digest: str
    sum_of_weights: Number = None
    sha256: str = ""
