"""The job behind ``trace``: two runs, a window, instrumented pairs, the culprit, its flag."""

import copy
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec
import psutil
from msgspec import structs

from detaudit import advice, history, store, wire
from detaudit.ahead import Ahead
from detaudit.config import choice
from detaudit.config.flags import Catalogue, conflict
from detaudit.config.options import Until
from detaudit.config.recipes import Recipe
from detaudit.entry_points import LEAVES, entry_point
from detaudit.judge.group import GroupInProgress
from detaudit.judge.policy import next_run
from detaudit.launch import Launcher
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.model import (
    ALL_STEPS,
    SCHEMA_VERSION,
    UNHOOKED,
    Culprit,
    Difference,
    Edit,
    Group,
    How,
    Narrowed,
    RemedyTrial,
    RunRecord,
    Stage,
    Status,
    StepSpread,
    Trace,
    Verdict,
)
from detaudit.model.fact import now
from detaudit.runner import Limits, MakeRunner, Observer, Result, Runner, described
from detaudit.runs import environment
from detaudit.runs.inputs import Inputs
from detaudit.runs.log import loaded_files, versions
from detaudit.source import excerpts
from detaudit.trace import align
from detaudit.trace.align import Spread
from detaudit.trace.culprit import CulpritContext, CulpritSearch, Remedies, UserCode, after_trials
from detaudit.trace.instrumented import EVERY_STEP, InstrumentedRuns, RunPair, Window
from detaudit.trace.operations import Saved
from detaudit.trial import tried

# Try what a trace offers in one more pair of runs: nothing is advised that was not run.


FACTOR = 4
"""How many times as far as the runs that differed those with a remedy go."""

MOST_FLAGS = 3
"""Flags that are tried, one after another, until one helps."""


class EditTrials(Protocol):
    """Tries an edit of the user's code in a copy; fix/trials.py does."""

    def tried(
        self, edit: Edit, numbers: Sequence[int], until: Until | None, before: RunRecord | None
    ) -> RemedyTrial | None:
        """Return what came of the runs with these numbers, None if the edit cannot be made.

        ``before`` is what a run without it recorded.
        """


MakeEditTrials = Callable[[Settings, Recipe, Launcher, Observer], EditTrials]
"""Returns what tries edits of the code of a training."""


# Choose the steps to record: those around a first difference, and better ones if two runs give no answer.


ATTEMPTS = 5
"""How often another window is tried: a race may show at a different step in each pair of runs."""

WIDE = 8
"""Steps before and after the window that are recorded too if two runs match in it."""


def around(difference: Difference, size: int) -> Window:
    """Return the ``size`` steps from a first difference on, including what runs before the first step.

    What only differs at the end may come from all that follows the last step, what no step shows from anything.
    """
    if difference.stage in UNHOOKED:
        return EVERY_STEP
    first = 0 if difference.stage is Stage.INIT or difference.step <= 1 else difference.step
    return Window(first, ALL_STEPS if difference.at_end else max(1, difference.step) + size - 1)


def better_window(
    window: Window, pair: RunPair | None, finding: align.OpFinding | None, attempt: int, explained: bool
) -> Window | None:
    """Return another window if two runs gave no answer in this one; None if they did.

    ``pair`` is None if they match, ``attempt`` counts from 0; ``explained`` says that lines are known that may
    introduce a difference of which no operation is found.
    """
    if pair is None:  # a rare race shows at a different step, if at all
        return Window(max(0, window.first - WIDE), window.last + WIDE)
    if pair.differs.step < window.first:
        size = window.last - window.first + 1
        return around(pair.differs, size) if attempt == 0 else Window(0, window.last)
    if finding is not None and _from_before(finding, window):
        return Window(0, window.last)
    if finding is None and attempt + 1 < ATTEMPTS and not explained and window.last < ALL_STEPS:
        return Window(window.first, window.last + 4 * (attempt + 1))  # the steps of threads are hard to count
    return None


