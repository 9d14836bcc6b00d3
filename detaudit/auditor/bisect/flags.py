"""The story of one bisection: run it as it stands, search, prove, tell what the answer costs."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from detaudit.auditor import advice, store
from detaudit.auditor.bisect import flag_answer, priority
from detaudit.auditor.bisect.minimal_set import NONE, Answer, Finding, Flags, Rules, Search
from detaudit.auditor.bisect.trials import Trials
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import verdict
from detaudit.auditor.judge.confidence import ERROR_RATE
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Runner
from detaudit.launch import Launcher, refusals
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.model import SCHEMA_VERSION, Bisection, Group, Needed, NextStep, Verdict
from detaudit.recipe.applies import applicable
from detaudit.recipe.flags import Catalogue, Flag
from detaudit.recipe.recipes import Recipe

VERDICTS = {
    "mended": Verdict.DETERMINISTIC,
    "already-deterministic": Verdict.DETERMINISTIC,
    "not-mended": Verdict.NONDETERMINISTIC,
    "unresolved": Verdict.INCONCLUSIVE,
}


@dataclass(frozen=True)
class Question:
    """What is asked: which of the ``candidates`` are needed, and how sure the answer must be."""

    settings: Settings
    catalogue: Catalogue
    candidates: tuple[Flag, ...]
    seed: int
    confirm: int = 5
    error: float = ERROR_RATE
    alternatives: bool = False


@dataclass
class _Known:
    """What the first trial told: which candidates apply, and why the others do not."""

    flags: tuple[Flag, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)


class Bisector:
    """Carries out one bisection. After an interruption, ``result`` holds what is known by then.

    ``earlier`` are the trials of one that was interrupted: they are taken from their traces.
    """

    def __init__(
        self, question: Question, launcher: Launcher, observer: Observer | None = None, earlier: tuple[Group, ...] = ()
    ) -> None:
        settings = question.settings
        self._earlier = earlier
        self._question, self._environment = question, environment.describe()
        self._runner = Runner(settings, launcher, observer or Observer())
        self._trials = Trials(settings, self._runner, self._plan, observer or Observer(), self._save)
        self._rules = rules_of(question.catalogue)
        self._search = Search(self._trials.ask, self._rank, self._rules, confirm=question.confirm, error=question.error)
        self._known: _Known | None = None
        self._answer: Answer | None = None
        self._needed: tuple[Needed, ...] = ()
        self._file: Path | None = None

    def run(self) -> Bisection:
        """Find the flags that are needed."""
        settings = self._question.settings
        if self._earlier:
            self._trials.restore(self._earlier)
        else:
            store.prepare(settings.out)
        self._answer = self._search.run()
        if self._answer.needed:
            self._tell(self._answer)
        self._save()
        return self.result()

    def _plan(self, flags: Flags, name: str) -> GroupPlan:
        question = self._question
        recipe = Recipe(name=name, seed=question.seed, flags=question.catalogue.select(flags))
        refused = refusals.refused(recipe.flags, question.settings.target)
        return plan_group(question.settings, recipe, self._runner.space, refused)

    def _rank(self, found: Finding) -> tuple[list[str], int]:
        if self._known is None:
            self._known = self._learn()
        group = self._trials.named(found.name).group.result()
        if group.divergence is None:
            return [], 1
        clues = priority.Clues(group.divergence.stage, group.sources, group.generators)
        ordered, together = priority.order(self._known.flags, clues)
        return [flag.id for flag in ordered], together

    def _learn(self) -> _Known:
        base = self._trials.of(NONE)
        if base is None or base.first is None:
            return _Known(self._question.candidates)
        processes = base.first.processes
        frameworks = {name: version for process in processes for name, version in process.versions.items()}
        devices = [device for rank in base.first.run.ranks for device in rank.devices]
        flags, reasons = applicable(self._question.candidates, frameworks, devices)
        refused = refusals.refused(flags, self._question.settings.target)
        reasons |= {flag: state.detail or "what it sets was not imported" for flag, state in refused.items()}
        return _Known(tuple(flag for flag in flags if flag.id not in refused), reasons)

    def _tell(self, answer: Answer) -> None:
        """Measure what each needed flag costs, and try what may stand in for it if that was asked for."""
        trials, rules, catalogue = self._trials, self._rules, self._question.catalogue
        flag_answer.measure(answer, trials, rules)
        applying = {flag.id for flag in self._known.flags} if self._known else set()
        runs = self._question.confirm if self._question.alternatives else 0
        told = []
        for one in flag_answer.needed(answer, trials, rules, catalogue):
            others = [other for other in rules.instead.get(one.flag, ()) if other in applying]
            found = flag_answer.alternatives(one.flag, answer, others, trials, rules, catalogue, runs)
            told.append(msgspec.structs.replace(one, instead=found))
        self._needed = tuple(told)
        self._file = flag_answer.write_recipe(self._question.settings.out, answer, rules, self._question.seed)

    def _save(self) -> None:
        store.save(self._question.settings.out, self.result())

    def result(self, interrupted: bool = False) -> Bisection:
        """Return the bisection as it stands."""
        question, answer, known = self._question, self._answer, self._known or _Known()
        groups, file = self._trials.groups, advice.shown(self._file) if self._file else None
        outcome = flag_answer.outcome(answer)
        needed = {told.flag for told in self._needed} | {other for told in self._needed for other in told.goes_with}
        best = self._search.best if outcome == "unresolved" else None
        return Bisection(
            schema_version=SCHEMA_VERSION,
            command=question.settings.command,
            environment=self._environment,
            verdict=VERDICTS[outcome],
            groups=groups,
            warnings=advice.warnings(groups, sorted(set(self._runner.carried)), unwatched=self._runner.unwatched),
            next_steps=self._next(file, interrupted),
            interrupted=interrupted,
            target=question.settings.target.words,
            outcome=outcome,
            needed=self._needed if answer is not None and answer.needed is not None else None,
            not_needed=tuple(sorted(flag_answer.tried(groups) - needed)) if outcome == "mended" else (),
            not_applicable=known.reasons,
            failing=flag_answer.failing(answer, groups),
            verified=None if answer is None or answer.needed is None else verdict.verified(answer.matching),
            launches=self._trials.launches,
            recipe_file=file,
            best=tuple(sorted(best)) if best is not None else None,
        )

    def _next(self, file: str | None, interrupted: bool) -> tuple[NextStep, ...]:
        settings = self._question.settings
        if interrupted:
            return advice.go_on(settings)
        if file is None:
            return ()
        command = advice.command(settings, "--recipe", file)
        return (NextStep(command=command, why="audit it with the recipe that was found"),)


def rules_of(catalogue: Catalogue) -> Rules:
    """Return what the catalogue says of flags among each other."""
    return Rules(
        requires={flag.id: flag.requires for flag in catalogue},
        conflicts={flag.id: flag.conflicts for flag in catalogue},
        instead={flag.id: flag.instead for flag in catalogue},
    )
