"""The story of one trace: two runs that differ, two that are watched around where they do, the culprit, its tensors."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.auditor import advice, store
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge.group import GroupInProgress
from detaudit.auditor.judge.run_status import stopped
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Result, Runner
from detaudit.auditor.trace import bounds, culprit, op_diff, python_culprit
from detaudit.auditor.trace import window as windows
from detaudit.auditor.trace.instrumented import EVERY_STEP, Pair, Watched, Window
from detaudit.auditor.trace.suspects import suspects
from detaudit.launch import Launcher, refusals
from detaudit.launch.plan import Settings, plan_group
from detaudit.model import (
    SCHEMA_VERSION,
    Bounded,
    Culprit,
    Difference,
    NextStep,
    RunRecord,
    Stage,
    Status,
    TensorPair,
    Trace,
    Verdict,
)
from detaudit.recipe import ops
from detaudit.recipe.flags import Catalogue
from detaudit.recipe.recipes import Recipe


@dataclass(frozen=True)
class Asked:
    """What is to be traced. ``first`` is the step to watch from, None to find it; ``window`` how many steps."""

    settings: Settings
    recipe: Recipe
    catalogue: Catalogue
    first: int | None = None
    window: int = 1
    dump: Path | None = None


class Tracer:
    """Carries out one trace. After an interruption, ``result`` holds what is known by then."""

    def __init__(self, asked: Asked, launcher: Launcher, observer: Observer | None = None) -> None:
        self._asked, self._observer = asked, observer or Observer()
        settings = replace(asked.settings, stages=wire.STAGES)
        self._runner = Runner(settings, launcher, self._observer)
        refused = refusals.refused(asked.recipe.flags, settings.target)
        self._plan = plan_group(settings, asked.recipe, self._runner.space, refused)
        self._watched = Watched(self._runner, self._plan, self._observer, max(2, settings.runs))
        self._watched.racing = ops.names(("torch", "tensorflow"), ())
        self._environment = environment.describe({**os.environ, **settings.env})
        self._group = GroupInProgress(self._plan, settings.cwd)
        self._first: Result | None = None
        self._culprit: Culprit | None = None
        self._bounded: Bounded | None = None
        self._hidden = False
        self._runs = 0

    def run(self) -> Trace:
        """Find where two runs first differ."""
        asked = self._asked
        store.prepare(asked.settings.out)
        window = self._coarse() if asked.first is None else Window(asked.first, asked.first + asked.window - 1)
        if window is not None:
            self._narrow(window)
        return self.result()

    def _coarse(self) -> Window | None:
        """Run until two runs differ, and return the steps to watch; None where all agree, or one failed."""
        self._observer.group_started(self._asked.recipe.name, self._plan.runs)
        for number in range(1, self._plan.runs + 1):
            spec = self._plan.spec(number)
            try:
                result = self._runner.run(number, spec, self._first.record if self._first else None)
            except KeyboardInterrupt:
                self._group.add(stopped(number, spec), (), RunRecord())
                raise
            self._take(result)
            self._observer.run_finished(result.run)
            if self._group.differs or result.run.status is not Status.OK:
                break
        found = self._group.result().divergence
        return windows.around(found.step, found.stage, self._asked.window) if found else None

    def _take(self, result: Result) -> None:
        self._runs += 1
        self._group.add(result.run, result.processes, result.record)
        environment.add_processes(self._environment, result.processes)
        usable = result.run.status is Status.OK or result.record.parts
        self._first = self._first or (result if usable else None)
        self._watched.trained_by = max(self._watched.trained_by, len(result.run.ranks))
        scene = self._scene()
        self._watched.racing = ops.names(scene.frameworks, scene.devices)
        store.save(self._asked.settings.out, self.result())

    def _narrow(self, window: Window) -> None:
        """Look in the user's code where no operations can tell, else among the operations; else bound it."""
        differs = self._difference()
        self._culprit = self._without_operations(differs, window) or self._among_operations(window)
        if self._culprit is None and self._group.differs and not self._watched.problems:
            self._culprit = self._among_racing()
        if self._culprit is None:
            self._bound(window, differs)

    def _without_operations(self, differs: Difference | None, window: Window) -> Culprit | None:
        found = self._carried(differs)
        if found is None and differs is not None and (differs.stage is Stage.STEPS or not self._has_operations()):
            found = python_culprit.told(self._watched, None, differs, window, self._scene())
        return found

    def _among_operations(self, window: Window) -> Culprit | None:
        """Watch every operation in the window, or in a better one, until the first that differs is known."""
        for attempt in range(windows.ATTEMPTS):
            wide = window.last - window.first >= windows.WIDE
            pair = self._watched.pair("ops", window, None if wide else 2)
            if pair is None and (wide or self._watched.problems):
                self._hidden = self._group.differs and not self._watched.problems
                return None
            found = pair.first_operation() if pair else None
            better = windows.better(window, pair, found, attempt, bool(self._group.result().sources))
            if pair is not None and better is None:
                self._take_watched(pair)
                return self._named(found, pair, window)
            window = better or window
        return None

    def _among_racing(self) -> Culprit | None:
        """Watch only the operations that are known to race, at every step: it hides less, and finds what is rare."""
        if not self._has_operations():
            return None
        pair = self._watched.pair("racing", EVERY_STEP)
        found = pair.first_operation() if pair else None
        if pair is None or found is None or found.kind not in (op_diff.Kind.OUTPUT, op_diff.Kind.RANDOM):
            return None
        return culprit.of_operation(found, pair.differs, self._scene())

    def _carried(self, differs: Difference | None) -> Culprit | None:
        """Return the line at which a run took up what an earlier one had left, None where none left anything."""
        files = sorted(set(self._runner.carried))
        return python_culprit.carried(self._watched, files, differs, self._scene()) if files and differs else None

    def _difference(self) -> Difference | None:
        """Return where two runs that were not watched differ."""
        found = self._group.result().divergence
        return Difference(rank=found.rank, step=found.step, stage=found.stage, site=found.site) if found else None

    def _has_operations(self) -> bool:
        """Whether a framework was imported whose operations can be watched."""
        return not self._first or bool({"torch", "tensorflow"}.intersection(self._scene().frameworks))

    def _take_watched(self, pair: Pair) -> None:
        """Take the runs of a pair for the group's own where no others were started."""
        if self._asked.first is not None and not self._runs:
            self._take(pair.a)
            self._take(pair.b)

    def _named(self, found: op_diff.Finding | None, pair: Pair, window: Window) -> Culprit | None:
        scene = self._scene()
        told = python_culprit.told(self._watched, found, pair.differs, window, scene)
        if told is not None or found is None:
            return told
        wants = found.kind is op_diff.Kind.OUTPUT and (found.nth is not None or found.op.key)
        tensor = self._tensor(found, pair, window) if wants else None
        made = culprit.of_operation(found, pair.differs, scene, tensor)
        if not found.brought:
            return made
        listed = [op for op in self._watched.operations("ops") if op.listed and op.file]
        return culprit.of_pipeline(made, suspects(listed, scene), listed[0].op, scene) if listed else made

    def _tensor(self, found: op_diff.Finding, pair: Pair, window: Window) -> TensorPair | None:
        dump = self._asked.dump
        role = f"out{found.place}"
        return self._watched.tensors(window, found.op, found.nth, role, pair.differs.rank, dump)

    def _scene(self) -> culprit.Scene:
        settings = self._asked.settings
        processes = self._first.processes if self._first else ()
        return culprit.Scene(
            sources=self._group.result().sources,
            cwd=self._plan.spec(1).cwd,
            root=settings.cwd,
            catalogue=self._asked.catalogue,
            frameworks={name: version for process in processes for name, version in process.versions.items()},
            devices=[device for run in self._group.result().runs for rank in run.ranks for device in rank.devices],
        )

    def _bound(self, window: Window, differs: Difference | None) -> None:
        """Give the best answer that coarser levels allow, where no operation was seen to differ."""
        group = self._group.result()
        divergence = group.divergence
        if differs is None and divergence is None:
            return
        self._bounded = bounds.bounded(self._watched, window, divergence, group.stages, self._scene())

    def result(self, interrupted: bool = False) -> Trace:
        """Return the trace as it stands."""
        settings, group = self._asked.settings, self._group.result()
        groups = (group,)
        found = self._culprit is not None or self._bounded is not None
        verdict = Verdict.NONDETERMINISTIC if found else group.verdict
        return Trace(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=msgspec.to_builtins(self._environment),
            verdict=verdict,
            groups=groups,
            warnings=(
                *advice.warnings(groups, sorted(set(self._runner.carried)), unwatched=self._runner.unwatched),
                *dict.fromkeys(self._watched.problems),
            ),
            next_steps=self._next_steps(),
            interrupted=interrupted,
            target=settings.target.words,
            culprit=self._culprit,
            bounded=self._bounded,
            observer_effect=self._hidden,
            passes=tuple(self._watched.passes),
            launches=self._runs + self._watched.launches,
        )

    def _next_steps(self) -> tuple[NextStep, ...]:
        settings, found = self._asked.settings, self._culprit
        if found is None or not found.cures:
            return ()
        command = advice.command(settings, "--runs", str(settings.runs), "--flag", found.cures[0].flag)
        return (NextStep(command=command, why="is it deterministic with this flag?"),)