def _from_before(finding: align.OpFinding, window: Window) -> bool:
    """Whether the difference is in a tensor that was made before the window opened."""
    entered = finding.op.op.startswith(align.ENTERS)
    return window.first > 2 and finding.how is How.INPUT and not entered and not finding.op.key


# Run one trace: two runs that differ, two instrumented ones around that step, the culprit, its tensors.


REPEATS, SECONDS = 200, 4.0
"""Repeats of a pass under each condition, and what they may take, unless the user names their number."""


@dataclass(frozen=True)
class ReplayRequest:
    """How to replay: so many ``repeats`` of a pass under each condition, or as many as so many ``seconds`` allow.

    The first repeat takes no time of it, because it may import modules. ``seconds`` is None if there is no limit.
    ``repro`` is the folder for a script that shows it.
    """

    repeats: int = REPEATS
    seconds: float | None = SECONDS
    repro: Path | None = None


class Replays(Protocol):
    """Repeats one operation; ops/replay.py does."""

    def replayed(self, culprit: Culprit, output_index: int, saved: Saved | None) -> Culprit:
        """Return a culprit with what its operation does by itself; unchanged unless its output alone differs.

        The inputs that were saved are discarded: they may be as large as memory.
        """


MakeReplays = Callable[[ReplayRequest, GroupPlan, Launcher, Observer], Replays]
"""Returns what repeats operations in the environment of a plan's first run."""


@dataclass(frozen=True)
class TraceRequest:
    """What to trace. ``first`` is the first step to record, None to find it; ``window`` the number of steps.

    ``replay`` says how to replay the operation that is the culprit; None if it is not replayed. ``edits`` tries what it
    suggests in the code; None where code cannot be edited, and then no edit is advised. ``try_remedies``: those and its
    flags are tried.
    """

    settings: Settings
    recipe: Recipe
    catalogue: Catalogue
    first: int | None = None
    window: int = 1
    dump: Path | None = None
    replay: ReplayRequest | None = None
    edits: MakeEditTrials | None = None
    try_remedies: bool = True


