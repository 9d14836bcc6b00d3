"""Which flags can do something for a training, from the frameworks and the devices that were seen."""

from collections.abc import Iterable, Mapping, Sequence

from detaudit.recipe.flags import Flag

_ALWAYS = ("python", "system")


def applicable(
    flags: Iterable[Flag], frameworks: Mapping[str, str], devices: Sequence[str]
) -> tuple[tuple[Flag, ...], dict[str, str]]:
    """Return the flags that apply, and of each other one the reason why it does not."""
    apply, reasons = [], {}
    for flag in flags:
        if flag.framework not in _ALWAYS and flag.framework not in frameworks:
            reasons[flag.id] = f"{flag.framework} was not imported"
        else:
            apply.append(flag)
    return tuple(apply), reasons
