"""The story of a check: each audit that a project has named is carried out, and asked at its gates."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor import advice, store
from detaudit.auditor.audit import Auditor
from detaudit.auditor.baseline import gates, lockfile, recordings
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.resume import stop_and_resume
from detaudit.auditor.runs.runner import Runner
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target
from detaudit.model import (
    SCHEMA_VERSION,
    Check,
    Checked,
    CheckVerdict,
    Gate,
    GateName,
    GateStatus,
    Group,
    NextStep,
    Recording,
    Training,
    Verdict,
)
from detaudit.recipe.project import NamedAudit


@dataclass(frozen=True)
class Asked:
    """One audit as it is to be carried out; ``resume`` is the target that goes on after ``stop``, or after a kill."""

    name: str
    audit: NamedAudit
    settings: Settings
    resume: Target | None = None
    stop: Target | None = None


class Checker:
    """Carries out one check. After an interruption, ``result`` holds what finished before it."""

    def __init__(
        self,
        asked: Sequence[Asked],
        command: tuple[str, ...],
        out: Path,
        lock: Path,
        update: bool,
        launcher: Launcher,
        observer: Observer,
    ) -> None:
        self._asked, self._command, self._out, self._lock, self._update = asked, command, out, lock, update
        self._launcher, self._observer = launcher, observer
        self._baselines: Mapping[str, Recording] = lockfile.read_lock(lock) if lock.exists() else {}
        self._checked: list[Checked] = []
        self._recordings: dict[str, Recording] = {}
        self._updated: tuple[str, ...] = ()
        self._not_written: list[str] = []

    def run(self) -> Check:
        """Carry every audit out, one after another, and return what its gates say."""
        store.prepare(self._out)
        for one in self._asked:
            self._observer.audit_started(one.name)
            auditor = Auditor(one.settings, self._launcher, self._observer)
            try:
                audit = auditor.run()
                recording = auditor.recording
                gates_ = self._gates(one, audit.groups[0], recording)
            except KeyboardInterrupt:
                self._checked.append(Checked(name=one.name, audit=auditor.result(interrupted=True), gates=()))
                raise
            self._checked.append(Checked(name=one.name, audit=audit, gates=gates_))
            if recording is not None and audit.verdict is Verdict.DETERMINISTIC:
                self._recordings[one.name] = recording
        self._keep()
        return self.result()

    def _gates(self, one: Asked, group: Group, recording: Recording | None) -> tuple[Gate, ...]:
        found = [gates.repeatable(group)]
        if one.audit.baseline and not self._update:
            found.append(gates.same_as_baseline(one.audit, group, recording, self._baselines.get(one.name)))
        if one.resume is not None:
            runner = Runner(one.settings, self._launcher, self._observer)
            stopped, resumed = stop_and_resume(runner, one.settings, group, one.resume, one.stop)
            trained = max((_trained_steps(part) for part in resumed.record.parts), default=0)
            found.append(gates.same_after_resume(group, stopped.run, resumed.run, trained))
        return tuple(found)

    def _keep(self) -> None:
        """Write the baselines that are to be new into the lock file."""
        rebased = {
            checked.name
            for checked, one in zip(self._checked, self._asked, strict=True)
            for gate in checked.gates
            if gate.status is GateStatus.INCOMPARABLE and one.audit.policy == "rebase"
        }
        wanted = {one.name for one in self._asked if one.audit.baseline} if self._update else rebased
        self._not_written = sorted(wanted - {*self._recordings})
        made = {name: recordings.thinned(self._recordings[name]) for name in sorted(wanted & {*self._recordings})}
        self._updated = tuple(
            line for name, new in made.items() for line in lockfile.changed(name, self._baselines.get(name), new)
        )
        if self._updated:
            lockfile.write_lock(self._lock, {**self._baselines, **made})

    def result(self, interrupted: bool = False) -> Check:
        """Return the check as it stands."""
        warnings = [f"{one.name}: {text}" for one in self._checked for text in one.audit.warnings]
        why = "no baseline is written of runs that are not known to be equal"
        return Check(
            schema_version=SCHEMA_VERSION,
            command=self._command,
            verdict=_verdict(self._checked, whole=len(self._checked) == len(self._asked) and not interrupted),
            checked=tuple(self._checked),
            lock=advice.shown(self._lock),
            updated=self._updated,
            warnings=(*dict.fromkeys(warnings), *(f"{name}: {why}" for name in self._not_written)),
            next_steps=tuple(self._next_steps()),
            interrupted=interrupted,
        )

    def _next_steps(self) -> list[NextStep]:
        steps = []
        for checked, one in zip(self._checked, self._asked, strict=False):
            states = {gate.name: gate.status for gate in checked.gates}
            if states.get(GateName.REPEATABLE) is GateStatus.FAILED:
                steps.append((advice.command(one.settings, verb="bisect"), f"{one.name}: which flags mend it?"))
            if states.get(GateName.BASELINE) in (GateStatus.FAILED, GateStatus.INCOMPARABLE):
                lock, out = (shlex.quote(advice.shown(path)) for path in (self._lock, one.settings.out))
                steps.append((f"detaudit compare {lock}#{one.name} {out}", f"{one.name}: step by step"))
                steps.append((f"detaudit check {one.name} --update", "if it is meant to be so"))
            if states.get(GateName.BASELINE) is GateStatus.UNKNOWN and one.name not in self._baselines:
                steps.append((f"detaudit check {one.name} --update", "write the baseline, to be committed"))
        return [NextStep(command=command, why=why) for command, why in steps]


def _trained_steps(part: Training) -> int:
    """Return how many steps were recorded, also of a training that goes on counting where another stopped."""
    return len({step for steps in part.digests.values() for step in steps if step > 0})


def _verdict(checked: Sequence[Checked], *, whole: bool) -> CheckVerdict:
    blocking = {gate.status for one in checked for gate in one.gates if gate.blocks}
    if blocking & {GateStatus.FAILED, GateStatus.INCOMPARABLE}:
        return CheckVerdict.FAILED
    return CheckVerdict.INCONCLUSIVE if blocking or not whole else CheckVerdict.PASSED
