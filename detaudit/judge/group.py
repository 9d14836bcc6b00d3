"""The runs of one recipe, taken in one by one, as a Group."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from detaudit import redact, wire
from detaudit.config.choice import too_old
from detaudit.config.flags import COUNTED_CLOCK, Flag
from detaudit.config.recipes import Recipe
from detaudit.config.variations import order_id
from detaudit.judge import comparer, conditions, probes, seeds, verdict
from detaudit.judge.conditions import Crowding, slots_differ
from detaudit.launch import RunSpec
from detaudit.launch.plan import GroupPlan
from detaudit.model import (
    OUTPUTS,
    UNHOOKED,
    AppliedRecipe,
    Difference,
    Divergence,
    Explanation,
    FlagOutcome,
    FlagState,
    Group,
    LikelyCause,
    Machine,
    OutputDifference,
    OutputKind,
    Outputs,
    Reason,
    Replicas,
    Run,
    RunRecord,
    Source,
    Stage,
    Status,
    Varied,
    Verdict,
    Warning,
    shorter,
)
from detaudit.model.files import LeftState
from detaudit.model.outputs import EXIT_STATUS, TEMPORARY, Compare
from detaudit.model.problems import (
    CoresReduced,
    DeviceShared,
    Interrupted,
    MachinesRunOnce,
    OnlyLosses,
    OnlyProbes,
    OutputsOpen,
    RunsCrowded,
    RunsMissing,
    RunUnusable,
    SingleRun,
    StateUnsettled,
    TrainingsUnseen,
)
from detaudit.model.sources import SEEDING, RefusedInProcess, SourceKind
from detaudit.model.stage import STAGES
from detaudit.model.warnings import (
    FlagOverridden,
    NamesUnused,
    SeedsFromCountedClock,
    StateChecked,
    TemporaryFilesSkipped,
    VariationFailed,
)
from detaudit.outputs.compare import deciding, differences, unused
from detaudit.runs import log
from detaudit.runs import settings as effective_settings
from detaudit.runs.environment import has_gpu
from detaudit.runs.log import Process
from detaudit.runs.log_records import FlagLine
from detaudit.runs.status import common_step, compared, cut, ended
from detaudit.source import excerpts, randomness

# What became of the flags of a recipe in the runs of a group.


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


# Where two runs first differ, and what that points to.


def of_difference(difference: Difference, recorded: Sequence[Stage]) -> Explanation:
    """Return what a first difference points to, and claim no more than the recorded stages allow."""
    if difference.at_end and difference.stage not in UNHOOKED:
        return Explanation(likely=(LikelyCause.AFTER_THE_LAST_STEP,))
    if difference.of_fit:
        matching = tuple(
            one for one in recorded if one in (Stage.RNG, Stage.BATCH) and one.position < difference.stage.position
        )
        return Explanation(matching=matching, likely=STAGES[difference.stage].likely_of_fit)
    return explanation(difference.stage, recorded)


def explanation(stage: Stage, recorded: Sequence[Stage]) -> Explanation:
    """Return what a first difference at ``stage`` points to, and claim no more than the recorded stages allow."""
    likely = STAGES[stage].likely
    if stage in UNHOOKED and Stage.UPDATE in recorded:
        likely = (LikelyCause.BESIDE_THE_TRAINING if stage in OUTPUTS else LikelyCause.OUTSIDE_THE_WEIGHTS,)
    matching = tuple(one for one in recorded if one.position < stage.position and one is not Stage.INIT)
    direct, leaves_open = STAGES[stage].hidden_by or (None, None)
    if leaves_open is LikelyCause.BACKWARD_KERNEL and not {Stage.BATCH, Stage.FORWARD} & {*recorded}:
        leaves_open = LikelyCause.DATA
    if leaves_open is not None and direct not in recorded:
        # The data include what the loss is given.
        likely = (leaves_open, *(cause for cause in likely if cause is not LikelyCause.LOSS_ARGUMENTS))
    return Explanation(matching=() if stage is Stage.STEPS else matching, likely=likely)


_COMPUTED = frozenset({LikelyCause.FORWARD_KERNEL, LikelyCause.BACKWARD_KERNEL, LikelyCause.OPTIMIZER})
_DRAWS = SEEDING | {SourceKind.UNSEEDED, SourceKind.ENTROPY}
"""Lines whose random numbers differ between runs."""


def with_lines(explained: Explanation, sources: Iterable[Source]) -> Explanation:
    """Return what a first difference points to if these lines are named: first to those that draw, if any.

    Random numbers can enter behind the inputs and the loss, which match then: as noise on gradients, for example. Where
    the data may differ, they come first already.
    """
    if LikelyCause.NOT_RECORDED in explained.likely:
        return replace(explained, likely=())
    computed = LikelyCause.DATA not in explained.likely and not _COMPUTED.isdisjoint(explained.likely)
    if computed and any(source.kind in _DRAWS and not source.names_something for source in sources):
        return replace(explained, likely=(LikelyCause.SEEDS, *explained.likely))
    return explained


def in_changed_environment(explained: Explanation) -> Explanation:
    """Return what a first difference points to if the environment changed, which seeds do not explain."""
    others = tuple(cause for cause in explained.likely if cause is not LikelyCause.SEEDS)
    return replace(explained, likely=(LikelyCause.ENVIRONMENT, *others)) if others != explained.likely else explained


def after_leftovers(group: Group) -> Group:
    """Return a group whose first difference points first to the files that one run left and a later one read."""
    found = group.first_difference
    if found is None:
        return group
    others = tuple(cause for cause in found.explanation.likely if cause is not LikelyCause.NOT_RECORDED)
    explanation = replace(found.explanation, likely=(LikelyCause.LEFTOVERS, *others))
    return replace(group, first_difference=replace(found, explanation=explanation))


def first_divergence(runs: Sequence[Run], recorded: Sequence[Stage] = ()) -> Divergence | None:
    """Return the earliest difference of any run from the one that it was compared with."""
    base = min(runs, key=lambda run: (not run.ranks, run.first_difference is not None), default=None)
    differing = [(run, run.first_difference) for run in runs if run.first_difference is not None]
    if base is None or not differing:
        return None
    run, first = min(differing, key=lambda pair: pair[1].order)
    reference = run.reference or base.id
    ended = all(one.finished for one in runs if one.id in (reference, run.id))
    trained = ended or first.stage not in OUTPUTS  # else one failed or did not train, and no training was compared
    return Divergence(
        runs=(reference, run.id),
        rank=first.rank,
        step=first.step,
        stage=first.stage,
        site=first.site,
        at_end=first.at_end,
        call=first.call,
        also=first.also,
        output=first.output,
        explanation=of_difference(first, recorded if trained else ()),
    )


# Which runs of a group have the same results, as far as they went.


class _Ended(NamedTuple):
    """How a run ended, and what left it."""

    run: int
    exit_code: int | None
    outputs: Outputs | None


class Results:
    """Compares each run with the first of those that match and got furthest; ``record`` is its recording.

    ``output_differences`` are in what left a run and the reference, whether they decide or not. ``temporary`` are
    files that both wrote where none is compared.
    """

    def __init__(self) -> None:
        self.record: RunRecord | None = None
        self.generators: tuple[str, ...] = ()
        self.output_differences: list[OutputDifference] = []
        self.temporary: set[str] = set()
        self._found: list[str] = []
        self._runs: list[int] = []
        self._outputs: dict[str, list[Outputs]] = {}
        self._compared: list[tuple[Outputs, Outputs, tuple[OutputDifference, ...]]] = []
        self._unproven: list[_Ended] = []
        self._proven: _Ended | None = None
        self._processes: Sequence[Process] = ()
        self._reference: int | None = None
        self._unused: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self._found)

    @property
    def distinct(self) -> int:
        """How many different results there are."""
        return len(set(self._found))

    @property
    def by_run(self) -> dict[int, str]:
        """A text for each run by its number, equal for runs with the same results."""
        return dict(zip(self._runs, self._found, strict=True))

    @property
    def numbers(self) -> dict[int, int]:
        """The number of each run's result, from 1, in the order of the runs."""
        in_order = dict(sorted(self.by_run.items()))
        order = {result: number for number, result in enumerate(dict.fromkeys(in_order.values()), 1)}
        return {run: order[result] for run, result in in_order.items()}

    @property
    def unused(self) -> tuple[str, ...]:
        """The names by which values were declared and that the first run that went to its end has nowhere."""
        if self._unused is None:
            whole = [one.outputs for one in self._unproven if one.exit_code is not None]
            if self.record is not None and self.record.through is None:
                whole.insert(0, self.record.outputs)
            self._unused = next((unused(outputs) for outputs in whole if outputs is not None), None)
        return self._unused or ()

    @property
    def outputs_compared(self) -> bool:
        """Whether all that left the runs is compared, of those that went to their end."""
        outputs = self.record.outputs if self.record is not None else None
        return outputs is not None and outputs.rules.compare is not Compare.TRAINING

    def add(self, run: Run, processes: Sequence[Process], record: RunRecord, shown: str) -> Run:
        """Take in a run, and return it with its first difference. ``shown`` is its result if nothing was recorded."""
        self._compared.clear()
        if self.record is None:
            self.record, self._processes = record, processes
        is_first_end = self._proven is None or self._proven.exit_code is None
        if self._proven is None or self._proven.outputs is None:
            self._proven = _ended(run, record.outputs)
        result = self._identity(record) if record.parts else shown
        self._found.append(result)
        self._runs.append(run.id)
        self._note_outputs(run.id, self.record.outputs, record.outputs)
        if result == self._found[0]:
            self._take_further(run, processes, record)
            known = self._unproven and is_first_end
            return self._between(self._unproven[0], _ended(run, record.outputs), run) if known else run
        self.generators = self.generators or comparer.differing_generators(self._processes, processes)
        return replace(run, first_difference=comparer.first_difference(self.record, record), reference=self._reference)

    def add_unproven(self, run: Run, outputs: Outputs | None) -> Run:
        """Take in a run that recorded no training, or failed: it proves no equality, but may prove a difference.

        Its exit status and what left it are compared with those of the first run. Return it with what differs first.
        """
        self._compared.clear()
        new = _ended(run, outputs)
        first = self._proven or (self._unproven[0] if self._unproven else None)
        self._unproven.append(new)
        return self._between(first, new, run) if first is not None else run

    def _between(self, first: "_Ended", new: "_Ended", run: Run) -> Run:
        if first.exit_code is None or new.exit_code is None:
            return run
        ours, theirs = first.outputs, new.outputs
        compare = {one.rules.compare for one in (ours, theirs) if one is not None}
        difference = None if Compare.TRAINING in compare else _exit_status(first.exit_code, new.exit_code)
        succeeded = not first.exit_code and not new.exit_code
        if difference is None and succeeded and ours is not None and theirs is not None:
            self._note_outputs(run.id, ours, theirs, first.run)
            difference = comparer.of_output(deciding(self._differences(ours, theirs)))
        if difference is None:
            return run
        for one in (first, new):
            if one.run not in self._runs:
                self._runs.append(one.run)
                self._found.append(self._of_outputs(f"{Stage.EXIT} {one.exit_code}", one.outputs))
        return replace(run, first_difference=difference, reference=first.run)

    def _note_outputs(self, run: int, ours: Outputs | None, theirs: Outputs | None, reference: int = 0) -> None:
        if ours is None or theirs is None or ours is theirs:
            return
        if ours.rules.compare is not Compare.TRAINING:
            self.temporary |= _temporary(ours) & _temporary(theirs)
        known = {(one.path, one.kind) for one in self.output_differences}
        runs = (reference or self._reference or self._runs[0], run)
        self.output_differences += [
            replace(one, runs=runs) for one in self._differences(ours, theirs) if (one.path, one.kind) not in known
        ]

    def _differences(self, ours: Outputs, theirs: Outputs) -> tuple[OutputDifference, ...]:
        """Return in what the outputs of the run that is taken in differ from others, which is only compared once."""
        for a, b, known in self._compared:
            if a is ours and b is theirs:
                return known
        differing = differences(ours, theirs)
        self._compared.append((ours, theirs, differing))
        return differing

    def _identity(self, record: RunRecord) -> str:
        """Return a text that is equal for runs with the same results, as far as they were run."""
        ours = self.record
        cut = bool(self._found) and ours is not None and (ours.through, record.through) != (None, None)
        if cut and ours is not None and comparer.first_difference(ours, record) is None:
            return self._found[0]
        return self._of_outputs(comparer.identity(record), record.outputs)

    def _of_outputs(self, trained: str, outputs: Outputs | None) -> str:
        """Return a text that is equal for runs with equal trainings if nothing that decides differs in their outputs.

        A run is like the first one of which that is so.
        """
        if outputs is None:
            return trained
        kinds = self._outputs.setdefault(trained, [])
        alike = (n for n, one in enumerate(kinds) if deciding(self._differences(one, outputs)) is None)
        number = next(alike, len(kinds))
        if number == len(kinds):
            kinds.append(outputs)
        return f"{trained} {number}"

    def _take_further(self, run: Run, processes: Sequence[Process], record: RunRecord) -> None:
        ours = self.record.through if self.record is not None else None
        if ours is None or (record.through is not None and record.through <= ours):
            return
        self.record, self._processes, self._reference = record, processes, run.id
        matching, identity = self._found[0], self._of_outputs(comparer.identity(record), record.outputs)
        self._found = [identity if result == matching else result for result in self._found]


