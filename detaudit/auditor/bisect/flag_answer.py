"""What an answer of the search comes to, told with the trials it rests on."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from detaudit.auditor import store
from detaudit.auditor.bisect.minimal_set import NONE, Answer, Outcome, Rules
from detaudit.auditor.bisect.trials import Trials
from detaudit.model import Alternative, BisectOutcome, Failing, Group, Needed, Without
from detaudit.recipe.flags import Catalogue

RECIPE_FILE = "detaudit-recipe.yaml"


def outcome(answer: Answer | None) -> BisectOutcome:
    """Return what a search came to, None standing for one that was interrupted."""
    if answer is None:
        return "unresolved"
    if answer.needed is None:
        return "not-mended" if answer.differed else "unresolved"
    return "mended" if answer.needed else "already-deterministic"


def needed(answer: Answer, trials: Trials, rules: Rules, catalogue: Catalogue) -> tuple[Needed, ...]:
    """Return the needed flags, with what was seen when each alone was left out and the time that each takes."""
    flags = answer.needed or ()
    whole = trials.wall_s(rules.closed(flags))
    told = []
    for flag in flags:
        rest = rules.closed(other for other in flags if other != flag)
        bare = trials.wall_s(rest)
        row = catalogue.get(flag)
        told.append(
            Needed(
                flag=flag,
                title=row.title,
                without=_without(trials, rest),
                cost=round(whole / bare, 3) if whole and bare else None,
                goes_with=tuple(sorted(rules.closed([flag]) - {flag})),
                in_script=row.in_script,
                where=row.where,
            )
        )
    return tuple(told)


def _without(trials: Trials, flags: Iterable[str]) -> Without | None:
    trial = trials.of(flags)
    found = trial.group.result().divergence if trial else None
    if trial is None or found is None:
        return None
    return Without(trial=trial.name, runs=found.runs, rank=found.rank, step=found.step, stage=found.stage)


def measure(answer: Answer, trials: Trials, rules: Rules) -> None:
    """Run the training once more with all needed flags and without each, in turn, for the time that it takes."""
    flags = answer.needed or ()
    for flag in flags:
        trials.time_again(rules.closed(other for other in flags if other != flag))
        trials.time_again(rules.closed(flags))


def alternatives(
    flag: str, answer: Answer, others: Sequence[str], trials: Trials, rules: Rules, catalogue: Catalogue, runs: int
) -> tuple[Alternative, ...]:
    """Return what may stand in for a needed flag, each tried with ``runs`` runs where that is not 0.

    Those that were tried come first, the cheapest of them in front; one that mends nothing is left out.
    """
    flags = answer.needed or ()
    rest = [other for other in flags if other != flag]
    bare = trials.wall_s(rules.closed(rest))
    found = []
    for other in others:
        if other in answer.failing or rules.exclude(other, rules.closed(rest)):
            continue
        tried, matching = rules.closed([*rest, other]), 0
        if runs:
            finding = trials.ask(tried, runs)
            if finding.outcome is not Outcome.AGREES:
                continue
            matching = finding.runs
        took = trials.wall_s(tried) if matching else None
        cost = round(took / bare, 3) if took and bare else None
        found.append(Alternative(flag=other, title=catalogue.get(other).title, matching=matching, cost=cost))
    return tuple(sorted(found, key=lambda one: (not one.matching, one.cost or 0.0)))


def failing(answer: Answer | None, groups: Sequence[Group]) -> tuple[Failing, ...]:
    """Return the flags under which the training fails, with its own last words."""
    found = []
    for flag in answer.failing if answer else ():
        runs = (
            run
            for group in sorted(groups, key=lambda group: len(group.recipe.flags))
            if flag in group.recipe.flags
            for run in group.runs
            if not run.counts
        )
        run = next(runs, None)
        words = run.stderr_tail[-1] if run and run.stderr_tail else (run.problem if run else "") or ""
        found.append(Failing(flag=flag, message=words))
    return tuple(found)


def write_recipe(folder: Path, answer: Answer, rules: Rules, seed: int) -> Path | None:
    """Write the recipe that mends it, None where nothing needs mending or nothing does."""
    if not answer.needed:
        return None
    recipe = {"name": "detaudit-recipe", "seed": seed, "flags": sorted(rules.closed(answer.needed))}
    path = folder / RECIPE_FILE
    head = "# Found by detaudit bisect; use it with --recipe.\n"
    store.write(path, (head + yaml.safe_dump(recipe, sort_keys=False)).encode())
    return path


def tried(groups: Iterable[Group]) -> frozenset[str]:
    """Return all flags that were set in some trial."""
    return NONE.union(*(group.recipe.flags for group in groups))
