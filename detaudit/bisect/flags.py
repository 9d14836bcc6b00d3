"""The job behind ``bisect``: the candidates in their order, the search, and the answer."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml
from msgspec.structs import replace

from detaudit import advice, history, store
from detaudit.ahead import Ahead
from detaudit.bisect.costs import PAIRS, Cost
from detaudit.bisect.search import MOST_ROUNDS, Answer, Questions, Rules, Search, WholeRuns
from detaudit.bisect.trials import LimitedTrials, Trials
from detaudit.config.choice import applicable
from detaudit.config.flags import Catalogue, Flag
from detaudit.config.options import Until
from detaudit.config.recipes import Recipe
from detaudit.config.variations import ALL
from detaudit.judge import verdict
from detaudit.judge.policy import NONE, Flags, Horizon, TrialOutcome, TrialResult
from detaudit.judge.verdict import ERROR_RATE
from detaudit.launch import Launcher
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.model import (
    SAYS,
    SCHEMA_VERSION,
    Alternative,
    Bisection,
    BisectOutcome,
    Cause,
    Evidence,
    FailingFlag,
    Group,
    Inapplicable,
    LeftOut,
    NeededFlag,
    NextStep,
    Purpose,
    Source,
    SourceKind,
    SourceMatch,
    Stage,
    Verdict,
    Warning,
)
from detaudit.model.fact import now
from detaudit.model.problems import OutputsOpen
from detaudit.model.sources import NotImported
from detaudit.model.warnings import OutputsUndecided
from detaudit.runner import MakeRunner, Observer, Runner
from detaudit.runs import environment
from detaudit.runs.log import versions
from detaudit.source import machine_reads

# The answer of a bisection over flags, with the trials it rests on.


RECIPE_FILE = "detaudit-recipe.yaml"


def outcome_of(answer: Answer | None) -> BisectOutcome:
    """Return the outcome of a search, None standing for one that was interrupted."""
    if answer is None:
        return BisectOutcome.INCONCLUSIVE
    if answer.needed is None:
        return BisectOutcome.NOT_FIXED if answer.differed else BisectOutcome.INCONCLUSIVE
    return BisectOutcome.FIXED if answer.needed else BisectOutcome.ALREADY_DETERMINISTIC


def evidence(answer: Answer | None, trials: Trials, rules: Rules) -> Evidence | None:
    """Return what the answer rests on, None without one."""
    if answer is None or answer.needed is None:
        return None
    proof = trials.of(rules.closed(answer.needed))
    confirmed = verdict.evidence(answer.matching, answer.through, answer.complete)
    return replace(confirmed, trial=proof.name if proof is not None else None)


MOST_LINES = 5
"""Lines that a flag acts on, which a report names."""


def needed(answer: Answer, trials: Trials, rules: Rules, catalogue: Catalogue) -> tuple[NeededFlag, ...]:
    """Return the needed flags, with the difference seen without each of them, and the lines on which each acts."""
    flags = answer.needed or ()
    needed_flags = []
    for flag in flags:
        row = catalogue.get(flag)
        needed_flags.append(
            NeededFlag(
                flag=flag,
                title=row.title,
                left_out=_left_out(trials, answer.without[flag].name),
                cost=None,
                requires=tuple(sorted(rules.closed([flag]) - {flag})),
                acts_on=_acts_on(row, _without(trials, answer.without[flag])),
            )
        )
    return tuple(needed_flags)


def _without(trials: Trials, result: TrialResult) -> Group | None:
    """Return the trial without a flag whose runs differ; the one without any flags if that failed."""
    name = result.name if result.outcome is TrialOutcome.DIFFERS else ""
    trial = trials.named(name) if name else trials.of(NONE)
    return trial.group.result() if trial is not None else None


def _acts_on(flag: Flag, without: Group | None) -> tuple[Source, ...]:
    """Return the lines on which a flag acts, those that were observed to differ first.

    That a line takes new memory, which most overwrite at once, says something only of a flag against nothing else.
    """
    lines = [source for source in (without.sources if without is not None else ()) if flag.matches.matches(source)]
    if flag.causes[:1] != (Cause.MEMORY,):
        lines = [source for source in lines if source.kind is not SourceKind.UNINITIALIZED]
    return tuple(sorted(lines, key=lambda source: source.suspect)[:MOST_LINES])


def _left_out(trials: Trials, name: str) -> LeftOut | None:
    first_difference = trials.named(name).group.result().first_difference if name else None
    if first_difference is None:
        return None
    site = first_difference.site if first_difference.output is not None else None
    return LeftOut(
        trial=name,
        runs=first_difference.runs,
        rank=first_difference.rank,
        step=first_difference.step,
        stage=first_difference.stage,
        site=site,
    )


def measure(answer: Answer, needed_flags: Iterable[NeededFlag], trials: Trials, rules: Rules) -> tuple[NeededFlag, ...]:
    """Run the training with all needed flags and without each in turn, and return what each costs.

    So it does with the alternatives that were tried. Every other pair of runs begins with the other kind, so that a
    machine which becomes slower, or faster, does so for both.
    """
    flags = answer.needed or ()
    for one in needed_flags:
        bare = rules.without(flags, one.flag)
        if answer.without[one.flag].outcome is TrialOutcome.FAILS:
            continue
        tried = [rules.closed([*bare, other.flag]) for other in one.alternatives if other.matching]
        for fixing in (rules.closed(flags), *tried):
            for pair in range(PAIRS):
                for timed in (bare, fixing) if pair % 2 == 0 else (fixing, bare):
                    trials.time_once(timed)
    return with_costs(answer, needed_flags, trials, rules)


def with_costs(
    answer: Answer, needed_flags: Iterable[NeededFlag], trials: Trials, rules: Rules
) -> tuple[NeededFlag, ...]:
    """Return the needed flags with what each costs, and its alternatives, the cheapest first, as far as that is known.

    Known it is from pairs of runs that were next to each other, whatever they were made for.
    """
    flags, priced = answer.needed or (), []
    for one in needed_flags:
        bare = rules.without(flags, one.flag)
        others = [
            _priced(other, trials.cost(rules.closed([*bare, other.flag]), bare)) if other.matching else other
            for other in one.alternatives
        ]
        others.sort(key=lambda other: (not other.matching, other.cost or 0.0))
        priced.append(replace(_priced(one, trials.cost(rules.closed(flags), bare)), alternatives=tuple(others)))
    return tuple(priced)


_Priced = TypeVar("_Priced", NeededFlag, Alternative)


def _priced(one: _Priced, cost: Cost | None) -> _Priced:
    if cost is None:
        return one
    ends = round(cost.least, 3), round(cost.most, 3)
    return replace(one, cost=round(cost.factor, 3), cost_range=ends, cost_runs=(cost.pairs, cost.pairs))


def find_alternatives(
    flag: str,
    answer: Answer,
    others: Sequence[str],
    rules: Rules,
    catalogue: Catalogue,
    tried_with: Callable[[Flags], TrialResult] | None,
) -> tuple[Alternative, ...]:
    """Return the alternatives to a needed flag, each tried unless nothing is there to try it.

    Those that were tried come first; one that does not fix it is left out.
    """
    rest = rules.without(answer.needed or (), flag)
    alternatives = []
    for other in others:
        if other in answer.failing or rules.exclude(other, rest):
            continue
        title = catalogue.get(other).title
        finding = tried_with(rules.closed([*rest, other])) if tried_with is not None else None
        if finding is None:
            alternatives.append(Alternative(flag=other, title=title))
        elif finding.outcome is TrialOutcome.MATCHES:
            alternatives.append(Alternative(flag=other, title=title, matching=finding.runs, through=finding.through))
    return tuple(sorted(alternatives, key=lambda one: not one.matching))


def failing(answer: Answer | None, groups: Sequence[Group]) -> tuple[FailingFlag, ...]:
    """Return the flags with which the training fails, and why."""
    failing_flags = []
    for flag in answer.failing if answer else ():
        runs = (
            run
            for group in sorted(groups, key=lambda group: len(group.recipe.flags))
            if flag in group.recipe.flags
            for run in group.runs
            if not run.counts
        )
        run = next(runs, None)
        message = run.stderr_tail[-1] if run and run.stderr_tail else ""
        failing_flags.append(FailingFlag(flag=flag, message=message, errors=run.errors if run else ()))
    return tuple(failing_flags)


def write_recipe(folder: Path, answer: Answer, rules: Rules, seed: int) -> Path | None:
    """Write the recipe that fixes it, None if nothing needs a fix or nothing fixes it."""
    if not answer.needed:
        return None
    recipe = {"name": "detaudit-recipe", "seed": seed, "flags": sorted(rules.closed(answer.needed))}
    path = folder / RECIPE_FILE
    head = "# Found by detaudit bisect; use it with --recipe.\n"
    store.write(path, (head + yaml.safe_dump(recipe, sort_keys=False)).encode(), shared=True)
    return path


def tried(groups: Iterable[Group]) -> frozenset[str]:
    """Return all flags that were set in at least one trial."""
    return NONE.union(*(group.recipe.flags for group in groups))


# Decide which flag to try first, from the first difference and the lines behind it.


_EARLY = tuple(map(Cause, ("seed", "hash", "order", "data", "memory", "threads", "kernel")))
_DATA = tuple(map(Cause, ("data", "order", "hash", "kernel", "memory", "threads", "seed")))
_UNNAMED = tuple(map(Cause, ("data", "kernel", "memory", "threads", "seed", "hash", "order")))
"""For batches that differ if no line of the user's code introduces randomness or an order."""

