"""Run one bisection over flags: run without flags, search, prove, measure what the answer costs."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from detaudit.auditor import advice, earlier_audits, store
from detaudit.auditor.bisect import flag_answer, priority
from detaudit.auditor.bisect.flag_rules import Rules
from detaudit.auditor.bisect.horizon import Horizon
from detaudit.auditor.bisect.limited_trials import LimitedTrials
from detaudit.auditor.bisect.minimal_set import MOST_ROUNDS, Answer, Search
from detaudit.auditor.bisect.trial_results import Flags, Questions, TrialResult, WholeRuns
from detaudit.auditor.evidence import environment
from detaudit.auditor.evidence.event_logs import versions
from detaudit.auditor.judge.confidence import ERROR_RATE
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import MakeRunner, Runner
from detaudit.auditor.source import machine_reads
from detaudit.launch import Launcher
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.launch.until import Until
from detaudit.model import (
    SCHEMA_VERSION,
    Bisection,
    BisectOutcome,
    Group,
    Inapplicable,
    NeededFlag,
    NextStep,
    Purpose,
    Stage,
    Verdict,
    Warning,
)
from detaudit.model.applicability import NotImported
from detaudit.model.reasons import OutputsOpen
from detaudit.model.times import now
from detaudit.model.warnings import OutputsUndecided
from detaudit.recipe.applies import applicable
from detaudit.recipe.flags import Catalogue, Flag
from detaudit.recipe.recipes import Recipe
from detaudit.recipe.variations import ALL

VERDICTS = {
    BisectOutcome.FIXED: Verdict.DETERMINISTIC,
    BisectOutcome.ALREADY_DETERMINISTIC: Verdict.DETERMINISTIC,
    BisectOutcome.NOT_FIXED: Verdict.NONDETERMINISTIC,
    BisectOutcome.INCONCLUSIVE: Verdict.INCONCLUSIVE,
}


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
class _Known:
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
        self._runner = make_runner(settings, launcher, observer or Observer())
        self._runner.starts_fresh = True
        self._observer = observer or Observer()
        self._trials = LimitedTrials(settings, self._runner, self._plan, observer or Observer(), self._save)
        self._rules = rules_of(question.catalogue)
        self._questions = self._asked_of_runs()
        self._search = Search(self._questions, self._rank, self._rules, confirm=question.confirm, error=question.error)
        self._known: _Known | None = None
        self._answer: Answer | None = None
        self._needed: tuple[NeededFlag, ...] = ()
        self._file: Path | None = None
        self._said_whole = False
        self._differed_in: Path | None = None

    def run(self) -> Bisection:
        """Find a minimal set of flags."""
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
            self._differed_in = earlier_audits.nondeterministic(self._question.settings, self._trials.code)
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

    def _announce(self, runs: int, through: int, whole: int) -> None:
        self._observer.proof_started(runs, through, whole, self._trials.takes_s(runs, through, whole))

    def _plan(self, flags: Flags, name: str) -> GroupPlan:
        question = self._question
        recipe = Recipe(name=name, seed=question.seed, flags=question.catalogue.select(flags))
        settings = question.settings
        refused = self._runner.refused(recipe.flags)
        # Each run records at its second step what is otherwise recorded at the end: no run is ended before.
        settings = settings if settings.until is not None else dataclasses.replace(settings, until=Until(step=2))
        return plan_group(settings, recipe, self._runner.space, refused)

    def _rank(self, found: TrialResult) -> tuple[list[str], int]:
        if self._known is None:
            self._known = self._learn()
        group = self._trials.named(found.name).group.result()
        if group.first_difference is None:
            return [], 1
        if group.first_difference.output is not None and not self._said_whole:
            self._said_whole = True
            self._observer.only_outputs_differ(group.first_difference.output, self._trials.takes_s(0, 0, 1))
        clues = priority.Clues(group.first_difference.stage, group.sources, group.differing_generators)
        ordered, together = priority.order(self._known.flags, clues)
        return [flag.id for flag in ordered], together

    @property
    def _devices(self) -> tuple[str, ...]:
        """Where the weights are, as far as that is known."""
        base = self._trials.base
        if base is None:
            return ()
        # A run that was ended early did not say where its weights are.
        has_gpu = environment.has_gpu() if base.place is None else base.place.described.get("may_have_gpu", True)
        return base.run.devices or (() if base.run.through is None or has_gpu else ("cpu",))

    def _learn(self) -> _Known:
        base = self._trials.base
        if base is None:
            return _Known(self._question.candidates)
        flags, reasons = applicable(self._question.candidates, versions(base.processes), self._devices)
        refused = self._runner.refused(flags)
        reasons |= {flag: state.reason or NotImported() for flag, state in refused.items()}
        return _Known(tuple(flag for flag in flags if flag.id not in refused), reasons)

    def _explained(self, answer: Answer) -> bool:
        """Keep the answer, then try alternatives and measure costs if that was requested.

        Return whether the answer still holds then: two of the runs that were timed may differ with all needed flags.
        """
        trials, rules, catalogue = self._trials, self._rules, self._question.catalogue
        self._needed = flag_answer.needed(answer, trials, rules, catalogue, self._devices, self._question.settings.cwd)
        self._file = flag_answer.write_recipe(self._question.settings.out, answer, rules, self._question.seed)
        applying = {flag.id for flag in self._known.flags} if self._known else set()
        tried_with = self._try if self._question.alternatives else None
        found = []
        for one in self._needed:
            others = [other for other in rules.alternatives.get(one.flag, ()) if other in applying]
            alternatives = flag_answer.alternatives(one.flag, answer, others, rules, catalogue, tried_with)
            found.append(replace(one, alternatives=alternatives))
        self._needed = flag_answer.with_costs(answer, found, trials, rules)
        if self._question.costs:
            self._needed = flag_answer.measure(answer, self._needed, trials, rules)
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
        question, answer, known = self._question, self._answer, self._known or _Known()
        losses = question.settings.loss_pattern
        groups, file = self._trials.groups, advice.shown(self._file) if self._file else None
        outcome = BisectOutcome.INCONCLUSIVE if self._differed_in is not None else flag_answer.outcome(answer)
        undecided = self._undecided(answer)
        needed = {one.flag for one in self._needed} | {other for one in self._needed for other in one.requires}
        unanswered = outcome is BisectOutcome.INCONCLUSIVE and self._differed_in is None
        best = self._search.best if unanswered else None
        return Bisection(
            schema_version=SCHEMA_VERSION,
            command=question.settings.command,
            environment=msgspec.to_builtins(self._trials.environment),
            verdict=Verdict.INCONCLUSIVE if undecided else VERDICTS[outcome],
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
            not_needed=tuple(sorted(flag_answer.tried(groups) - needed)) if outcome is BisectOutcome.FIXED else (),
            not_applicable=known.reasons,
            failing_flags=flag_answer.failing(answer, groups),
            evidence=flag_answer.evidence(answer, self._trials, self._rules),
            total_runs=self._trials.total_runs,
            recipe_file=file,
            best_so_far=tuple(sorted(best)) if best is not None else None,
            code=self._trials.code,
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
            return (*self._vary_next(), *resume)
        command = advice.command(settings, "--recipe", file)
        return (NextStep(command=command, purpose=Purpose.AUDIT_WITH_RECIPE), *resume)

    def _vary_next(self) -> tuple[NextStep, ...]:
        """Return the command that varies what the script reads of its machine, if no flag is needed here."""
        settings = self._question.settings
        if flag_answer.outcome(self._answer) is not BisectOutcome.ALREADY_DETERMINISTIC:
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
