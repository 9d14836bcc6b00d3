"""Find out which devices this machine may have, before any run."""

from collections.abc import Iterable
from pathlib import Path

from detaudit.recipe.flags import Device

_ONE_GPU = {"nvidiactl", "kfd", "dxg"}
"""Device files of the drivers of NVIDIA and AMD, and of WSL for either."""


def devices(names: Iterable[str] | None = None) -> set[Device]:
    """Return the kinds of devices that may be here, by the ``names`` of the files in /dev.

    A driver that does not number its devices may have several.
    """
    found = set(names) if names is not None else {path.name for path in Path("/dev").glob("*")}
    numbered = {name for name in found if name.startswith("nvidia") and name.removeprefix("nvidia").isdigit()}
    kinds: set[Device] = {"cpu"}
    if numbered or found & _ONE_GPU:
        kinds.add("gpu")
    if len(numbered) > 1 or (found & _ONE_GPU and not numbered):
        kinds.add("multi-gpu")
    return kinds
