"""The answer of a bisection over flags, with the trials it rests on."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import yaml
from msgspec.structs import replace

from detaudit.auditor import store
from detaudit.auditor.bisect.flag_rules import Rules
from detaudit.auditor.bisect.minimal_set import Answer
from detaudit.auditor.bisect.trial_results import NONE, Flags, TrialOutcome, TrialResult
from detaudit.auditor.bisect.trials import Trials
from detaudit.auditor.judge import verdict
from detaudit.model import Alternative, BisectOutcome, Evidence, FailingFlag, Group, LeftOut, NeededFlag
from detaudit.recipe.flags import Catalogue

RECIPE_FILE = "detaudit-recipe.yaml"


def outcome(answer: Answer | None) -> BisectOutcome:
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
    found = verdict.evidence(answer.matching, answer.through, answer.whole)
    return replace(found, trial=proof.name if proof is not None else None)


def needed(answer: Answer, trials: Trials, rules: Rules, catalogue: Catalogue) -> tuple[NeededFlag, ...]:
    """Return the needed flags, with the difference seen without each of them, and the time that each costs."""
    flags = answer.needed or ()
    found = []
    for flag in flags:
        rest = rules.without(flags, flag)
        row, cost = catalogue.get(flag), trials.cost(rules.closed(flags), rest)
        found.append(
            NeededFlag(
                flag=flag,
                title=row.title,
                left_out=_left_out(trials, answer.without[flag].name),
                cost=cost.factor if cost else None,
                cost_runs=cost.runs if cost else None,
                requires=tuple(sorted(rules.closed([flag]) - {flag})),
                by_hand=row.by_hand,
                by_hand_when=row.applied_when,
            )
        )
    return tuple(found)


def _left_out(trials: Trials, name: str) -> LeftOut | None:
    found = trials.named(name).group.result().first_difference if name else None
    if found is None:
        return None
    return LeftOut(trial=name, runs=found.runs, rank=found.rank, step=found.step, stage=found.stage)


def measure(answer: Answer, trials: Trials, rules: Rules) -> None:
    """Run the training once more with all needed flags and without each, in turn, to measure the time it takes.

    That is not needed if runs did steps for long enough.
    """
    flags = answer.needed or ()
    for flag in flags:
        if trials.pace(rules.closed(flags)) and trials.pace(rules.without(flags, flag)):
            continue
        trials.time_again(rules.without(flags, flag))
        trials.time_again(rules.closed(flags))


def alternatives(
    flag: str,
    answer: Answer,
    others: Sequence[str],
    trials: Trials,
    rules: Rules,
    catalogue: Catalogue,
    tried_with: Callable[[Flags], TrialResult] | None,
) -> tuple[Alternative, ...]:
    """Return the alternatives to a needed flag, each tried unless nothing is there to try it.

    Those that were tried come first, the cheapest of them in front; one that does not fix it is left out.
    """
    flags = answer.needed or ()
    rest = rules.without(flags, flag)
    found = []
    for other in others:
        if other in answer.failing or rules.exclude(other, rest):
            continue
        tried, title = rules.closed([*rest, other]), catalogue.get(other).title
        finding = tried_with(tried) if tried_with is not None else None
        if finding is None:
            found.append(Alternative(flag=other, title=title))
        elif finding.outcome is TrialOutcome.MATCHES:
            cost = trials.cost(tried, rest)
            found.append(
                Alternative(
                    flag=other,
                    title=title,
                    matching=finding.runs,
                    through=finding.through,
                    cost=cost.factor if cost else None,
                    cost_runs=cost.runs if cost else None,
                )
            )
    return tuple(sorted(found, key=lambda one: (not one.matching, one.cost or 0.0)))


def failing(answer: Answer | None, groups: Sequence[Group]) -> tuple[FailingFlag, ...]:
    """Return the flags with which the training fails, and why."""
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
        message = run.stderr_tail[-1] if run and run.stderr_tail else ""
        found.append(FailingFlag(flag=flag, message=message, errors=run.errors if run else ()))
    return tuple(found)


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
