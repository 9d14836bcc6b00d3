"""How flags go together: what the catalogue says, and what failing trials taught."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from detaudit.auditor.bisect.quickxplain import minimal
from detaudit.auditor.bisect.trial_results import Flags


@dataclass(frozen=True)
class Rules:
    """What the catalogue says about the candidates: what each requires, what it conflicts with, its alternatives."""

    requires: Mapping[str, Iterable[str]] = field(default_factory=dict)
    conflicts: Mapping[str, Iterable[str]] = field(default_factory=dict)
    alternatives: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def closed(self, flags: Iterable[str]) -> Flags:
        """Return the flags and everything they require."""
        found = set(flags)
        while more := {needed for flag in found for needed in self.requires.get(flag, ())} - found:
            found |= more
        return frozenset(found)

    def exclude(self, flag: str, others: Iterable[str]) -> bool:
        """Whether a flag conflicts with one of the others."""
        return any(other in self.conflicts.get(flag, ()) or flag in self.conflicts.get(other, ()) for other in others)

    def without(self, flags: Iterable[str], flag: str) -> Flags:
        """Return the flags and everything they require, but for one and what requires it."""
        return frozenset(one for one in self.closed(flags) if flag not in self.closed([one]))


class Failures:
    """Flags with which a training fails: ``alone``, and sets that fail only together."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.alone: dict[str, None] = {}
        self.promoted: list[str] = []
        self._together: list[Flags] = []

    def holds(self, flags: Flags) -> bool:
        """Whether these flags are known to fail: a set that fails is among them."""
        return any(together <= flags for together in self._together)

    def learn(self, chosen: Sequence[str], added: Sequence[str], fails: Callable[[list[str]], bool]) -> None:
        """Find a minimal set that fails among flags that were added to ``chosen`` and fail with them.

        The alternatives of a flag that fails alone are tried next.
        """
        core = minimal(added, lambda some: fails([*chosen, *some]))
        if chosen and not fails(core):
            core = [*minimal(chosen, lambda some: fails([*some, *core])), *core]
        if len(core) > 1:
            self._together.append(frozenset(core))
            return
        for flag in core:
            self.alone[flag] = None
            alternatives = self._rules.alternatives.get(flag, ())
            self.promoted += [other for other in alternatives if other not in self.promoted]
