"""Keep the runs of a search on machines of one kind: two runs on different kinds may differ because of that."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from detaudit.auditor import store
from detaudit.auditor.evidence import machine
from detaudit.auditor.judge.machines import Place
from detaudit.model import FlagState

FILE = "place.json"
"""Where a run was done, in its folder: for a search that is resumed."""


class OneKind:
    """The kind of the machine that did the first run, and ``where`` that is, as the user calls it.

    ``refused`` are the flags that it does not support.
    """

    def __init__(self) -> None:
        self.where = ""
        self.refused: Mapping[str, FlagState] = {}
        self._first: Place | None = None

    def differing(self, place: Place) -> list[str]:
        """Return the names of what makes another kind of a machine, ``[]`` if it is of this kind."""
        return differing(self._first, place) if self._first is not None else []

    def take(self, place: Place, where: str, folder: Path) -> Place:
        """Note that a run was done on a machine of this kind, keep that in its folder, and return it as one of them."""
        if self._first is None:
            self._keep(place, where)
        else:
            place = replace(place, relevant=self._first.relevant)  # one that was ended early imported less
        store.write(folder / FILE, msgspec.json.encode(place))
        return place

    def restored(self, folder: Path) -> Place | None:
        """Return where a run was done by an earlier process, None if that is not known."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            place = msgspec.json.decode((folder / FILE).read_bytes(), type=Place)
            if self._first is None:
                self._keep(place, "")
            return place
        return None

    def _keep(self, place: Place, where: str) -> None:
        self._first, self.where, self.refused = place, where or place.host, place.refused


def differing(a: Place, b: Place) -> list[str]:
    """Return the names of what may change bits and differs between two machines, ``[]`` if they are alike.

    A run that was ended early does not say all that it imported: what only one run knows of packages is left out.
    """
    if a.id == b.id:
        return []
    bare = [machine.relevant(place.described) for place in (a, b)]
    names = {*bare[0], *bare[1], *(a.relevant.keys() & b.relevant.keys())}
    return sorted(name for name in names if a.relevant.get(name) != b.relevant.get(name))