class Tracer:
    """Runs one trace. After an interruption, ``result`` has what is known by then."""

    def __init__(
        self,
        request: TraceRequest,
        launcher: Launcher,
        observer: Observer | None = None,
        make_runner: MakeRunner = Runner,
    ) -> None:
        self._request, self._launcher, self._observer = request, launcher, observer or Observer()
        self._make_runner = make_runner
        self._prepare(replace(request.settings, stages=wire.STAGES))
        self._environment = described(self._settings)
        self._considered: Group | None = None
        self._inputs = Inputs(self._settings.cwd, self._settings.target.words)
        self._culprit: Culprit | None = None
        self._narrowed: Narrowed | None = None
        self._hidden = False
        self._spread: tuple[StepSpread, ...] = ()
        self._runs, self._trial_runs = 0, 0

    def _prepare(self, settings: Settings) -> None:
        """Plan the runs with these settings; none was done so far."""
        self._settings, recipe = settings, self._request.recipe
        self._ahead = Ahead(self._launcher, settings.jobs)
        self._runner = self._make_runner(settings, self._ahead.pool, self._observer)
        self._plan = plan_group(settings, recipe, self._runner.space, self._runner.refused(recipe.flags))
        self._instrumented = InstrumentedRuns(self._runner, self._plan, self._observer, max(2, settings.runs))
        if self._plan.varying.varying:
            self._instrumented.numbers = (1, 2)
        self._instrumented.racing = choice.names(wire.FRAMEWORKS, ())
        if self._request.replay is not None:  # its inputs have to fit into memory, with room for copies and results
            self._instrumented.saves_calls_below = int(psutil.virtual_memory().available // 8)
        self._group = GroupInProgress(self._plan, settings.cwd)
        self._first: Result | None = None

    def run(self) -> Trace:
        """Find where two runs first differ."""
        request = self._request
        store.prepare(request.settings.out)
        window = self._coarse() if request.first is None else Window(request.first, request.first + request.window - 1)
        if window is None and self._outputs_differ():
            shutil.rmtree(self._plan.folder, ignore_errors=True)
            self._prepare(replace(self._settings, outputs_suffice=True))
            window = self._coarse()
        if window is not None:
            reached = self._group.result().through
            self._instrumented.every_step = Window(0, reached or ALL_STEPS)
            self._narrow(window)
            self._take_instrumented(self._instrumented.matching)
            numbers = (1, max(2, self._instrumented.numbers[1]))
            if self._culprit is not None and request.try_remedies:
                until = Until(step=FACTOR * reached) if reached is not None else None
                self._culprit = self._with_tried(self._culprit, numbers, until)
            self._culprit = self._culprit and self._replayed(self._culprit)
        elif not request.first:
            group, record = self._group.result(), self._group.record
            self._considered = history.considered(group, self.result(), request.settings, record)
        return self.result()

    def _with_tried(self, culprit: Culprit, numbers: Sequence[int], until: Until | None) -> Culprit:
        """Return a culprit with what came of its edit and of its flags, in runs with these numbers."""
        request, edit_trial, flags = self._request, None, list(culprit.flags)
        if culprit.suggested_edit is not None and request.edits is not None:
            trials = request.edits(self._settings, request.recipe, self._launcher, self._observer)
            edit_trial = trials.tried(culprit.suggested_edit, numbers, until, self.record)
            self._trial_runs += edit_trial.runs if edit_trial is not None else 0
        for number, flag in enumerate(flags[:MOST_FLAGS]):
            trial = self._tried(flag.flag, numbers, until)
            flags[number] = structs.replace(flag, trial=trial)
            if trial is not None and trial.helps(culprit.step, culprit.stage):
                break
        return after_trials(structs.replace(culprit, edit_trial=edit_trial, flags=tuple(flags)))

    def _tried(self, flag: str, numbers: Sequence[int], until: Until | None) -> RemedyTrial | None:
        """Return what came of runs with a flag more, None if it cannot be applied."""
        recipe = self._with(flag)
        refused = self._runner.refused(recipe.flags) if recipe else {}
        if recipe is None or flag in refused:
            return None
        plan = plan_group(self._settings, recipe, self._runner.space, refused)
        trial = tried(self._runner, plan, self._settings.cwd, numbers, self._observer, until).shown
        self._trial_runs += trial.runs
        return trial

    def _with(self, flag: str) -> Recipe | None:
        """Return the recipe with one flag more, and what that requires; None if detaudit cannot set them together."""
        recipe, catalogue = self._request.recipe, self._request.catalogue
        ids = {one.id for one in recipe.flags} | {flag}
        while more := {needed for one in catalogue.select(ids) for needed in one.requires} - ids:
            ids |= more
        flags = catalogue.select(ids)
        if any(one.needs_value or one.by_hand_only for one in flags) or conflict(flags) is not None:
            return None
        return structs.replace(recipe, name=f"{recipe.name} +{flag}", flags=flags)

    def _replayed(self, culprit: Culprit) -> Culprit:
        if self._request.replay is None:
            return culprit
        make: MakeReplays = entry_point(LEAVES, "replays", "part")
        replays = make(self._request.replay, self._plan, self._launcher, self._observer)
        return replays.replayed(culprit, *self._instrumented.saved)

    def _coarse(self) -> Window | None:
        """Run until two runs differ, and return the steps to record; None if all match, or one failed."""
        self._observer.group_started(self._request.recipe.name, self._plan.runs)
        settings, runs = self._request.settings, self._group.result().runs
        steps = history.earlier_steps(settings) if settings.stepwise else None
        while planned := next_run(runs, self._plan.runs, climbs=settings.stepwise, steps=steps):
            number, more = len(runs) + 1, 0 if planned.least else planned.total - len(runs) - 1
            self._observer.runs_planned(planned.total, least=planned.least)
            try:
                result = self._ahead.result(planned.until, number, more, self._run_to(planned.until), self._folder_of)
            except KeyboardInterrupt:
                self._group.add_interrupted(number, self._plan.spec(number))
                raise
            self._take(result)
            self._observer.run_finished(result.run)
            if self._group.differs and self._plan.varying.varying:
                self._instrumented.numbers = (1, number)
            if self._group.differs or not result.run.finished:
                break
            runs = self._group.result().runs
        self._ahead.end()
        first_difference = self._group.result().first_difference
        return around(first_difference.difference, self._request.window) if first_difference else None

    def _outputs_differ(self) -> bool:
        """Whether nothing is trained, and what leaves two runs differs: then they are compared by that alone."""
        if self.outputs_suffice or not advice.recorded_nothing(self._settings, [self._group.result()]):
            return False
        plan = replace(self._plan, folder=self._settings.out / "trials")
        numbers = range(1, plan.runs + 1)
        group = tried(self._runner, plan, self._settings.cwd, numbers, self._observer).group
        self._trial_runs += len(group.runs)
        return group.verdict is Verdict.NONDETERMINISTIC

    @property
    def outputs_suffice(self) -> bool:
        """Whether runs are compared by what left them alone, because nothing is trained."""
        return self._settings.outputs_suffice

    def _run_to(self, until: Until | None) -> Callable[[int], Result]:
        """Return what does the run with a number, until it differs or got so far."""
        return lambda number: self._runner.run(number, self._plan.spec(number), Limits(self._group.record, until=until))

    def _folder_of(self, number: int) -> Path:
        return self._plan.spec(number).folder

    def _take(self, result: Result) -> None:
        self._runs += 1
        self._group.add(result.run, result.processes, result.record, result.threads, result.machine)
        if result.machine is not None and self._first is None:
            self._environment = copy.deepcopy(dict(result.machine.described))
        environment.add_processes(self._environment, result.processes)
        self._inputs.take(result.processes, self._plan.spec(result.run.id).cwd)
        usable = result.run.status is Status.OK or result.record.parts
        self._first = self._first or (result if usable else None)
        self._instrumented.trained_by = max(self._instrumented.trained_by, len(result.run.ranks))
        self._instrumented.calls = bool(result.record.parts) and all(part.is_inference for part in result.record.parts)
        fixes = self._known().fixes
        self._instrumented.racing = choice.names(fixes.frameworks, fixes.devices)
        store.save(self._request.settings.out, self.result())

    def _narrow(self, window: Window) -> None:
        """Search the user's code if operations cannot help, else the operations; else narrow it down."""
        group, differs = self._group.result(), self._difference()
        self._culprit = self._without_operations(differs, window) or self._among_operations(window)
        if self._culprit is None and self._group.differs and not self._instrumented.failures:
            self._culprit = self._search.among_racing() if self._has_operations else None
        if self._culprit is None and differs is not None:
            self._narrowed = self._search.narrowed(window, group)

    def _without_operations(self, differs: Difference | None, window: Window) -> Culprit | None:
        """Look in the user's code: for a file that an earlier run left, else for the first line that differs.

        If the trainings match, no operation of them differs.
        """
        if differs is None:
            return None
        culprit = self._search.leftover_reader(self._runner.leftovers, differs)
        in_code = differs.stage is Stage.STEPS or differs.output is not None or not self._has_operations
        if culprit is None and in_code:
            culprit = self._search.in_python(None, differs, window)
        return culprit

    @property
    def _has_operations(self) -> bool:
        """Whether a framework was imported whose operations can be recorded."""
        known = {name for name, framework in wire.FRAMEWORKS.items() if framework.operations}
        return not self._first or not known.isdisjoint(self._known().fixes.frameworks)

    def _among_operations(self, window: Window) -> Culprit | None:
        """Record every operation in the window, or in a better one, until the first that differs is known."""
        for attempt in range(ATTEMPTS):
            wide = window.last - window.first >= WIDE
            pair = self._instrumented.pair("ops", window, None if wide else 2)
            if pair is None and (wide or self._instrumented.failures):
                self._hidden = self._group.differs and not self._instrumented.failures
                return None
            spread = Spread()
            finding = pair.first_operation(spread) if pair else None
            better = better_window(window, pair, finding, attempt, bool(self._group.result().sources))
            if pair is not None and better is None:
                self._spread = spread.steps(*pair.losses())
                self._take_instrumented((pair.a, pair.b))
                return self._search.named(finding, pair, window)
            window = better or window
        return None

    @property
    def _search(self) -> CulpritSearch:
        """The search with what is known by now."""
        return CulpritSearch(self._instrumented, self._known(), self._request.dump)

    @property
    def frameworks(self) -> Mapping[str, str]:
        """The versions of the frameworks that the training imported, by name."""
        return self._known().fixes.frameworks

    @property
    def files(self) -> Sequence[str]:
        """The user's source files that the training loaded, as seen from the working directory."""
        return self._known().fixes.files

    @property
    def record(self) -> RunRecord | None:
        """What the first of the runs without instrumentation recorded that got furthest."""
        return self._group.record

    def _known(self) -> CulpritContext:
        processes = self._first.processes if self._first else ()
        group = self._group.result()
        devices = [device for run in group.runs for device in run.devices]
        here = self._first is not None and self._first.machine is None
        if not devices and here and not environment.has_gpu():  # runs that were ended did not say it
            devices = ["cpu"]
        code = UserCode(root=self._request.settings.cwd, cwd=self._plan.spec(1).cwd)
        files = loaded_files(processes, code.cwd)
        varying = self._plan.varying.varying
        return CulpritContext(
            sources=group.sources,
            code=code,
            fixes=Remedies(self._request.catalogue, versions(processes), devices, varying, tuple(sorted(files))),
        )

    def _difference(self) -> Difference | None:
        """Return where two runs without instrumentation differ."""
        first_difference = self._group.result().first_difference
        return first_difference.difference if first_difference else None

    def _take_instrumented(self, results: Sequence[Result]) -> None:
        """Add instrumented runs to the group if there are no others. They are counted elsewhere."""
        if not self._group.result().runs:
            for result in results:
                self._take(result)
            self._runs = 0

    def result(self, interrupted: bool = False) -> Trace:
        """Return the trace so far."""
        settings, group = self._request.settings, self._considered or self._group.result()
        has_answer = self._culprit is not None or self._narrowed is not None
        return Trace(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=msgspec.to_builtins(self._environment),
            verdict=Verdict.NONDETERMINISTIC if has_answer else group.verdict,
            groups=(group,),
            warnings=(
                *advice.warnings((group,), self._runner.leftovers, self._runner.warnings, isolated=settings.isolate),
                *dict.fromkeys(self._instrumented.failures),
            ),
            next_steps=(
                *advice.flag_step(self._settings, self._culprit),
                *(advice.fix_step(settings) if has_answer and self._request.edits is not None else ()),
                *advice.comparing_step(settings, (group,), "trace"),
            ),
            interrupted=interrupted,
            target=settings.target.words,
            code=self._inputs.code,
            data=self._inputs.data if self._first is None or self._first.machine is None else None,
            installed=self._inputs.installed,
            options=history.options(settings),
            started=settings.started,
            ended=now(),
            culprit=self._with_excerpt(),
            narrowed_to=self._narrowed,
            observer_effect=self._hidden,
            passes=tuple(self._instrumented.passes),
            total_runs=self._runs + self._instrumented.total_runs + self._trial_runs,
            spread=self._spread,
        )

    def _with_excerpt(self) -> Culprit | None:
        culprit = self._culprit
        if culprit is None:
            return None
        return msgspec.structs.replace(
            culprit, excerpt=excerpts.at(self._request.settings.cwd, culprit.file, culprit.line)
        )
