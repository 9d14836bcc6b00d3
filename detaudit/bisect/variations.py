"""The job behind ``bisect --over variations``: what the training is sensitive to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from detaudit import advice, store
from detaudit.ahead import Ahead
from detaudit.bisect.flags import LIKELY, matching
from detaudit.bisect.search import Effect, Sensitivity, SensitivitySearch
from detaudit.bisect.trials import ControlledTrials
from detaudit.config.flags import Catalogue
from detaudit.config.recipes import Recipe
from detaudit.config.variations import Variation
from detaudit.judge import verdict
from detaudit.judge.policy import Flags, TrialOutcome, TrialResult
from detaudit.judge.verdict import ERROR_RATE
from detaudit.launch import Launcher, refusals
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.model import (
    SAYS,
    SCHEMA_VERSION,
    EffectExample,
    Group,
    NextStep,
    Purpose,
    Status,
    VariationBisection,
    VariationEffect,
    Varied,
    VaryOutcome,
)
from detaudit.model.fact import now
from detaudit.runner import Observer, Runner

# The answer of a bisection over variations, with the trials it rests on.


def effects_of(
    effects: Iterable[Effect], table: Iterable[Variation], trials: ControlledTrials, catalogue: Catalogue
) -> tuple[VariationEffect, ...]:
    """Return the variations that change the training, each with a run that shows it and what pins it."""
    rows = {row.id: row for row in table}
    return tuple(_effect(effect, rows[effect.variation], trials, catalogue) for effect in effects)


def _effect(effect: Effect, row: Variation, trials: ControlledTrials, catalogue: Catalogue) -> VariationEffect:
    trial = trials.of(effect.varied)
    return VariationEffect(
        variation=row.id,
        title=row.title,
        cause=row.cause,
        expected=row.expected,
        example=_example(effect, trials),
        together_with=effect.together_with,
        suspects=trial.group.result().sources if trial else (),
        fix=row.fix,
        flags=row.flags,
    )


def _example(effect: Effect, trials: ControlledTrials) -> EffectExample:
    group = trials.named(effect.result.name).group.result()
    first_difference = group.first_difference
    if first_difference is not None:
        run = next(
            (run for run in group.runs if run.id == first_difference.runs[1] and run.status is Status.FAILED), None
        )
        return EffectExample(
            trial=group.recipe.name,
            runs=first_difference.runs,
            values=_values(group.varied, first_difference.runs[1]),
            rank=first_difference.rank,
            step=first_difference.step,
            stage=first_difference.stage,
            explanation=first_difference.explanation,
            errors=run.errors if run is not None else (),
            last_line=run.stderr_tail[-1] if run is not None and run.stderr_tail else "",
        )
    run = trials.failed(effect.varied)
    number = run.id if run is not None else 0
    return EffectExample(
        trial=group.recipe.name,
        runs=(1, number),
        values=_values(group.varied, number),
        errors=run.errors if run is not None else (),
        last_line=run.stderr_tail[-1] if run is not None and run.stderr_tail else "",
    )


def _values(varied: Sequence[Varied], run: int) -> tuple[str, ...]:
    return tuple(one.values[run - 1] for one in varied if 0 < run <= len(one.values))


def next_steps(
    settings: Settings, recipe: Recipe, outcome: VaryOutcome, effects: Sequence[VariationEffect]
) -> tuple[NextStep, ...]:
    """Return the commands that follow from an answer."""
    if outcome is VaryOutcome.CONTROL_DIFFERS:
        command = advice.command(replace(settings, vary=()), verb="bisect")
        return (NextStep(command=command, purpose=Purpose.FIX_CONTROL),)
    if outcome is VaryOutcome.ROBUST:
        return (NextStep(command=advice.command(settings, *recipe.options), purpose=Purpose.USE_IN_CI),)
    flags = [flag for one in effects for flag in one.flags]
    if not flags:
        return ()
    words = [*recipe.options, *(word for flag in flags for word in ("--flag", flag))]
    return (NextStep(command=advice.command(settings, *words), purpose=Purpose.AUDIT_WITH_FLAGS),)


# Run one bisection over variations: the control, everything varied, which of it has an effect.


@dataclass(frozen=True)
class VaryQuestion:
    """The question: which variations of the settings change the training, with a recipe that every run has."""

    settings: Settings
    catalogue: Catalogue
    recipe: Recipe
    confirm: int = 5
    error: float = ERROR_RATE


class VariationBisector:
    """Runs one bisection over variations. After an interruption, ``result`` has what is known by then."""

    def __init__(
        self,
        question: VaryQuestion,
        launcher: Launcher,
        observer: Observer | None = None,
        earlier: tuple[Group, ...] = (),
    ) -> None:
        settings, observer = question.settings, observer or Observer()
        self._earlier = earlier
        self._question = question
        ahead = Ahead(launcher, settings.jobs)
        self._runner = Runner(settings, ahead.pool, observer)
        self._runner.starts_fresh = True
        self._varying = settings.varying.under(question.recipe)
        self._trials = ControlledTrials(settings, self._runner, self._plan, observer, self._save, ahead)
        candidates = [one.id for one in self._varying.varying]
        self._search = SensitivitySearch(
            self._ask, candidates, self._rank, confirm=question.confirm, error=question.error
        )
        self._answer: Sensitivity | None = None

    def run(self) -> VariationBisection:
        """Find the variations that change the training."""
        if self._earlier:
            self._trials.restore(self._earlier)
        else:
            store.prepare(self._question.settings.out)
        self._answer = self._search.run()
        self._save()
        return self.result()

    def _ask(self, varied: Flags, runs: int) -> TrialResult:
        return self._trials.ask(varied, runs)

    def _plan(self, varied: Flags, name: str) -> GroupPlan:
        question = self._question
        recipe = Recipe(name=name, seed=question.recipe.seed, flags=question.recipe.flags)
        refused = refusals.refused(recipe.flags, question.settings.target)
        return plan_group(question.settings, recipe, self._runner.space, refused, varied)

    def _rank(self, result: TrialResult) -> tuple[list[str], int]:
        """Order the variations by the suspects of a difference, then by the cause that its stage points to."""
        group = self._trials.named(result.name).group.result()
        likely = LIKELY[group.first_difference.stage] if group.first_difference is not None else ()

        def priority(one: Variation) -> tuple[bool, int]:
            named = matching(one.matches, group.sources)
            return not named, likely.index(one.cause) if one.cause in likely else 0

        return [one.id for one in sorted(self._varying.varying, key=priority)], 1

    def _save(self) -> None:
        store.save(self._question.settings.out, self.result())

    def result(self, interrupted: bool = False) -> VariationBisection:
        """Return the bisection so far."""
        question, answer, groups = self._question, self._answer, self._trials.groups
        requested, outcome, losses = self._varying.varying, self._outcome(), question.settings.loss_pattern
        answered = answer is not None and answer.effects is not None
        known_effects = answer.effects if answer is not None and answer.effects is not None else ()
        effects = effects_of(known_effects, requested, self._trials, question.catalogue)
        affecting = {one.variation for one in effects}
        return VariationBisection(
            schema_version=SCHEMA_VERSION,
            command=question.settings.command,
            environment=msgspec.to_builtins(self._trials.environment),
            verdict=SAYS[outcome],
            groups=groups,
            warnings=advice.warnings(
                groups, self._runner.leftovers, self._runner.warnings, isolated=question.settings.isolate
            ),
            next_steps=advice.resume_step(question.settings)
            if interrupted
            else next_steps(question.settings, question.recipe, outcome, effects),
            interrupted=interrupted,
            target=question.settings.target.words,
            started=question.settings.started,
            ended=now(),
            loss_pattern=losses.pattern if losses is not None else None,
            outcome=outcome,
            sensitive_to=effects if answered else None,
            no_effect=tuple(sorted({one.id for one in requested} - affecting)) if answered else (),
            controls={one.id: one.describe(0) for one in requested},
            not_varied=dict(self._varying.not_varied),
            evidence=verdict.evidence(answer.matching) if answered and answer is not None else None,
            total_runs=self._trials.total_runs,
            code=self._trials.inputs.code,
        )

    def _outcome(self) -> VaryOutcome:
        answer = self._answer
        if answer is None:
            return VaryOutcome.INCONCLUSIVE
        if answer.effects is None:
            differs = answer.control.outcome is TrialOutcome.DIFFERS
            return VaryOutcome.CONTROL_DIFFERS if differs else VaryOutcome.INCONCLUSIVE
        return VaryOutcome.SENSITIVE if answer.effects else VaryOutcome.ROBUST
