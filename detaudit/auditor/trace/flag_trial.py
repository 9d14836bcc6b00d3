"""Try the first flag that a trace offers in one more pair of runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from detaudit.auditor.judge.group import GroupInProgress
from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.ladder import FACTOR
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Runner
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.launch.until import Until
from detaudit.model import Culprit, FlagTrial, RunRecord, Status
from detaudit.recipe.flags import Catalogue, conflict
from detaudit.recipe.recipes import Recipe


@dataclass
class FlagTrials:
    """Runs the training with a recipe and one flag more, as the runs with these ``numbers``; counts ``total_runs``."""

    settings: Settings
    recipe: Recipe
    catalogue: Catalogue
    runner: Runner
    observer: Observer
    total_runs: int = 0

    def tried(self, found: Culprit, numbers: Sequence[int], reached: int | None = None) -> Culprit:
        """Return a culprit with what came of its first flag; unchanged if there is none, or it cannot be applied.

        If the runs without the flag were ended, after the step ``reached`` at the latest, those with it are ended too,
        FACTOR times as far.
        """
        recipe = self._with(found.flags[0].flag) if found.flags else None
        refused = self.runner.refused(recipe.flags) if recipe else {}
        if recipe is None or found.flags[0].flag in refused:
            return found
        plan = plan_group(self.settings, recipe, self.runner.space, refused)
        until = Until(step=FACTOR * reached) if reached is not None else None
        first = structs.replace(found.flags[0], trial=self._trial(plan, numbers, until))
        return structs.replace(found, flags=(first, *found.flags[1:]))

    def _with(self, flag: str) -> Recipe | None:
        ids = {one.id for one in self.recipe.flags} | {flag}
        while more := {needed for one in self.catalogue.select(ids) for needed in one.requires} - ids:
            ids |= more
        flags = self.catalogue.select(ids)
        if any(one.needs_value or one.by_hand_only for one in flags) or conflict(flags) is not None:
            return None
        return structs.replace(self.recipe, name=f"{self.recipe.name} +{flag}", flags=flags)

    def _trial(self, plan: GroupPlan, numbers: Sequence[int], until: Until | None) -> FlagTrial:
        group, first = GroupInProgress(plan, self.settings.cwd), RunRecord()
        self.observer.group_started(plan.recipe.name, len(numbers))
        for number in numbers:
            self.total_runs += 1
            limits = Limits(first if first.parts else None, until=until)
            result = self.runner.run(number, plan.spec(number), limits)
            group.add(result.run, result.processes, result.record, place=result.place)
            self.observer.run_finished(result.run)
            if not (result.run.finished or result.run.status is Status.STOPPED) or not result.record.parts:
                return FlagTrial(runs=len(group.result().runs), failed=True)
            first = first if first.parts else result.record
        divergence = group.result().first_difference
        return FlagTrial(
            runs=len(numbers),
            first_difference=divergence.difference if divergence else None,
            through=group.result().through,
        )
