"""What an audit knows so far: it takes in runs, wherever they were started, and is a report at any time."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from detaudit.auditor import advice, earlier_audits
from detaudit.auditor.baseline import recordings
from detaudit.auditor.evidence import environment
from detaudit.auditor.evidence.event_logs import display_path
from detaudit.auditor.judge import verdict
from detaudit.auditor.judge.group import GroupInProgress
from detaudit.auditor.runs.runner import Result
from detaudit.auditor.source import machine_reads
from detaudit.launch.plan import GroupPlan, Settings
from detaudit.model import SCHEMA_VERSION, AppliedRecipe, Audit, Group, Recording, Source, Verdict, Warning
from detaudit.model.times import now


class AuditInProgress:
    """The groups of an audit, and the environment of their runs, which is extended by what they imported.

    It is that of the first run if the runs are done on other machines.
    """

    def __init__(self, settings: Settings, described: dict[str, Any]) -> None:
        self._settings, self._environment = settings, described
        self._elsewhere = False
        self._groups: list[Group] = []
        self._first: tuple[AppliedRecipe, Result] | None = None
        self._plan: GroupPlan | None = None
        self._code: dict[str, str] = {}
        self._read: tuple[int, tuple[Source, ...]] = (0, ())
        self.stopped: list[Warning] = []

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups so far, the last one maybe unfinished."""
        return tuple(self._groups)

    @property
    def has_finished_runs(self) -> bool:
        """Whether any run did all that was wanted of it."""
        return self._first is not None

    def begin(self, plan: GroupPlan, folder: Path) -> GroupInProgress:
        """Return a new group, which ``add`` and ``update`` are about from now on; ``folder`` has the user's files."""
        self._plan, group = plan, GroupInProgress(plan, folder)
        self._groups.append(group.result())
        return group

    def update(self, group: GroupInProgress) -> Group:
        """Note that the group has changed, and return what it shows."""
        self._groups[-1] = group.result()
        return self._groups[-1]

    def add(self, group: GroupInProgress, result: Result) -> Group:
        """Take in a run of the group, and return what the group shows now."""
        self.take(group, result)
        return self.update(group)

    def take(self, group: GroupInProgress, result: Result) -> None:
        """Take in a run of the group, one of many: ``update`` judges them together."""
        group.add(result.run, result.processes, result.record, result.threads, result.place)
        if result.place is not None and not self._elsewhere:
            self._environment, self._elsewhere = copy.deepcopy(dict(result.place.described)), True
        environment.add_processes(self._environment, result.processes)
        if self._plan is not None:
            cwd = self._plan.spec(result.run.id).cwd
            loaded = (file for one in result.processes if one.settings for file in one.settings.files)
            names = {display_path(file, cwd) for file in loaded}
            self._code |= earlier_audits.digests(self._settings.cwd, names - {*self._code})
        if self._first is None and result.run.finished:
            self._first = group.recipe, result

    @property
    def _reads(self) -> tuple[Source, ...]:
        """What the script reads of its machine; only runs that match ask for that, and only if nothing varied yet."""
        if self._settings.vary or not any(group.verdict is Verdict.DETERMINISTIC for group in self._groups):
            return ()
        if self._read[0] != len(self._code):
            self._read = len(self._code), machine_reads.reads(self._settings.cwd, sorted(self._code))
        return self._read[1]

    @property
    def code(self) -> Mapping[str, str]:
        """The user's source files that the runs loaded, as people name them, with their digests."""
        return self._code

    @property
    def recording(self) -> Recording | None:
        """What the first finished run recorded, None if there is none."""
        if self._first is None:
            return None
        recipe, result = self._first
        where = environment.relevant(self._environment)
        return recordings.recording_of(self._settings.target.words, recipe, where, result.run, result.record)

    def report(
        self,
        *,
        leftovers: list[str] | None = None,
        warnings: tuple[Warning, ...] = (),
        interrupted: bool = False,
    ) -> Audit:
        """Return the audit so far; ``leftovers`` are files that one run wrote and a later one read."""
        settings, groups = self._settings, self.groups
        unfinished = self.stopped or len(groups) < len(settings.recipes)
        verdicts = [*(group.verdict for group in groups), *([Verdict.INCONCLUSIVE] if unfinished else [])]
        return Audit(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=msgspec.to_builtins(self._environment),
            verdict=verdict.of_groups(verdicts),
            groups=groups,
            warnings=(
                *advice.warnings(groups, leftovers or [], warnings, isolated=settings.isolate),
                *self.stopped,
            ),
            next_steps=advice.next_steps(settings, groups, leftovers or [], self._reads),
            interrupted=interrupted,
            target=settings.target.words,
            started=settings.started,
            ended=now(),
            across=settings.across,
            loss_pattern=settings.loss_pattern.pattern if settings.loss_pattern else None,
            code=dict(sorted(self._code.items())),
        )
