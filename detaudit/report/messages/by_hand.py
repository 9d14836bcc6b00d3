"""What does by hand what a flag does: lines to paste, each with where it goes, or nothing."""

from collections.abc import Iterator

from detaudit.model import Edit, FlagFix, NeededFlag


def lines(flag: FlagFix | NeededFlag) -> Iterator[str]:
    """Yield the lines that do what a flag does, with those that it requires; nothing if there are none to paste."""
    if not flag.by_hand:
        return
    if flag.in_place:
        yield f"by hand: {flag.in_place} has {flag.by_hand} already, which is not enough"
        return
    own = f"{flag.by_hand_when}: {flag.by_hand}" if flag.by_hand_when else f": {flag.by_hand}"
    if not flag.by_hand_first:
        yield f"by hand, {own}" if flag.by_hand_when else f"by hand{own}"
        return
    yield "by hand, all of these:"
    yield from (f"  {one.when}: {one.line}" for one in flag.by_hand_first)
    yield f"  {own}"


def edited(edit: Edit) -> Iterator[str]:
    """Yield the lines that an edit replaces, and what replaces them."""
    yield from (f"  - {line.strip()}" for line in edit.old)
    yield from (f"  + {line.strip()}" for line in (*edit.needs, *edit.new))
