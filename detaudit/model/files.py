"""What runs leave beside their results: files and lines on stdout that differ, and do not decide."""

import msgspec

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
