"""The answer of a bisection over variations, with the trials it rests on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from detaudit.auditor import advice
from detaudit.auditor.bisect.controlled_trials import ControlledTrials
from detaudit.auditor.bisect.sensitivity import Effect
from detaudit.launch.plan import Settings
from detaudit.model import EffectExample, NextStep, Purpose, Status, VariationEffect, Varied, VaryOutcome
from detaudit.recipe.flags import Catalogue
from detaudit.recipe.recipes import Recipe
from detaudit.recipe.variations import Variation


def effects(
    found: Iterable[Effect], table: Iterable[Variation], trials: ControlledTrials, catalogue: Catalogue
) -> tuple[VariationEffect, ...]:
    """Return the variations that change the training, each with a run that shows it and what pins it."""
    rows = {row.id: row for row in table}
    return tuple(_effect(effect, rows[effect.variation], trials, catalogue) for effect in found)


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
        by_hand=tuple(lines[-1].line if (lines := catalogue.by_hand(flag)) else "" for flag in row.flags),
    )


def _example(effect: Effect, trials: ControlledTrials) -> EffectExample:
    group = trials.named(effect.found.name).group.result()
    found = group.first_difference
    if found is not None:
        run = next((run for run in group.runs if run.id == found.runs[1] and run.status is Status.FAILED), None)
        return EffectExample(
            trial=group.recipe.name,
            runs=found.runs,
            values=_values(group.varied, found.runs[1]),
            rank=found.rank,
            step=found.step,
            stage=found.stage,
            explanation=found.explanation,
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
    settings: Settings, recipe: Recipe, outcome: VaryOutcome, found: Sequence[VariationEffect]
) -> tuple[NextStep, ...]:
    """Return the commands that follow from an answer."""
    if outcome is VaryOutcome.CONTROL_DIFFERS:
        command = advice.command(replace(settings, vary=()), verb="bisect")
        return (NextStep(command=command, purpose=Purpose.FIX_CONTROL),)
    if outcome is VaryOutcome.ROBUST:
        return (NextStep(command=advice.command(settings, *recipe.options), purpose=Purpose.USE_IN_CI),)
    flags = [flag for one in found for flag in one.flags]
    if not flags:
        return ()
    words = [*recipe.options, *(word for flag in flags for word in ("--flag", flag))]
    return (NextStep(command=advice.command(settings, *words), purpose=Purpose.AUDIT_WITH_FLAGS),)
