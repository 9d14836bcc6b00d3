"""Which flags of a recipe this system, or this training's environment, does not take."""

import os
from collections.abc import Iterable, Mapping

from detaudit.launch import aslr, xla
from detaudit.launch.target import Target
from detaudit.model import FlagState
from detaudit.recipe.flags import NO_ASLR, Flag


def refused(flags: Iterable[Flag], target: Target, base: Mapping[str, str] = os.environ) -> dict[str, FlagState]:
    """Return the flags that must be left out, with what the report says of each."""
    found = {}
    for flag in flags:
        reason: str | None = ""
        if flag.launcher == NO_ASLR:
            reason = aslr.refusal()
        elif xla.VARIABLE in flag.env:
            reason = xla.refusal(flag.env[xla.VARIABLE], target, base)
        if reason is None:
            found[flag.id] = FlagState(id=flag.id, state="not-reached")
        elif reason:
            found[flag.id] = FlagState(id=flag.id, state="unavailable", detail=reason)
    return found
