"""QuickXplain: a minimal set of items that is enough, from few questions."""

from collections.abc import Callable, Sequence


def minimal(items: Sequence[str], enough: Callable[[list[str]], bool]) -> list[str]:
    """Return a minimal set of items that is enough, as all of them are, by QuickXplain (Junker 2004).

    Earlier ones are preferred.
    """

    def needed(background: list[str], added: bool, rest: list[str]) -> list[str]:
        if added and enough(background):
            return []
        if len(rest) == 1:
            return rest
        first, last = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        of_last = needed([*background, *first], True, last)
        of_first = needed([*background, *of_last], bool(of_last), first)
        return [*of_first, *of_last]

    return needed([], False, list(items)) if items else []
