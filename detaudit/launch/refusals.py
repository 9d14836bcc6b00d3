"""Find the flags of a recipe that this system, or the environment of this training, does not support."""

import os
from collections.abc import Iterable, Mapping

from detaudit.launch import aslr, xla
from detaudit.launch.target import Target
from detaudit.model import FlagOutcome, FlagState, Inapplicable
from detaudit.model.applicability import AddressesRandom, NotImported
from detaudit.recipe.flags import NO_ASLR, Flag


def refused(flags: Iterable[Flag], target: Target, base: Mapping[str, str] = os.environ) -> dict[str, FlagState]:
    """Return the state of each flag that must not be applied, with the reason."""
    found = {}
    for flag in flags:
        reason: Inapplicable | None = None
        if flag.launcher == NO_ASLR and (refusal := aslr.refusal()):
            reason = AddressesRandom(detail=refusal)
        elif xla.VARIABLE in flag.env:
            reason = xla.refusal(flag.env[xla.VARIABLE], target, base)
        if reason is not None:
            absent = isinstance(reason, NotImported)
            state = FlagOutcome.NOT_IMPORTED if absent else FlagOutcome.UNAVAILABLE
            found[flag.id] = FlagState(id=flag.id, state=state, reason=None if absent else reason)
    return found
