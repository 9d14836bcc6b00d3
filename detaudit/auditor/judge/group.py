"""One group: the runs of one recipe, compared with each other as they finish."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.auditor.evidence import effective_settings, seeds
from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.judge import comparer, localize, probes, verdict
from detaudit.auditor.source import suspect_code
from detaudit.launch.plan import GroupPlan
from detaudit.model import (
    Divergence,
    FlagState,
    Group,
    Recipe,
    Replicas,
    Run,
    RunRecord,
    Source,
    Stage,
    Status,
    Varied,
    Verdict,
)
from detaudit.recipe.applies import too_old
from detaudit.recipe.flags import Flag
from detaudit.recipe.variations import order_id


class GroupInProgress:
    """Takes in the runs of a recipe one by one; ``result`` is the group as it stands.

    ``folder`` is where the user's files are found after the runs.
    """

    def __init__(self, plan: GroupPlan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._runs: list[Run] = []
        self._replicas: Replicas | None = None
        self._first: RunRecord | None = None
        self._probes = probes.Comparison()
        self._generators: tuple[str, ...] = ()
        self._first_processes: Sequence[Process] = ()
        self._results: list[str] = []
        self._seeds: list[seeds.Seen] = []
        self._settings: list[tuple[int, tuple[effective_settings.InForce, ...]]] = []
        self._flags: dict[str, FlagState] = {}
        self._versions: dict[str, str] = {}
        self._known: Group | None = None

    def add(self, run: Run, processes: Sequence[Process], record: RunRecord) -> None:
        """Take in a run, and compare its ``record`` with the first that finished; one that failed is never compared."""
        stopped_short = run.status is Status.STOPPED and bool(record.parts)
        if run.status is Status.OK or stopped_short:
            watched = self._probes.add(run.id, processes)
            result = comparer.identity(record) if record.parts else watched
            if self._first is None:
                self._first, self._first_processes = record, processes
            self._results.append(result)
            if result != self._results[0]:
                run = msgspec.structs.replace(run, differs=comparer.first_difference(self._first, record))
                self._generators = self._generators or comparer.differing_generators(self._first_processes, processes)
            replicas = comparer.replicas(run.id, processes)
            if self._replicas is None or (self._replicas.differs is None and replicas and replicas.differs):
                self._replicas = replicas
            cwd = self._plan.spec(run.id).cwd
            self._seeds.append(seeds.seen_in(processes, cwd))
            if not stopped_short:
                self._settings.append((run.id, effective_settings.in_force(processes, cwd)))
        self._runs.append(run)
        self._known = None
        for process in processes:
            self._versions |= process.versions
            for line in process.flags:
                if self._flags.get(line.id, FlagState(id="", state="")).state != wire.FLAG_FAILED:
                    self._flags[line.id] = FlagState(id=line.id, state=line.state, detail=line.detail)

    @property
    def differs(self) -> bool:
        """Whether two runs differ already."""
        return len(set(self._results)) > 1

    def result(self) -> Group:
        """Return the group as it stands, worked out once for each run: it may read the user's files."""
        if self._known is None:
            self._known = self._judged()
        return self._known

    def _judged(self) -> Group:
        finished = len(self._results)
        planned = max(self._plan.runs, len(self._runs))
        distinct = len(set(self._results))
        found = verdict.of_runs(finished, planned, distinct)
        if found is Verdict.DETERMINISTIC and self._without_weights():
            found = Verdict.INCONCLUSIVE
        recipe = self._plan.recipe
        stages = self._first.stages if self._first else ()
        divergence = localize.divergence([run for run in self._runs if run.counts], stages)
        flags, undone = self._flag_states()
        return Group(
            recipe=Recipe(name=recipe.name, seed=recipe.seed, flags=tuple(flag.id for flag in recipe.flags)),
            verdict=found,
            distinct=distinct,
            confidence=verdict.confidence(finished) if distinct == 1 else None,
            runs=tuple(self._runs),
            divergence=divergence,
            stages=stages,
            sources=self._sources(divergence, stages) if distinct > 1 else (),
            generators=self._generators,
            sparse=self._first is not None and self._first.sampled,
            replicas=self._replicas,
            probes=self._probes.names,
            probe=self._probes.first,
            flags=flags,
            settings=effective_settings.described(self._trained[0]) if self._trained else (),
            warnings=(
                *undone,
                *effective_settings.warnings(self._settings, self._plan.varying.moves),
                *self._not_carried_out(),
            ),
            reason=self._reason(finished, planned) if found is Verdict.INCONCLUSIVE else None,
            varied=self._varied(),
            not_varied=dict(self._plan.varying.left_out),
        )

    @property
    def _trained(self) -> list[effective_settings.InForce]:
        return [process for _, processes in self._settings for process in processes]

    def _sources(self, divergence: Divergence | None, stages: Sequence[Stage]) -> tuple[Source, ...]:
        """Return the lines that may be why runs differ: what was seen, then what the code alone shows."""
        seen = seeds.unfixed(self._seeds)
        late = divergence is not None and divergence.stage in (Stage.BACKWARD, Stage.UPDATE)
        if not self._trained or (late and Stage.BATCH in stages):
            return seen  # the runs agree in what goes into the model
        patches = {flag.patch for flag in self._plan.recipe.flags}
        fixed = suspect_code.Fixed(
            hash_seed=all(process.hash_seed_fixed for process in self._trained) and not self._moves("PYTHONHASHSEED"),
            addresses=self._plan.spec(1).no_aslr and not self._plan.varying.launcher("addresses"),
            numpy_entropy="seed-numpy-entropy" in patches,
            torch_entropy="seed-torch-generators" in patches,
            filled=frozenset(call for flag in self._plan.recipe.flags for call in flag.mends if call.endswith("empty")),
        )
        files = sorted({file for process in self._trained for file in process.files})
        lines = {(source.file, source.line) for source in seen}
        read = suspect_code.read(self._folder, files, fixed)
        return (*seen, *(source for source in read if (source.file, source.line) not in lines))

    def _flag_states(self) -> tuple[tuple[FlagState, ...], list[str]]:
        """Return what became of each flag, and what the script undid so that the recipe is in doubt."""
        states, undone = [], []
        for flag in self._plan.recipe.flags:
            state = self._flag_state(flag)
            detail, doubtful = effective_settings.overridden(flag, self._plan.recipe.seed, self._settings)
            if state.state == wire.FLAG_APPLIED and detail:
                state = FlagState(id=flag.id, state="overridden", detail=detail)
                undone += [f"the flag {flag.id} was applied, but {detail}"] if doubtful else []
            states.append(state)
        return tuple(states), undone

    def _flag_state(self, flag: Flag) -> FlagState:
        if flag.id in self._plan.refused:
            return self._plan.refused[flag.id]
        if not flag.runs_inside:
            reason = too_old(flag, self._versions)
            state = wire.FLAG_UNAVAILABLE if reason else wire.FLAG_APPLIED
            return FlagState(id=flag.id, state=state, detail=reason)
        return self._flags.get(flag.id, FlagState(id=flag.id, state="not-reached"))

    def _moves(self, setting: str) -> bool:
        return setting in self._plan.varying.moves

    def _varied(self) -> tuple[Varied, ...]:
        runs = [run.id - 1 for run in self._runs]
        return tuple(
            Varied(id=one.id, values=tuple(one.words(number) for number in runs)) for one in self._plan.varying.moving
        )

    def _not_carried_out(self) -> list[str]:
        """Return the variations that did not come about in the process, and why."""
        asked = [one.id for one in (*self._plan.varying.moving, *self._plan.varying.still)]
        lines = {one: self._flags.get(order_id(one)) for one in asked}
        return [
            f"the variation {one} could not be carried out: {line.detail}"
            for one, line in lines.items()
            if line is not None and line.state == wire.FLAG_FAILED
        ]

    def _without_weights(self) -> bool:
        """Whether no weights of some finished run were seen: equal losses alone are no evidence."""
        finished = (run for run in self._runs if run.status is Status.OK)
        return any(not any(rank.digest for rank in run.ranks) for run in finished)

    def _reason(self, finished: int, planned: int) -> str:
        bad = next((run for run in self._runs if run.status is not Status.OK), None)
        if bad is not None:
            return f"run {bad.id}: {bad.problem}"
        if planned < 2:
            return "one run has nothing to be compared with; use --runs 2 or more"
        if self._first is None or not self._first.parts:
            return "the probes agree, but no training was seen, and equal probes alone are no evidence"
        if self._without_weights():
            return (
                "the losses agree, but no weights were seen, and equal losses alone are no evidence; "
                "--artifact compares a file that the script saves them to"
            )
        return f"{finished} of {planned} runs finished"