_LATE = tuple(map(Cause, ("kernel", "memory", "threads", "data", "seed", "hash", "order")))
_UNHOOKED = tuple(map(Cause, ("seed", "kernel", "hash", "data", "order", "memory", "threads")))
_STEPS = tuple(map(Cause, ("order", "threads", "seed", "data", "hash", "memory", "kernel")))

LIKELY: dict[Stage, tuple[Cause, ...]] = {
    Stage.INIT: _EARLY,
    Stage.RNG: _EARLY,
    Stage.BATCH: _DATA,
    Stage.FORWARD: _LATE,
    Stage.BACKWARD: _LATE,
    Stage.REDUCE: _LATE,
    Stage.HYPERPARAMETERS: _EARLY,
    Stage.UPDATE: _LATE,
    Stage.STATE: _LATE,
    Stage.OUTPUT: _UNHOOKED,
    Stage.STDOUT: _UNHOOKED,
    Stage.ARTIFACT: _UNHOOKED,
    Stage.SAVED: _UNHOOKED,
    Stage.PRINTED: _UNHOOKED,
    Stage.EXIT: _UNHOOKED,
    Stage.RETURNED: _UNHOOKED,
    Stage.STEPS: _STEPS,
}
"""The causes that a first difference at a stage points to, the likeliest first."""

