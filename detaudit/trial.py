"""Run a training a few times with a change, each run followed until two differ, to see what the change does."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from detaudit.config.options import Until
from detaudit.judge.group import GroupInProgress
from detaudit.launch.plan import GroupPlan
from detaudit.model import Group, RemedyTrial, RunRecord, Status
from detaudit.runner import Limits, Observer, Runner
from detaudit.runs.log import loaded_files


@dataclass
class Trial:
    """Some runs with a change: the group, what the furthest recorded, and the files that they loaded."""

    group: Group
    record: RunRecord | None
    loaded: set[str] = field(default_factory=set)

    @property
    def failed(self) -> bool:
        """Whether a run did not come to its end, and was not ended."""
        return any(not (run.finished or run.status is Status.STOPPED) for run in self.group.runs)

    @property
    def shown(self) -> RemedyTrial:
        """What a report says of it. Runs of which nothing was recorded show nothing: they count as failed."""
        divergence = self.group.first_difference
        return RemedyTrial(
            runs=len(self.group.runs),
            first_difference=divergence.difference if divergence else None,
            failed=self.failed or self.record is None or not self.record.parts,
            through=self.group.through,
        )


def tried(
    runner: Runner,
    plan: GroupPlan,
    cwd: Path,
    numbers: Iterable[int],
    observer: Observer,
    until: Until | None = None,
    *,
    follow: bool = True,
) -> Trial:
    """Do the runs of a plan that have these numbers; if they ``follow``, until two differ, else all of them.

    A run that fails is the last one; one that trained nothing is not. ``cwd`` is the folder that files are named from.
    """
    group, loaded, runs = GroupInProgress(plan, cwd), set[str](), [*numbers]
    observer.group_started(plan.recipe.name, len(runs))
    for number in runs:
        spec = plan.spec(number)
        result = runner.run(number, spec, Limits(group.record if follow else None, until=until))
        group.add(result.run, result.processes, result.record, machine=result.machine)
        loaded |= loaded_files(result.processes, spec.cwd)
        observer.run_finished(group.result().runs[-1])
        goes_on = result.run.finished or result.run.status in (Status.STOPPED, Status.NOT_RECORDED)
        if (group.differs and follow) or not goes_on:
            break
    return Trial(group.result(), group.record, loaded)
