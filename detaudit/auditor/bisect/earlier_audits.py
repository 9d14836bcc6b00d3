"""An earlier audit of the same command whose runs differed: then runs that match are no proof of determinism."""

from collections.abc import Iterable
from pathlib import Path

from detaudit.auditor import store
from detaudit.errors import AuditNotFoundError
from detaudit.launch import RESULTS
from detaudit.launch.plan import Settings
from detaudit.model import AppliedRecipe, Check, Group

_MOST = 20
"""How many of the newest audits are read."""


def nondeterministic(settings: Settings, files: Iterable[str], recipe: AppliedRecipe | None = None) -> Path | None:
    """Return the newest results folder of the same command in which two runs differ, None without one.

    The runs were those with the flags and the seed of ``recipe``, by default those without flags. An audit from before
    a change of the user's source ``files`` is about another script. Runs whose environment was varied do not count.
    """
    results = next((one for one in settings.out.parents if one.name == RESULTS), settings.cwd / RESULTS)
    edited = max((_time(settings.cwd / file) for file in files), default=0.0)
    for folder in store.all_results(results)[:_MOST]:
        changed = max(_time(folder / name) for name in (store.FILE, store.CHECK))
        own = folder == settings.out or folder in settings.out.parents
        if not own and changed > edited and _differs(folder, settings, recipe):
            return folder
    return None


def _differs(folder: Path, settings: Settings, recipe: AppliedRecipe | None) -> bool:
    try:
        found = store.load_report(folder)
    except AuditNotFoundError:  # of another version, or damaged
        return False
    audits = [one.audit for one in found.audits] if isinstance(found, Check) else [found]
    same = [audit for audit in audits if audit.target == settings.target.words]
    return any(_is_of(group, recipe) for audit in same for group in audit.groups)


def _is_of(group: Group, recipe: AppliedRecipe | None) -> bool:
    """Whether these runs differ, with the flags and the seed of a recipe, and in one environment."""
    if group.first_difference is None or group.varied:
        return False
    if recipe is None or not recipe.flags:
        return not group.recipe.flags
    return {*group.recipe.flags} == {*recipe.flags} and group.recipe.seed == recipe.seed


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
