"""What does by hand what a flag does: lines to paste, each with where it goes, or nothing."""

from collections.abc import Iterator

from detaudit.model import Edit, FlagFix, NeededFlag


def lines(found: FlagFix | NeededFlag) -> Iterator[str]:
    """Yield the lines that do what a flag does, with those that it requires; nothing if there are none to paste."""
    if not found.by_hand:
        return
    if found.in_place:
        yield f"by hand: {found.in_place} has {found.by_hand} already, which is not enough"
        return
    own = f"{found.by_hand_when}: {found.by_hand}" if found.by_hand_when else f": {found.by_hand}"
    if not found.by_hand_first:
        yield f"by hand, {own}" if found.by_hand_when else f"by hand{own}"
        return
    yield "by hand, all of these:"
    yield from (f"  {one.when}: {one.line}" for one in found.by_hand_first)
    yield f"  {own}"


def edited(edit: Edit) -> Iterator[str]:
    """Yield the lines that an edit replaces, and what replaces them."""
    yield from (f"  - {line.strip()}" for line in edit.old)
    yield from (f"  + {line.strip()}" for line in (*edit.needs, *edit.new))
