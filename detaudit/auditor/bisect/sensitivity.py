"""Find which variations change a training, by the search for flags turned around; pure, starts no processes."""

from collections.abc import Sequence
from dataclasses import dataclass

from detaudit.auditor.bisect.minimal_set import Search
from detaudit.auditor.bisect.quickxplain import minimal
from detaudit.auditor.bisect.trial_results import NONE, Ask, Flags, Rank, TrialOutcome, TrialResult, WholeRuns
from detaudit.auditor.judge.confidence import ERROR_RATE, PROBE_ERROR, RAREST
from detaudit.model.evidence import runs_needed


@dataclass(frozen=True)
class Effect:
    """A variation that changes the training, and a trial that shows it: a run in it differs from the control's.

    ``together_with`` are those that vary with it in that trial, none of which can be left out.
    """

    variation: str
    found: TrialResult
    together_with: tuple[str, ...] = ()

    @property
    def varied(self) -> Flags:
        """All that varies in the trial that shows it."""
        return frozenset({self.variation, *self.together_with})


@dataclass(frozen=True)
class Sensitivity:
    """The answer. ``effects`` is None if there is none, and empty if no variation changes the training.

    ``control`` is the result of the runs at control values; ``matching`` runs, one of them the control's, match if the
    variations with an effect are pinned and the rest varies.
    """

    control: TrialResult
    effects: tuple[Effect, ...] | None
    matching: int = 0


class SensitivitySearch:
    """Searches for a minimal set of variations that must be pinned.

    ``ask`` runs a training with a set of variations, and compares it with the control, in which none varies. A
    variation that changes the training is like a flag that is needed: if it varies together with those that have no
    effect, a run differs. So the search for flags, with its proof, finds what must be pinned.
    """

    def __init__(
        self, ask: Ask, candidates: Sequence[str], rank: Rank, *, confirm: int = 5, error: float = ERROR_RATE
    ) -> None:
        self._ask, self._all, self._confirm, self._error = ask, frozenset(candidates), confirm, error
        self._candidates = tuple(candidates)
        self._rate = 1.0
        self._control: TrialResult
        self._search = Search(WholeRuns(self._pinned), rank, confirm=confirm, error=error)

    def run(self) -> Sensitivity:
        """Return what changes the training, proven as far as runs can prove it; the control comes first."""
        if self._asked(NONE, self._confirm).outcome is not TrialOutcome.MATCHES:
            return Sensitivity(self._control, None)
        answer = self._search.run()
        if answer.needed:
            self._asked(NONE, self._sure())
        if answer.needed is None or self._control.outcome is not TrialOutcome.MATCHES:
            return Sensitivity(self._control, None)
        harmless = [one for one in self._candidates if one not in answer.needed]
        effects = tuple(self._effect(one, harmless, answer.without[one]) for one in answer.needed)
        return Sensitivity(self._control, effects, answer.matching)

    def _sure(self) -> int:
        """Return how many runs of the control must match, so that no variation is blamed for a training by itself."""
        return max(self._confirm, runs_needed(self._error, min(RAREST, self._rate)))

    def _pinned(self, pinned: Flags, runs: int) -> TrialResult:
        return self._asked(self._all - pinned, runs)

    def _asked(self, varied: Flags, runs: int) -> TrialResult:
        found = self._ask(varied, runs)
        if not varied:
            self._control = found
        if found.outcome is TrialOutcome.DIFFERS:
            self._rate = min(self._rate, 1 / max(1, found.runs - 1))
        return found

    def _effect(self, variation: str, harmless: Sequence[str], seen: TrialResult) -> Effect:
        """Return a minimal set of variations that shows this one."""
        shown = {frozenset({variation, *harmless}): seen}

        def shows(together_with: list[str]) -> bool:
            varied = frozenset({variation, *together_with})
            if varied not in shown:
                found = self._asked(varied, runs_needed(PROBE_ERROR, self._rate))
                if found.outcome is not TrialOutcome.DIFFERS:
                    return False
                shown[varied] = found
            return True

        together_with = () if shows([]) else tuple(minimal(harmless, shows))
        return Effect(variation, shown[frozenset({variation, *together_with})], together_with)
