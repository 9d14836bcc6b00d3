"""Finds which variations change a training, by the search for flags turned round; it knows no processes."""

from collections.abc import Sequence
from dataclasses import dataclass

from detaudit.auditor.bisect.minimal_set import NONE, Ask, Finding, Flags, Outcome, Rank, Search
from detaudit.auditor.bisect.quickxplain import smallest
from detaudit.auditor.judge.confidence import ERROR_RATE, PROBE_ERROR, RAREST, runs_needed


@dataclass(frozen=True)
class Blame:
    """A variation that matters, and a run that shows it: one that is not as the control's.

    ``beside`` are those that vary with it in that run, none of which can be spared.
    """

    variation: str
    found: Finding
    beside: tuple[str, ...] = ()

    @property
    def varied(self) -> Flags:
        """All that varies in the run that shows it."""
        return frozenset({self.variation, *self.beside})


@dataclass(frozen=True)
class Told:
    """What came of it. ``blames`` is None where that cannot be told, and empty where nothing matters.

    ``control`` is what came of the runs held still; ``matching`` runs agree where all that matters is held still and
    the rest varies, one of the control's among them.
    """

    control: Finding
    blames: tuple[Blame, ...] | None
    matching: int = 0


class Blaming:
    """Looks for the smallest set of variations that must be held still.

    ``ask`` runs a training with a set of variations, and compares it with the control, where none varies. That a
    variation changes the training is then what it is for a flag to be needed: with it alone let loose beside those
    that do not matter, a run differs. So the search for flags, with its proof, finds what is to be held still.
    """

    def __init__(
        self, ask: Ask, candidates: Sequence[str], rank: Rank, *, confirm: int = 5, error: float = ERROR_RATE
    ) -> None:
        self._ask, self._all, self._confirm, self._error = ask, frozenset(candidates), confirm, error
        self._candidates = tuple(candidates)
        self._rate = 1.0
        self._control = Finding(Outcome.FAILS)
        self._search = Search(self._held, rank, confirm=confirm, error=error)

    def run(self) -> Told:
        """Return what matters, proven as far as runs can prove it; the control comes first."""
        if self._asked(NONE, self._confirm).outcome is not Outcome.AGREES:
            return Told(self._control, None)
        answer = self._search.run()
        if answer.needed:
            self._asked(NONE, self._sure())
        if answer.needed is None or self._control.outcome is not Outcome.AGREES:
            return Told(self._control, None)
        harmless = [one for one in self._candidates if one not in answer.needed]
        blames = tuple(self._blame(one, harmless, answer.without[one]) for one in answer.needed)
        return Told(self._control, blames, answer.matching)

    def _sure(self) -> int:
        """Return how many runs of the control must match: a training that differs by itself would be blamed on one."""
        return max(self._confirm, runs_needed(self._error, min(RAREST, self._rate)))

    def _held(self, held: Flags, runs: int) -> Finding:
        return self._asked(self._all - held, runs)

    def _asked(self, varied: Flags, runs: int) -> Finding:
        found = self._ask(varied, runs)
        if not varied:
            self._control = found
        if found.outcome is Outcome.DIFFERS:
            self._rate = min(self._rate, 1 / max(1, found.runs - 1))
        return found

    def _blame(self, variation: str, harmless: Sequence[str], seen: Finding) -> Blame:
        """Return the smallest set of variations that shows this one."""
        shown = {frozenset({variation, *harmless}): seen}

        def shows(beside: list[str]) -> bool:
            varied = frozenset({variation, *beside})
            if varied not in shown:
                found = self._asked(varied, runs_needed(PROBE_ERROR, self._rate))
                if found.outcome is not Outcome.DIFFERS:
                    return False
                shown[varied] = found
            return True

        beside = () if shows([]) else tuple(smallest(harmless, shows))
        return Blame(variation, shown.get(frozenset({variation, *beside}), seen), beside)