_LAST_RESORT = 2
"""A flag that costs much comes after those whose cause is one place less likely."""

_OBSERVED: tuple[Cause, ...] = (Cause.SEED, Cause.DATA, Cause.ORDER)
"""Causes whose lines the recorder observes: if it saw none, a flag that only fixes such lines comes later too."""


@dataclass(frozen=True)
class Clues:
    """What a trial that differs shows: the stage, the lines behind it, the generators that began differently."""

    stage: Stage
    sources: Sequence[Source] = ()
    generators: Sequence[str] = ()


def matching(match: SourceMatch, sources: Iterable[Source]) -> bool:
    """Whether any of these lines is one that a flag fixes, or a variation brings out."""
    return any(match.matches(source) for source in sources)


def order(flags: Iterable[Flag], clues: Clues) -> tuple[list[Flag], int]:
    """Return the flags in the order in which to try them, and how many of them at once.

    First the seeds of generators that were observed to differ, which are tried together; then what fixes a line of the
    user's code; then by cause, and last in the order of the catalogue.
    """
    unnamed = clues.stage is Stage.BATCH and not clues.sources
    likely = _UNNAMED if unnamed else LIKELY[clues.stage]

    def seeds(flag: Flag) -> bool:
        return bool(flag.call) and Cause.SEED in flag.causes and (flag.module or flag.framework) in clues.generators

    def priority(flag: Flag) -> tuple[bool, bool, int]:
        named = matching(flag.matches, clues.sources)
        cause = min(likely.index(cause) for cause in flag.causes)
        unseen = unnamed and bool(flag.matches) and flag.causes[0] in _OBSERVED
        far = (_LAST_RESORT + 1 if flag.action == "fallback" else 0) + (_LAST_RESORT + 1 if unseen else 0)
        return not seeds(flag), not named, 2 * cause + far

    ordered = sorted(flags, key=priority)
    return ordered, max(1, sum(map(seeds, ordered)))


