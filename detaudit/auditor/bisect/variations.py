"""The story of a bisection over variations: the control, all that varies, what of it matters."""

from dataclasses import dataclass

from detaudit.auditor import advice, store
from detaudit.auditor.bisect import sensitivity_report
from detaudit.auditor.bisect.controlled_trials import VariedTrials
from detaudit.auditor.bisect.minimal_set import NONE, Finding, Flags, Outcome
from detaudit.auditor.bisect.priority import LIKELY
from detaudit.auditor.bisect.sensitivity import Blaming, Told
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import verdict
from detaudit.auditor.judge.confidence import ERROR_RATE
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Runner
from detaudit.launch import Launcher, refusals
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.model import SCHEMA_VERSION, Group, VariationBisection, VaryOutcome, Verdict
from detaudit.recipe.flags import Catalogue
from detaudit.recipe.recipes import Recipe
from detaudit.recipe.variations import Variation

VERDICTS: dict[VaryOutcome, Verdict] = {
    "nothing-matters": Verdict.DETERMINISTIC,
    "some-matter": Verdict.NONDETERMINISTIC,
    "control-differs": Verdict.INCONCLUSIVE,
    "unresolved": Verdict.INCONCLUSIVE,
}


@dataclass(frozen=True)
class VaryQuestion:
    """What is asked: which of the variations of the settings matter, under a recipe that every run has."""

    settings: Settings
    catalogue: Catalogue
    recipe: Recipe
    confirm: int = 5
    error: float = ERROR_RATE


class VariationBisector:
    """Carries out one bisection over variations. After an interruption, ``result`` holds what is known by then."""

    def __init__(
        self,
        question: VaryQuestion,
        launcher: Launcher,
        observer: Observer | None = None,
        earlier: tuple[Group, ...] = (),
    ) -> None:
        settings, observer = question.settings, observer or Observer()
        self._earlier = earlier
        self._question, self._environment = question, environment.describe()
        self._runner = Runner(settings, launcher, observer)
        self._varying = settings.varying.under(question.recipe)
        self._trials = VariedTrials(settings, self._runner, self._plan, observer, self._save)
        candidates = [one.id for one in self._varying.moving]
        self._blaming = Blaming(self._ask, candidates, self._rank, confirm=question.confirm, error=question.error)
        self._told: Told | None = None

    def run(self) -> VariationBisection:
        """Find the variations that matter."""
        if self._earlier:
            self._trials.restore(self._earlier)
        else:
            store.prepare(self._question.settings.out)
        self._told = self._blaming.run()
        control = self._trials.of(NONE)
        if control is not None and control.first is not None:
            environment.add_processes(self._environment, control.first.processes)
        self._save()
        return self.result()

    def _ask(self, varied: Flags, runs: int) -> Finding:
        return self._trials.ask(varied, runs)

    def _plan(self, varied: Flags, name: str) -> GroupPlan:
        question = self._question
        recipe = Recipe(name=name, seed=question.recipe.seed, flags=question.recipe.flags)
        refused = refusals.refused(recipe.flags, question.settings.target)
        return plan_group(question.settings, recipe, self._runner.space, refused, varied)

    def _rank(self, found: Finding) -> tuple[list[str], int]:
        """Order the variations by the lines behind a difference, then by the cause that its stage points to."""
        group = self._trials.named(found.name).group.result()
        text = "\n".join(source.what for source in group.sources)
        likely = LIKELY[group.divergence.stage] if group.divergence is not None else ()

        def place(one: Variation) -> tuple[bool, int]:
            named = any(words in text for words in one.mends)
            return not named, likely.index(one.cause) if one.cause in likely else 0

        return [one.id for one in sorted(self._varying.moving, key=place)], 1

    def _save(self) -> None:
        store.save(self._question.settings.out, self.result())

    def result(self, interrupted: bool = False) -> VariationBisection:
        """Return the bisection as it stands."""
        question, told, groups = self._question, self._told, self._trials.groups
        asked = self._varying.moving
        matters = (
            sensitivity_report.matters(told.blames, asked, self._trials, question.catalogue)
            if told and told.blames
            else ()
        )
        answer = self._answer()
        return VariationBisection(
            schema_version=SCHEMA_VERSION,
            command=question.settings.command,
            environment=self._environment,
            verdict=VERDICTS[answer],
            groups=groups,
            warnings=advice.warnings(groups, sorted(set(self._runner.carried)), unwatched=self._runner.unwatched),
            next_steps=advice.go_on(question.settings)
            if interrupted
            else sensitivity_report.next_steps(question.settings, question.recipe, answer, matters),
            interrupted=interrupted,
            target=question.settings.target.words,
            answer=answer,
            matters=matters if told is not None and told.blames is not None else None,
            no_matter=tuple(sorted({one.id for one in asked} - {one.variation for one in matters}))
            if told is not None and told.blames is not None
            else (),
            controls={one.id: one.words(0) for one in asked},
            left_out=dict(self._varying.left_out),
            verified=None if told is None or told.blames is None else verdict.verified(told.matching),
            launches=self._trials.launches,
        )

    def _answer(self) -> VaryOutcome:
        told = self._told
        if told is None:
            return "unresolved"
        if told.blames is None:
            return "control-differs" if told.control.outcome is Outcome.DIFFERS else "unresolved"
        return "some-matter" if told.blames else "nothing-matters"
