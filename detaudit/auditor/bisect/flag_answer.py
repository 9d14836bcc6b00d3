"""The answer of a bisection over flags, with the trials it rests on."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from msgspec.structs import replace

from detaudit.auditor import store
from detaudit.auditor.bisect.costs import PAIRS, Cost
from detaudit.auditor.bisect.flag_rules import Rules
from detaudit.auditor.bisect.minimal_set import Answer
from detaudit.auditor.bisect.trial_results import NONE, Flags, TrialOutcome, TrialResult
from detaudit.auditor.bisect.trials import Trials
from detaudit.auditor.judge import verdict
from detaudit.auditor.source import in_place, rewrite
from detaudit.model import (
    Alternative,
    BisectOutcome,
    Cause,
    Evidence,
    FailingFlag,
    Group,
    LeftOut,
    LineToFix,
    NeededFlag,
    SourceKind,
)
from detaudit.recipe.flags import Catalogue, Flag

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


MOST_LINES = 5
"""Lines that a flag acts on, which a report names."""


def needed(
    answer: Answer, trials: Trials, rules: Rules, catalogue: Catalogue, devices: Sequence[str], folder: Path
) -> tuple[NeededFlag, ...]:
    """Return the needed flags, with the difference seen without each of them, and what does the same by hand.

    ``devices`` are those of the weights, as far as known; ``folder`` has the user's files.
    """
    flags = answer.needed or ()
    found = []
    for flag in flags:
        row, lines = catalogue.get(flag), catalogue.by_hand(flag, devices)
        found.append(
            NeededFlag(
                flag=flag,
                title=row.title,
                left_out=_left_out(trials, answer.without[flag].name),
                cost=None,
                requires=tuple(sorted(rules.closed([flag]) - {flag})),
                by_hand=lines[-1].line if lines else "",
                by_hand_when=lines[-1].when if lines else "",
                by_hand_first=lines[:-1],
                in_place=in_place.place_of(folder, trials.files, row) if lines else "",
                acts_on=_acts_on(row, _without(trials, answer.without[flag]), folder),
            )
        )
    return tuple(found)


def _without(trials: Trials, found: TrialResult) -> Group | None:
    """Return the trial without a flag whose runs differ; the one without any flags if that failed."""
    name = found.name if found.outcome is TrialOutcome.DIFFERS else ""
    trial = trials.named(name) if name else trials.of(NONE)
    return trial.group.result() if trial is not None else None


def _acts_on(flag: Flag, without: Group | None, folder: Path) -> tuple[LineToFix, ...]:
    """Return the lines on which a flag acts, those that were observed to differ first.

    That a line takes new memory, which most overwrite at once, says something only of a flag against nothing else.
    """
    lines = [source for source in (without.sources if without is not None else ()) if flag.matches.matches(source)]
    if flag.causes[:1] != (Cause.MEMORY,):
        lines = [source for source in lines if source.kind is not SourceKind.UNINITIALIZED]
    lines.sort(key=lambda source: source.suspect)
    found = []
    for source in lines[:MOST_LINES]:
        edit = rewrite.edit(folder, source.file, source.line, source.kind)
        repeated = edit is None and rewrite.is_repeated_in(folder, source.file, source.line, source.kind)
        found.append(LineToFix(source=source, edit=edit, repeated=repeated))
    return tuple(found)


def _left_out(trials: Trials, name: str) -> LeftOut | None:
    found = trials.named(name).group.result().first_difference if name else None
    if found is None:
        return None
    site = found.site if found.output is not None else None
    return LeftOut(trial=name, runs=found.runs, rank=found.rank, step=found.step, stage=found.stage, site=site)


def measure(answer: Answer, found: Iterable[NeededFlag], trials: Trials, rules: Rules) -> tuple[NeededFlag, ...]:
    """Run the training with all needed flags and without each in turn, and return what each costs.

    So it does with the alternatives that were tried. Every other pair of runs begins with the other kind, so that a
    machine which becomes slower, or faster, does so for both.
    """
    flags = answer.needed or ()
    for one in found:
        bare = rules.without(flags, one.flag)
        if answer.without[one.flag].outcome is TrialOutcome.FAILS:
            continue
        tried = [rules.closed([*bare, other.flag]) for other in one.alternatives if other.matching]
        for whole in (rules.closed(flags), *tried):
            for pair in range(PAIRS):
                for timed in (bare, whole) if pair % 2 == 0 else (whole, bare):
                    trials.time_once(timed)
    return with_costs(answer, found, trials, rules)


def with_costs(answer: Answer, found: Iterable[NeededFlag], trials: Trials, rules: Rules) -> tuple[NeededFlag, ...]:
    """Return the needed flags with what each costs, and its alternatives, the cheapest first, as far as that is known.

    Known it is from pairs of runs that were next to each other, whatever they were made for.
    """
    flags, priced = answer.needed or (), []
    for one in found:
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


def alternatives(
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
    found = []
    for other in others:
        if other in answer.failing or rules.exclude(other, rest):
            continue
        title = catalogue.get(other).title
        finding = tried_with(rules.closed([*rest, other])) if tried_with is not None else None
        if finding is None:
            found.append(Alternative(flag=other, title=title))
        elif finding.outcome is TrialOutcome.MATCHES:
            found.append(Alternative(flag=other, title=title, matching=finding.runs, through=finding.through))
    return tuple(sorted(found, key=lambda one: not one.matching))


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