# Run one bisection over flags: run without flags, search, prove, measure what the answer costs.


@dataclass(frozen=True)
class Question:
    """The question: which of the ``candidates`` are needed, and how sure the answer must be.

    ``alternatives`` asks for other flags in place of each, ``costs`` how much longer the training takes with each.
    ``full`` is how many runs of the answer go to the end at least, None to choose by how long that takes.
    """

    settings: Settings
    catalogue: Catalogue
    candidates: tuple[Flag, ...]
    seed: int
    confirm: int = 5
    error: float = ERROR_RATE
    alternatives: bool = False
    full: int | None = None
    costs: bool = False


@dataclass
class _Applicable:
    """What the first trial showed: which candidates apply, and why the others do not."""

    flags: tuple[Flag, ...] = ()
    reasons: dict[str, Inapplicable] = field(default_factory=dict)


class Bisector:
    """Runs one bisection. After an interruption, ``result`` has what is known by then.

    ``earlier`` are the trials of one that was interrupted: they are read from their event logs.
    """

    def __init__(
        self,
        question: Question,
        launcher: Launcher,
        observer: Observer | None = None,
        earlier: tuple[Group, ...] = (),
        make_runner: MakeRunner = Runner,
    ) -> None:
        settings = question.settings
        self._earlier = earlier
        self._question = question
        self._observer = observer or Observer()
        self._ahead = Ahead(launcher, settings.jobs)
        self._runner = make_runner(settings, self._ahead.pool, self._observer)
        self._runner.starts_fresh = not settings.jobs.apart
        self._trials = LimitedTrials(settings, self._runner, self._plan, self._observer, self._save, self._ahead)
        self._rules = rules_of(question.catalogue)
        self._questions = self._asked_of_runs()
        self._search = Search(self._questions, self._rank, self._rules, confirm=question.confirm, error=question.error)
        self._known: _Applicable | None = None
        self._answer: Answer | None = None
        self._needed: tuple[NeededFlag, ...] = ()
        self._file: Path | None = None
        self._said_whole = False
        self._differed_in: Path | None = None

    def run(self) -> Bisection:
        """Find a minimal set of flags. Raises DetauditError if runs at once hide races, so that no match counts."""
        settings = self._question.settings
        if self._earlier:
            self._trials.restore(self._earlier)
        else:
            store.prepare(settings.out)
        for _ in range(MOST_ROUNDS):
            self._answer = self._search.run()
            if not self._answer.needed or self._explained(self._answer):
                break
            self._retract()
        if self._answer is not None and self._answer.needed == ():
            trial = self._trials.of(NONE)
            if trial is not None:
                self._differed_in = history.differed(trial.group.result(), self.result(), self._question.settings)
        self._save()
        return self.result()

    def _asked_of_runs(self) -> Questions:
        """Return what answers the search.

        Runs that are ended early leave no files and no printed losses, and weights only if each step records them.
        """
        settings, trials = self._question.settings, self._trials
        only_whole = settings.artifacts or settings.loss_pattern is not None or Stage.UPDATE not in settings.stages
        if settings.until is not None or only_whole:
            return WholeRuns(trials.ask)
        return Horizon(trials, self._question.full, self._announce)

    def _announce(self, runs: int, through: int, complete: int) -> None:
        self._observer.proof_started(runs, through, complete, self._trials.takes_s(runs, through, complete))

    def _plan(self, flags: Flags, name: str) -> GroupPlan:
        question = self._question
        recipe = Recipe(name=name, seed=question.seed, flags=question.catalogue.select(flags))
        settings = question.settings
        refused = self._runner.refused(recipe.flags)
        # Each run records at its second step what is otherwise recorded at the end: no run is ended before.
        settings = settings if settings.until is not None else dataclasses.replace(settings, until=Until(step=2))
        return plan_group(settings, recipe, self._runner.space, refused)

    def _rank(self, result: TrialResult) -> tuple[list[str], int]:
        if self._known is None:
            self._known = self._learn()
        group = self._trials.named(result.name).group.result()
        if group.first_difference is None:
            return [], 1
        if group.first_difference.output is not None and not self._said_whole:
            self._said_whole = True
            self._observer.only_outputs_differ(group.first_difference.output, self._trials.takes_s(0, 0, 1))
        clues = Clues(group.first_difference.stage, group.sources, group.differing_generators)
        ordered, together = order(self._known.flags, clues)
        return [flag.id for flag in ordered], together

    @property
    def _devices(self) -> tuple[str, ...]:
        """Where the weights are, as far as that is known."""
        base = self._trials.base
        if base is None:
            return ()
        # A run that was ended early did not say where its weights are.
        has_gpu = environment.has_gpu() if base.machine is None else base.machine.described.get("may_have_gpu", True)
        return base.run.devices or (() if base.run.through is None or has_gpu else ("cpu",))

    def _learn(self) -> _Applicable:
        base = self._trials.base
        if base is None:
            return _Applicable(self._question.candidates)
        flags, reasons = applicable(self._question.candidates, versions(base.processes), self._devices)
        refused = self._runner.refused(flags)
        reasons |= {flag: state.reason or NotImported() for flag, state in refused.items()}
        return _Applicable(tuple(flag for flag in flags if flag.id not in refused), reasons)

    def _explained(self, answer: Answer) -> bool:
        """Keep the answer, then try alternatives and measure costs if that was requested.

        Return whether the answer still holds then: two of the runs that were timed may differ with all needed flags.
        """
        trials, rules, catalogue = self._trials, self._rules, self._question.catalogue
        self._needed = needed(answer, trials, rules, catalogue)
        self._file = write_recipe(self._question.settings.out, answer, rules, self._question.seed)
        applying = {flag.id for flag in self._known.flags} if self._known else set()
        tried_with = self._try if self._question.alternatives else None
        with_alternatives = []
        for one in self._needed:
            others = [other for other in rules.alternatives.get(one.flag, ()) if other in applying]
            alternatives = find_alternatives(one.flag, answer, others, rules, catalogue, tried_with)
            with_alternatives.append(replace(one, alternatives=alternatives))
        self._needed = with_costs(answer, with_alternatives, trials, rules)
        if self._question.costs:
            self._needed = measure(answer, self._needed, trials, rules)
        proof = trials.of(rules.closed(answer.needed or ()))
        return proof is None or not proof.group.differs

    def _retract(self) -> None:
        self._answer, self._needed = Answer(None, failing=self._answer.failing if self._answer else ()), ()
        if isinstance(self._questions, WholeRuns):
            self._questions.forget()
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        self._file = None

    def _try(self, flags: Flags) -> TrialResult:
        return self._questions.probe(flags, self._question.confirm)

    def _save(self) -> None:
        store.save(self._question.settings.out, self.result())

    def result(self, interrupted: bool = False) -> Bisection:
        """Return the bisection so far."""
        question, answer, known = self._question, self._answer, self._known or _Applicable()
        losses = question.settings.loss_pattern
        groups, file = self._trials.groups, advice.shown(self._file) if self._file else None
        outcome = BisectOutcome.INCONCLUSIVE if self._differed_in is not None else outcome_of(answer)
        undecided = self._undecided(answer)
        needed = {one.flag for one in self._needed} | {other for one in self._needed for other in one.requires}
        unanswered = outcome is BisectOutcome.INCONCLUSIVE and self._differed_in is None
        best = self._search.best if unanswered else None
        return Bisection(
            schema_version=SCHEMA_VERSION,
            command=question.settings.command,
            environment=msgspec.to_builtins(self._trials.environment),
            verdict=Verdict.INCONCLUSIVE if undecided else SAYS[outcome],
            groups=groups,
            warnings=(
                *advice.warnings(
                    groups, self._runner.leftovers, self._runner.warnings, isolated=question.settings.isolate
                ),
                *undecided,
            ),
            next_steps=self._next(file, interrupted),
            interrupted=interrupted,
            target=question.settings.target.words,
            started=question.settings.started,
            ended=now(),
            loss_pattern=losses.pattern if losses is not None else None,
            outcome=outcome,
            needed=self._needed if answer is not None and answer.needed is not None and not self._differed_in else None,
            not_needed=tuple(sorted(tried(groups) - needed)) if outcome is BisectOutcome.FIXED else (),
            not_applicable=known.reasons,
            failing_flags=failing(answer, groups),
            evidence=evidence(answer, self._trials, self._rules),
            total_runs=self._trials.total_runs,
            recipe_file=file,
            best_so_far=tuple(sorted(best)) if best is not None else None,
            code=self._trials.inputs.code,
            data=self._trials.inputs.data,
            installed=self._trials.inputs.installed,
            options=history.options(self._question.settings),
            differed_in=advice.shown(self._differed_in) if self._differed_in is not None else None,
        )

    def _undecided(self, answer: Answer | None) -> tuple[Warning, ...]:
        """Return that with the flags of the answer the trainings match, and nobody can say whether the results do."""
        if answer is None or answer.needed is None:
            return ()
        trial = self._trials.of(self._rules.closed(answer.needed))
        group = trial.group.result() if trial is not None else None
        if group is None or not isinstance(group.reason, OutputsOpen):
            return ()
        return (OutputsUndecided(recipe=group.recipe.name, reason=group.reason),)

    def _next(self, file: str | None, interrupted: bool) -> tuple[NextStep, ...]:
        settings = self._question.settings
        resume = advice.resume_step(settings) if interrupted else ()
        if file is None:
            return (*self._vary_next(), *resume, *advice.comparing_step(settings, self._trials.groups, "bisect"))
        command = advice.command(settings, "--recipe", file)
        audit = NextStep(command=command, purpose=Purpose.AUDIT_WITH_RECIPE)
        return (audit, *advice.fix_step(settings), *resume)

    def _vary_next(self) -> tuple[NextStep, ...]:
        """Return the command that varies what the script reads of its machine, if no flag is needed here."""
        settings = self._question.settings
        if outcome_of(self._answer) is not BisectOutcome.ALREADY_DETERMINISTIC:
            return ()
        if not advice.may_vary(settings, machine_reads.reads(settings.cwd, self._trials.files)):
            return ()
        return (NextStep(command=advice.command(settings, "--vary", ALL), purpose=Purpose.VARY),)


def rules_of(catalogue: Catalogue) -> Rules:
    """Return what the catalogue says about how flags go together."""
    return Rules(
        requires={flag.id: flag.requires for flag in catalogue},
        conflicts={flag.id: flag.conflicts for flag in catalogue},
        alternatives={flag.id: flag.alternatives for flag in catalogue},
    )
