"""Compare the runs of one recipe with each other as they finish."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from detaudit import redact
from detaudit.auditor.evidence import effective_settings, seeds
from detaudit.auditor.evidence.environment import has_gpu
from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.judge import comparer, localize, machines, probes, verdict
from detaudit.auditor.judge.crowding import Crowding, slots_differ
from detaudit.auditor.judge.flag_states import FlagStates
from detaudit.auditor.judge.results import Results
from detaudit.auditor.source import excerpts, suspect_code
from detaudit.launch.plan import GroupPlan
from detaudit.model import (
    AppliedRecipe,
    Divergence,
    Group,
    Machine,
    OutputDifference,
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
from detaudit.model.applicability import RefusedInProcess
from detaudit.model.files import FreshStart, LeftState
from detaudit.model.reasons import (
    MachinesRunOnce,
    OnlyLosses,
    OnlyProbes,
    OutputsOpen,
    RunsMissing,
    RunUnusable,
    SingleRun,
    StateUnsettled,
    TrainingsUnseen,
)
from detaudit.model.warnings import StateChecked, VariationFailed
from detaudit.recipe.variations import order_id


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
        self._machines = machines.Machines()
        self._state: LeftState | None = None
        self._known: Group | None = None

    def add(
        self,
        run: Run,
        processes: Sequence[Process],
        record: RunRecord,
        threads: int = 0,
        place: machines.Place | None = None,
    ) -> None:
        """Take in a run, and compare its ``record`` with the first of those that got furthest.

        One that failed, or recorded no training, is compared by its exit status and by what left it. ``threads`` is how
        many it used, if others went on beside it. ``place`` is where it was done, None for this machine.
        """
        self._machines.add(run.id, place)
        self._flags.refuse(place.refused if place is not None else {})
        stopped_short = run.status is Status.STOPPED and bool(record.parts)
        if run.finished or stopped_short:
            run = self._results.add(run, processes, record, self._probes.add(run.id, processes))
            if self._replicas is None or self._replicas.first_difference is None:
                replicas = comparer.replicas(run.id, processes)
                differ = replicas is not None and replicas.first_difference is not None
                self._replicas = replicas if self._replicas is None or differ else self._replicas
            cwd = self._plan.spec(run.id).cwd
            self._seeds.append(seeds.seen_in(processes, cwd))
            if not stopped_short:
                shared = partial(self._plan.shared, run.id)
                settings = effective_settings.in_force(processes, cwd, shared)
                first = self._settings[0][1] if self._settings else ()
                self._settings.append((run.id, effective_settings.held_once(settings, first)))
        elif run.status in (Status.FAILED, Status.NOT_RECORDED):
            run = self._results.add_unproven(run, record.outputs)
        differs = run.first_difference
        if differs is not None and differs.output is not None:
            runs = (run.reference or next(iter(self._results.by_run)), run.id)
            output = replace(self._concealed(differs.output), runs=runs)
            run = replace(run, first_difference=replace(differs, output=output))
        self._crowding.add(run, threads, processes, self._plan.spec(run.id).env)
        self._runs.append(run)
        self._known = None
        self._flags.add(processes)

    def settle(self, state: LeftState) -> None:
        """Note what runs read that earlier ones had left, and what the last run, which started without it, showed."""
        self._state, self._known = state, None

    def _concealed(self, found: OutputDifference) -> OutputDifference:
        """Return a difference without the secrets that the runs are given, whoever printed them."""
        spec = self._plan.spec(1)
        at, (a, b) = found.at, found.values
        for secret in redact.secrets(spec.argv, spec.env):
            at, a, b = (text.replace(secret, redact.HIDDEN) for text in (at, a, b))
        return replace(found, at=at, values=(a, b))

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

    def result(self) -> Group:
        """Return the group so far, computed once for each run: it may read the user's files."""
        if self._known is None:
            self._known = self._judged()
        return self._known

    def _judged(self) -> Group:
        finished = len(self._results)
        planned = max(self._plan.runs, len(self._runs))
        distinct, numbers = self._results.distinct, self._results.numbers
        places = self._machines.found(numbers)
        early = {run.id for run in shorter(self._runs)}
        furthest = finished - len(early)
        found, once = self._verdict(planned, furthest, places)
        stages = self._results.record.stages if self._results.record else ()
        runs = tuple(replace(run, result=numbers.get(run.id)) for run in self._runs)
        divergence = localize.divergence([run for run in runs if run.counts], stages)
        flags, undone = self._flags.states(self._settings)
        moving = self._plan.varying.varied_settings | self._plan.jobs.varied_settings
        sources = self._sources(divergence, stages) if distinct > 1 else ()
        to_the_end = any(run.status is Status.OK for run in self._runs)
        return Group(
            recipe=self.recipe,
            verdict=found,
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
            ),
            reason=(once or self._reason(furthest, planned)) if found is Verdict.INCONCLUSIVE else None,
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

    def _verdict(
        self, planned: int, furthest: int, places: tuple[Machine, ...]
    ) -> tuple[Verdict, MachinesRunOnce | None]:
        """Return the verdict, of which ``furthest`` runs went to the end, and why machines leave it open."""
        found, once = verdict.of_runs(len(self._results), planned, self._results.distinct), None
        if places and found is not Verdict.INCONCLUSIVE:
            found, once = machines.verdict(places, self._results.numbers)
        doubtful = (
            self._without_weights() or self._unseen or self._crowding.reason or self._open_outputs or self._unsettled
        )
        if found is Verdict.DETERMINISTIC and (doubtful or furthest < self._plan.runs):
            return Verdict.INCONCLUSIVE, once
        return found, once

    @property
    def _processes(self) -> list[effective_settings.EffectiveSettings]:
        return [process for _, processes in self._settings for process in processes]

    def _sources(self, divergence: Divergence | None, stages: Sequence[Stage]) -> tuple[Source, ...]:
        """Return the lines that may be why runs differ: what was observed, then what the code alone shows."""
        observed = seeds.sources(self._seeds)
        late = divergence is not None and divergence.stage in (
            Stage.BACKWARD,
            Stage.REDUCE,
            Stage.HYPERPARAMETERS,
            Stage.UPDATE,
        )
        if not self._processes or (late and Stage.BATCH in stages):
            return observed  # the runs match in what goes into the model
        pinned = suspect_code.Pinned(
            hash_seed=all(one.hash_seed_fixed for one in self._processes) and not self._moves("PYTHONHASHSEED"),
            addresses=self._plan.spec(1).no_aslr and not self._plan.varying.launcher("addresses"),
            fixed=tuple(flag.matches for flag in self._plan.recipe.flags),
        )
        files = sorted({file for process in self._processes for file in process.files})
        lines = {(source.file, source.line) for source in observed}
        read = suspect_code.read(self._folder, files, pinned)
        return (*observed, *(source for source in read if (source.file, source.line) not in lines))

    def _moves(self, setting: str) -> bool:
        return setting in self._plan.varying.varied_settings

    def _varied(self) -> tuple[Varied, ...]:
        without = self._state.run if self._state is not None else 0
        runs = [0 if run.id == without else run.id - 1 for run in self._runs]  # it was like the first, see Auditor
        return tuple(
            Varied(id=one.id, values=tuple(one.describe(number) for number in runs))
            for one in self._plan.varying.varying
        )

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
        settled = state is None or state.outcome in (FreshStart.SAME, FreshStart.DIFFERENT)
        return None if state is None or settled else StateUnsettled(state=state)

    @property
    def _unseen(self) -> TrainingsUnseen | None:
        found = ((run.id, run.unseen) for run in self._runs if run.finished and run.unseen)
        return next((TrainingsUnseen(run=number, unseen=unseen) for number, unseen in found), None)

    @property
    def _open_outputs(self) -> OutputsOpen | None:
        """What left the runs and differs, so that nobody can say whether their results do."""
        found = [one for one in self._results.output_differences if one.open]
        return OutputsOpen(first=found[0], more=len(found) - 1) if found else None

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