def _ended(run: Run, outputs: Outputs | None) -> _Ended:
    """Return how a run ended; of one that was ended early, its exit status says nothing."""
    early = run.status in (Status.ENDED, Status.STOPPED)
    return _Ended(run.id, None if early else run.exit_code, outputs)


def _temporary(outputs: Outputs) -> set[str]:
    return {one.path for one in outputs.listed if one.row == TEMPORARY}


def _exit_status(a: int, b: int) -> Difference | None:
    """Return that two runs ended themselves with different exit statuses; None if not, or if one was killed."""
    if a == b or a < 0 or b < 0:
        return None
    difference = OutputDifference(path=EXIT_STATUS, kind=OutputKind.VALUE, values=(str(a), str(b)))
    return Difference(rank=0, step=0, stage=Stage.EXIT, site=EXIT_STATUS, output=difference)


# Compare the runs of one recipe with each other as they finish.


class GroupInProgress:
    """Takes in the runs of a recipe one by one; ``result`` is the group so far.

    ``folder`` has the user's files after the runs.
    """

    def __init__(self, plan: GroupPlan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._runs: list[Run] = []
        self._replicas: Replicas | None = None
        self._probes = probes.Comparison()
        self._results = Results()
        self._seeds: list[seeds.Seen] = []
        self._settings: list[tuple[int, tuple[effective_settings.EffectiveSettings, ...]]] = []
        self._flags = FlagStates(plan.recipe, plan.refused)
        self._crowding = Crowding(plan.jobs, gpu=has_gpu())
        self._machines = conditions.Machines()
        self._state: LeftState | None = None
        self._known: Group | None = None

    def add(
        self,
        run: Run,
        processes: Sequence[Process],
        record: RunRecord,
        threads: int = 0,
        machine: conditions.RunMachine | None = None,
    ) -> None:
        """Take in a run, and compare its ``record`` with the first of those that got furthest.

        One that failed, or recorded no training, is compared by its exit status and by what left it. ``threads`` is how
        many it used, if others went on beside it. ``machine`` is where it was done, None for this machine.
        """
        self._machines.add(run.id, machine)
        self._flags.refuse(machine.refused if machine is not None else {})
        stopped_short = run.status is Status.STOPPED and bool(record.parts)
        if run.finished or stopped_short:
            run = self._results.add(run, processes, record, self._probes.add(run.id, processes))
            if self._replicas is None or self._replicas.first_difference is None:
                replicas = comparer.replicas(run.id, processes)
                differ = replicas is not None and replicas.first_difference is not None
                self._replicas = replicas if self._replicas is None or differ else self._replicas
            self._take_settings(run.id, processes, whole=not stopped_short)
        elif run.status in (Status.FAILED, Status.NOT_RECORDED):
            run = self._results.add_unproven(run, record.outputs)
            self._take_settings(run.id, processes, whole=run.status is Status.NOT_RECORDED)
        differs = run.first_difference
        if differs is not None and differs.output is not None:
            runs = (run.reference or next(iter(self._results.by_run)), run.id)
            output = replace(self._concealed(differs.output), runs=runs)
            run = replace(run, first_difference=replace(differs, output=output))
        self._crowding.add(run, threads, processes, self._plan.spec(run.id).env)
        self._runs.append(run)
        self._known = None
        self._flags.add(processes)

    def add_interrupted(self, number: int, spec: RunSpec) -> None:
        """Take in a run that an interruption stopped. What it did counts if it differs already, and else not."""
        processes = log.read_run(spec.folder)
        step = common_step(processes)
        cut(processes, step)
        record = compared(spec, processes)
        run = ended(number, spec, processes, 0.0, Interrupted())
        trained = step > 0 and bool(record.trainings) and self.record is not None and bool(self.record.trainings)
        if trained and self.record is not None and comparer.first_difference(self.record, record) is not None:
            self.add(replace(run, through=step), processes, record)
        else:
            self.add(replace(run, ranks=()), (), RunRecord())

    def settle(self, state: LeftState) -> None:
        """Note what runs read that earlier ones had left, and what the last run, which started without it, showed."""
        self._state, self._known = state, None

    def _concealed(self, difference: OutputDifference) -> OutputDifference:
        """Return a difference without the secrets that the runs are given, whoever printed them."""
        spec = self._plan.spec(1)
        at, (a, b) = difference.at, difference.values
        for secret in redact.secrets(spec.argv, spec.env):
            at, a, b = (text.replace(secret, redact.HIDDEN) for text in (at, a, b))
        return replace(difference, at=at, values=(a, b))

    @property
    def record(self) -> RunRecord | None:
        """What the first of those runs recorded that match and got furthest, None if none can be compared."""
        return self._results.record

    @property
    def recipe(self) -> AppliedRecipe:
        """The recipe of all its runs."""
        recipe = self._plan.recipe
        return AppliedRecipe(name=recipe.name, seed=recipe.seed, flags=tuple(flag.id for flag in recipe.flags))

    @property
    def differs(self) -> bool:
        """Whether two runs already differ."""
        return self._results.distinct > 1

    @property
    def crowded(self) -> RunsCrowded | CoresReduced | DeviceShared | None:
        """Why runs that match do not count: others at once had a part of what they need. None if they do."""
        return self._crowding.reason

    def result(self) -> Group:
        """Return the group so far, computed once for each run: it may read the user's files."""
        if self._known is None:
            self._known = self._judged()
        return self._known

    def _judged(self) -> Group:
        finished = len(self._results)
        planned = max(self._plan.runs, len(self._runs))
        distinct, numbers = self._results.distinct, self._results.numbers
        places = self._machines.with_results(numbers)
        early = {run.id for run in shorter(self._runs)}
        furthest, expected = finished - len(early), max(self._plan.runs, len(self._runs) - len(early))
        group_verdict, once = self._verdict(planned, furthest, places)
        stages = self._results.record.stages if self._results.record else ()
        runs = tuple(replace(run, result=numbers.get(run.id)) for run in self._runs)
        divergence = first_divergence([run for run in runs if run.counts], stages)
        flags, undone = self._flags.states(self._settings)
        moving = self._plan.varying.varied_settings | self._plan.jobs.varied_settings
        sources = self._sources(divergence, stages) if distinct > 1 else ()
        if divergence is not None and sources:
            divergence = replace(divergence, explanation=with_lines(divergence.explanation, sources))
        temporary = self._results.temporary if group_verdict is not Verdict.NONDETERMINISTIC else ()
        to_the_end = any(run.status is Status.OK for run in self._runs)
        return Group(
            recipe=self.recipe,
            verdict=group_verdict,
            distinct_results=distinct,
            confidence=verdict.confidence(furthest) if distinct == 1 and self._crowding.reason is None else None,
            runs=runs,
            first_difference=divergence,
            stages=stages,
            sources=sources,
            differing_generators=self._results.generators,
            weights_sampled=self._results.record is not None and self._results.record.sampled,
            replicas=self._replicas,
            probe_count=self._probes.names,
            first_probe_difference=self._probes.first,
            flags=flags,
            settings=effective_settings.described(self._processes[0]) if self._processes else (),
            warnings=(
                *undone,
                *effective_settings.warnings([one for one in self._settings if one[0] not in early], moving),
                *self._failed_variations(),
                *slots_differ(self._plan.jobs, self._results.by_run),
                *([StateChecked(state=self._state)] if self._state is not None and not self._unsettled else []),
                *self._seeds_from_counted_clock(),
                *([NamesUnused(names=self._results.unused)] if self._results.unused else []),
                *([TemporaryFilesSkipped(files=tuple(sorted(temporary)))] if temporary else []),
            ),
            reason=(once or self._reason(furthest, expected)) if group_verdict is Verdict.INCONCLUSIVE else None,
            varied=self._varied(),
            not_varied=dict(self._plan.varying.not_varied),
            output_differences=tuple(map(self._concealed, self._results.output_differences)),
            outputs_compared=self._results.outputs_compared,
            through=None if to_the_end else max((run.through or 0 for run in self._runs if run.finished), default=None),
            planned_runs=planned,
            differing_share=verdict.differing_share(numbers[run] for run in numbers.keys() - early),
            machines=places,
            left_state=self._state,
            excerpts=excerpts.of(self._folder, ((source.file, source.line) for source in sources)),
        )

    def _take_settings(self, number: int, processes: Sequence[Process], *, whole: bool) -> None:
        """Take in the lines of a run that draw or seed random numbers and, if it is ``whole``, its settings."""
        cwd = self._plan.spec(number).cwd
        self._seeds.append(seeds.seen_in(processes, cwd))
        if whole:
            settings = effective_settings.in_force(processes, cwd, partial(self._plan.shared, number))
            first = self._settings[0][1] if self._settings else ()
            self._settings.append((number, effective_settings.held_once(settings, first)))

    def _verdict(
        self, planned: int, furthest: int, places: tuple[Machine, ...]
    ) -> tuple[Verdict, MachinesRunOnce | None]:
        """Return the verdict, of which ``furthest`` runs went to the end, and why machines leave it open."""
        group_verdict, once = verdict.of_runs(len(self._results), planned, self._results.distinct), None
        if places and group_verdict is not Verdict.INCONCLUSIVE:
            group_verdict, once = conditions.verdict(places, self._results.numbers)
        doubtful = (
            self._without_weights() or self._unseen or self._crowding.reason or self._open_outputs or self._unsettled
        )
        if group_verdict is Verdict.DETERMINISTIC and (doubtful or furthest < self._plan.runs):
            return Verdict.INCONCLUSIVE, once
        return group_verdict, once

    @property
    def _processes(self) -> list[effective_settings.EffectiveSettings]:
        return [process for _, processes in self._settings for process in processes]

    def _sources(self, divergence: Divergence | None, stages: Sequence[Stage]) -> tuple[Source, ...]:
        """Return the lines that may be why runs differ: those observed, those that the code alone shows, then names.

        What differs before an optimizer is given a hyperparameter does not come from it: another line is why both do.
        """
        observed = seeds.sources(self._seeds)
        late = divergence is not None and divergence.stage in (
            Stage.BACKWARD,
            Stage.REDUCE,
            Stage.HYPERPARAMETERS,
            Stage.UPDATE,
        )
        # If the runs match in what goes into the model, only the order of its weights may be what the code shows; a fit
        # is also given numbers, such as a random_state.
        all_goes_in = {Stage.BATCH, Stage.FORWARD} <= {*stages}
        read = self._read_in_code(of_objects=late and all_goes_in) if self._processes else ()
        lines = {(source.file, source.line) for source in observed}
        found = (*observed, *(source for source in read if (source.file, source.line) not in lines))
        earlier = (Stage.INIT, Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.BACKWARD)
        follows = SourceKind.HYPERPARAMETER if divergence is not None and divergence.stage in earlier else None
        return tuple(sorted(found, key=lambda source: (source.names_something, source.kind is follows)))

    def _read_in_code(self, *, of_objects: bool) -> Sequence[Source]:
        """Return the lines that the code alone shows: all, or only those that iterate over sets of objects."""
        pinned = randomness.Pinned(
            hash_seed=of_objects or self._hash_seed_is_fixed,
            addresses=self._plan.spec(1).no_aslr and not self._plan.varying.launcher("addresses"),
            fixed=tuple(flag.matches for flag in self._plan.recipe.flags),
        )
        files = sorted({file for process in self._processes for file in process.files})
        found = randomness.read(self._folder, files, pinned)
        return [one for one in found if not of_objects or one.kind is SourceKind.OBJECT_SET_ORDER]

    @property
    def _hash_seed_is_fixed(self) -> bool:
        return all(one.hash_seed_fixed for one in self._processes) and not self._moves("PYTHONHASHSEED")

    def _moves(self, setting: str) -> bool:
        return setting in self._plan.varying.varied_settings

    def _varied(self) -> tuple[Varied, ...]:
        without = self._state.run if self._state is not None else 0
        runs = [0 if run.id == without else run.id - 1 for run in self._runs]  # it was like the first, see Auditor
        return tuple(
            Varied(id=one.id, values=tuple(one.describe(number) for number in runs))
            for one in self._plan.varying.varying
        )

    def _seeds_from_counted_clock(self) -> list[Warning]:
        """Return a warning if runs took seeds from the clock, all the same because it counted its readings."""
        state = self._flags.in_process(COUNTED_CLOCK)
        if state is None or state.state is not FlagOutcome.APPLIED:
            return []
        found = seeds.of_clock(self._seeds)
        return [SeedsFromCountedClock(sources=found)] if found else []

    def _failed_variations(self) -> list[Warning]:
        """Return a warning for each variation that failed in the process."""
        requested = [one.id for one in (*self._plan.varying.varying, *self._plan.varying.pinned)]
        states = {one: self._flags.in_process(order_id(one)) for one in requested}
        return [
            VariationFailed(variation=one, detail=state.reason.detail)
            for one, state in states.items()
            if state is not None and isinstance(state.reason, RefusedInProcess)
        ]

    @property
    def _unsettled(self) -> StateUnsettled | None:
        state = self._state
        return None if state is None or state.settled else StateUnsettled(state=state)

    @property
    def _unseen(self) -> TrainingsUnseen | None:
        unseen_by_run = ((run.id, run.unseen) for run in self._runs if run.finished and run.unseen)
        return next((TrainingsUnseen(run=number, unseen=unseen) for number, unseen in unseen_by_run), None)

    @property
    def _open_outputs(self) -> OutputsOpen | None:
        """What left the runs and differs, so that nobody can say whether their results do."""
        open_differences = [one for one in self._results.output_differences if one.open]
        return OutputsOpen(first=open_differences[0], more=len(open_differences) - 1) if open_differences else None

    def _without_weights(self) -> bool:
        """Whether no weights of some finished run were recorded: matching losses alone prove nothing."""
        return any(run.finished and not run.has_weights for run in self._runs)

    def _reason(self, finished: int, planned: int) -> Reason:
        bad = next((run for run in self._runs if not run.finished), None)
        if self._unsettled is not None and (bad is None or (self._state is not None and bad.id == self._state.run)):
            return self._unsettled
        if bad is not None:
            return RunUnusable(run=bad.id, errors=bad.errors)
        if planned < 2:
            return SingleRun()
        if self._unseen is not None:
            return self._unseen
        if self._results.record is None or not self._results.record.parts:
            return OnlyProbes()
        if self._without_weights():
            return OnlyLosses()
        crowded = self._crowding.reason if finished == planned else None
        if finished == planned and self._open_outputs is not None:
            return self._open_outputs
        return crowded or RunsMissing(finished=finished, planned=planned)
