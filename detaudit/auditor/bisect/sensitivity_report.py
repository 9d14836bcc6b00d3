"""What a bisection over variations comes to, told with the trials it rests on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from detaudit.auditor import advice
from detaudit.auditor.bisect.controlled_trials import VariedTrials
from detaudit.auditor.bisect.sensitivity import Blame
from detaudit.launch.plan import Settings
from detaudit.model import Matters, NextStep, Seen, Varied, VaryOutcome
from detaudit.recipe.flags import Catalogue
from detaudit.recipe.recipes import Recipe
from detaudit.recipe.variations import Variation


def matters(
    blames: Iterable[Blame], table: Iterable[Variation], trials: VariedTrials, catalogue: Catalogue
) -> tuple[Matters, ...]:
    """Return the variations that matter, each with a run that shows it and what holds it still."""
    rows = {row.id: row for row in table}
    return tuple(_matters(blame, rows[blame.variation], trials, catalogue) for blame in blames)


def _matters(blame: Blame, row: Variation, trials: VariedTrials, catalogue: Catalogue) -> Matters:
    trial = trials.of(blame.varied)
    sources = trial.group.result().sources if trial else ()
    return Matters(
        variation=row.id,
        title=row.title,
        cause=row.cause,
        legitimate=row.legitimate,
        seen=_seen(blame, trials),
        beside=blame.beside,
        lines=tuple(f"{source.file}:{source.line}: {source.what}" for source in sources),
        cure=row.cure,
        flags=row.flags,
        in_script=tuple(catalogue.get(flag).in_script for flag in row.flags),
    )


def _seen(blame: Blame, trials: VariedTrials) -> Seen:
    group = trials.named(blame.found.name).group.result()
    found = group.divergence
    if found is not None:
        return Seen(
            trial=group.recipe.name,
            runs=found.runs,
            values=_values(group.varied, found.runs[1]),
            rank=found.rank,
            step=found.step,
            stage=found.stage,
            cause=found.cause,
        )
    run = trials.failed(blame.varied)
    number = run.id if run is not None else 0
    words = (run.stderr_tail[-1] if run.stderr_tail else run.problem) if run is not None else None
    return Seen(
        trial=group.recipe.name, runs=(1, number), values=_values(group.varied, number), failed=words or "it failed"
    )


def _values(varied: Sequence[Varied], run: int) -> tuple[str, ...]:
    return tuple(one.values[run - 1] for one in varied if 0 < run <= len(one.values))


def next_steps(
    settings: Settings, recipe: Recipe, answer: VaryOutcome, found: Sequence[Matters]
) -> tuple[NextStep, ...]:
    """Return the commands that follow from an answer."""
    if answer == "control-differs":
        command = advice.command(replace(settings, vary=()), verb="bisect")
        return (NextStep(command=command, why="which flags make it deterministic where nothing varies?"),)
    if answer == "nothing-matters":
        command = advice.command(settings, *recipe.options)
        return (NextStep(command=command, why="in CI: its exit status is 0 while this stays so"),)
    flags = [flag for one in found for flag in one.flags]
    if not flags:
        return ()
    words = [*recipe.options, *(word for flag in flags for word in ("--flag", flag))]
    return (NextStep(command=advice.command(settings, *words), why="with what holds it still"),)
