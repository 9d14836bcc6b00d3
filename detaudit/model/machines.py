"""The machines that did the runs of a group, if there were several."""

import msgspec


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, as long as it did not restart.

    ``id`` counts from 1, ``host`` is what it calls itself. Machines of the same ``kind`` are alike in all that may
    change bits. ``runs`` are those that it did, ``results`` the numbers of their different results. ``facts`` are those
    in which the machines differ.
    """

    id: int
    host: str
    kind: int
    runs: tuple[int, ...]
    results: tuple[int, ...]
    facts: dict[str, str] = {}
