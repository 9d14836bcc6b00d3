"""One group: the runs of one recipe, compared with each other as they finish."""

from collections.abc import Sequence

import msgspec

from detaudit import wire
from detaudit.auditor import compare, localise, randomness, verdict
from detaudit.auditor.traces import Process, Stream
from detaudit.launch.plan import GroupPlan
from detaudit.model import FlagState, Group, Recipe, Replicas, Run, Status, Verdict


class GroupInProgress:
    """Takes in the runs of a recipe one by one; ``result`` is the group as it stands."""

    def __init__(self, plan: GroupPlan) -> None:
        self._plan = plan
        self._runs: list[Run] = []
        self._replicas: Replicas | None = None
        self._first: list[Stream] | None = None
        self._results: list[str] = []
        self._seeds: list[randomness.Seen] = []
        self._flags: dict[str, FlagState] = {}

    def add(self, run: Run, processes: Sequence[Process]) -> None:
        """Take in a run, compared with the first that finished. Runs that failed are never compared."""
        if run.status is Status.OK:
            streams = compare.streams_of(processes)
            result = compare.result_key(streams)
            self._first = streams if self._first is None else self._first
            self._results.append(result)
            if result != self._results[0]:
                run = msgspec.structs.replace(run, differs=compare.first_difference(self._first, streams))
            replicas = compare.replicas(run.id, processes)
            if self._replicas is None or (self._replicas.differs is None and replicas and replicas.differs):
                self._replicas = replicas
            self._seeds.append(randomness.seen_in(processes, self._plan.specs[0].cwd))
        self._runs.append(run)
        for process in processes:
            for line in process.flags:
                if self._flags.get(line.id, FlagState(id="", state="")).state != wire.FLAG_FAILED:
                    self._flags[line.id] = FlagState(id=line.id, state=line.state, detail=line.detail)

    @property
    def differs(self) -> bool:
        """Whether two runs differ already."""
        return any(run.differs for run in self._runs)

    def result(self) -> Group:
        """Return the group as it stands."""
        planned, finished = len(self._plan.specs), len(self._results)
        distinct = len(set(self._results))
        found = verdict.of_runs(finished, planned, distinct)
        if found is Verdict.DETERMINISTIC and self._without_weights():
            found = Verdict.INCONCLUSIVE
        recipe = self._plan.recipe
        stages = compare.recorded_stages(self._first or ())
        return Group(
            recipe=Recipe(name=recipe.name, seed=recipe.seed, flags=tuple(flag.id for flag in recipe.flags)),
            verdict=found,
            distinct=distinct,
            confidence=verdict.confidence(finished) if distinct == 1 else None,
            runs=tuple(self._runs),
            divergence=localise.divergence([run for run in self._runs if run.status is Status.OK], stages),
            stages=stages,
            sources=randomness.unfixed(self._seeds) if distinct > 1 else (),
            sparse=compare.sparse(self._first or ()),
            replicas=self._replicas,
            flags=tuple(self._flag_states()),
            reason=self._reason(finished, planned) if found is Verdict.INCONCLUSIVE else None,
        )

    def _flag_states(self) -> list[FlagState]:
        states = []
        for flag in self._plan.recipe.flags:
            if flag.id in self._plan.unavailable:
                states.append(FlagState(id=flag.id, state="unavailable", detail=self._plan.unavailable[flag.id]))
            elif not flag.runs_inside:
                states.append(FlagState(id=flag.id, state=wire.FLAG_APPLIED))
            else:
                states.append(self._flags.get(flag.id, FlagState(id=flag.id, state="not-reached")))
        return states

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
        if self._without_weights():
            return "the losses agree, but no weights were seen, and equal losses alone are no evidence"
        return f"{finished} of {planned} runs finished"
