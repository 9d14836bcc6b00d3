"""What became of the flags of a recipe in the runs of a group."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from detaudit import wire
from detaudit.auditor.evidence import effective_settings
from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.evidence.event_records import FlagLine
from detaudit.model import FlagOutcome, FlagState, Warning  # the term for it
from detaudit.model.applicability import RefusedInProcess
from detaudit.model.warnings import FlagOverridden
from detaudit.recipe.applies import too_old
from detaudit.recipe.flags import Flag
from detaudit.recipe.recipes import Recipe


class FlagStates:
    """Takes in the processes of runs. Flags that are ``refused`` are not applied on this system."""

    def __init__(self, recipe: Recipe, refused: Mapping[str, FlagState]) -> None:
        self._recipe, self._refused = recipe, dict(refused)
        self._inside: dict[str, FlagState] = {}
        self._versions: dict[str, str] = {}

    def add(self, processes: Sequence[Process]) -> None:
        """Take in a run. What failed in one process failed."""
        for process in processes:
            self._versions |= process.versions
            for line in process.flags:
                known = self._inside.get(line.id)
                if known is None or known.state is not FlagOutcome.FAILED:
                    self._inside[line.id] = _state(line)

    def refuse(self, refused: Mapping[str, FlagState]) -> None:
        """Note flags that are not applied on the system of a run."""
        self._refused |= refused

    def in_process(self, order: str) -> FlagState | None:
        """Return what became of a flag or a variation that the recorder applies, None if it said nothing."""
        return self._inside.get(order)

    def states(
        self, settings: Sequence[tuple[int, tuple[effective_settings.EffectiveSettings, ...]]]
    ) -> tuple[tuple[FlagState, ...], list[Warning]]:
        """Return what became of each flag, and which the script undid so that the recipe is in doubt.

        ``settings`` are those in effect at the end of each process, by run.
        """
        states: list[FlagState] = []
        undone: list[Warning] = []
        for flag in self._recipe.flags:
            state = self._of(flag)
            override, doubtful = effective_settings.overridden(flag, self._recipe.seed, settings)
            if state.state is FlagOutcome.APPLIED and override is not None:
                state = FlagState(id=flag.id, state=FlagOutcome.OVERRIDDEN, override=override)
                undone += [FlagOverridden(flag=flag.id, override=override)] if doubtful else []
            states.append(replace(state, title=flag.title))
        return tuple(states), undone

    def _of(self, flag: Flag) -> FlagState:
        if flag.id in self._refused:
            return self._refused[flag.id]
        if not flag.runs_inside:
            reason = too_old(flag, self._versions)
            state = FlagOutcome.UNAVAILABLE if reason else FlagOutcome.APPLIED
            return FlagState(id=flag.id, state=state, reason=reason)
        return self._inside.get(flag.id, FlagState(id=flag.id, state=FlagOutcome.NOT_IMPORTED))


def _state(line: FlagLine) -> FlagState:
    """Return what the recorder says of a flag."""
    reason = RefusedInProcess(detail=line.detail) if line.state != wire.FLAG_APPLIED else None
    return FlagState(id=line.id, state=FlagOutcome(line.state), reason=reason)
