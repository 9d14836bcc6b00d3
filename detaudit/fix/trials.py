"""Run the training in a copy of the user's folder in which code was changed, and see whether that does harm."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec import structs

from detaudit.config.options import Until
from detaudit.config.recipes import Recipe
from detaudit.errors import WorkspaceError
from detaudit.fix.changes import Change
from detaudit.fix.tree import Tree
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings, in_copy, plan_group
from detaudit.launch.workspace import repository_root
from detaudit.model import Edit, RemedyTrial, RunRecord, Stage
from detaudit.runner import Observer, Runner
from detaudit.trial import Trial, tried

AGAIN = range(1, 5)
"""More runs without a change, to know how often batches repeat by chance."""


def tree_of(settings: Settings) -> Tree:
    """Return the copy of the user's folder in which changes are tried. It is not made yet."""
    root = Path(settings.isolate_root or repository_root(settings.cwd)).resolve()
    return Tree(root, settings.cwd, settings.out)


class EditTrials:
    """Tries the edits that a trace suggests; see trace.tracer.EditTrials."""

    def __init__(self, settings: Settings, recipe: Recipe, launcher: Launcher, observer: Observer) -> None:
        self._settings, self._recipe = settings, recipe
        self._launcher, self._observer = launcher, observer

    def tried(
        self, edit: Edit, numbers: Sequence[int], until: Until | None, before: RunRecord | None
    ) -> RemedyTrial | None:
        """Return what came of the runs with these numbers, None if the edit cannot be made."""
        tree = tree_of(self._settings)
        try:
            tree.make()
            change = Change(edit.file, edit.line, edit.old, edit.new, edit.needs)
            if not tree.is_own(edit.file) or not tree.change([change]):
                return None
            trial = self._trial(tree, "+edit", numbers, until)
            if before is None or trial.record is None:
                return trial.shown
            tree.change([])
            again = (self._trial(tree, "again", [number], until).record for number in AGAIN)
            return structs.replace(trial.shown, repeats=repeats_more(chain([before], again), trial.record))
        except WorkspaceError:
            return None
        finally:
            tree.remove()

    def _trial(self, tree: Tree, name: str, numbers: Sequence[int], until: Until | None) -> Trial:
        settings = in_copy(self._settings, tree, {})
        runner = Runner(settings, self._launcher, self._observer)
        recipe = structs.replace(self._recipe, name=f"{self._recipe.name} {name}")
        plan = plan_group(settings, recipe, runner.space, runner.refused(recipe.flags))
        return tried(runner, plan, settings.cwd, numbers, self._observer, until)


def repeats_more(before: Iterable[RunRecord | None], after: RunRecord) -> bool:
    """Whether more batches are equal to earlier ones of their run than in each run before, in the steps that both have.

    A seed at the wrong place makes a training repeat by giving it the same batch, or the same noise, again and again.
    A search repeats by chance what it tried. Of the runs before, no more are asked for than it takes.
    """
    return all(one is not None and _repeats_more(one, after) for one in before)


def _repeats_more(before: RunRecord, after: RunRecord) -> bool:
    for a, b in zip(before.trainings, after.trainings, strict=False):
        steps = min(a.steps, b.steps)
        if _repeats(b.digests.get(Stage.BATCH, {}), steps) > _repeats(a.digests.get(Stage.BATCH, {}), steps):
            return True
    return False


def _repeats(batches: Mapping[int, tuple[str, ...]], steps: int) -> int:
    seen = [tuple(digests) for step, digests in batches.items() if step <= steps]
    return len(seen) - len(set(seen))
