"""Lines of the user's code, as they were when they were audited."""

import msgspec


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file around ``line``, from the line ``first`` on, without secrets.

    ``digest`` is the SHA-256 of the file.
    """

    file: str
    line: int
    first: int
    lines: tuple[str, ...]
    digest: str
