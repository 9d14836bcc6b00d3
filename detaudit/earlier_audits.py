"""An earlier audit of the same code whose runs differed: then runs that match are no proof of determinism."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from detaudit import store
from detaudit.errors import AuditNotFoundError
from detaudit.launch import RESULTS
from detaudit.launch.plan import Settings
from detaudit.model import AppliedRecipe, Check, Group

_MOST = 20
"""How many of the newest audits are read."""


def digests(cwd: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the user's source files, those that can be read, by their names seen from ``cwd``."""
    by_file = {}
    for file in files:
        try:
            by_file[file] = hashlib.sha256((cwd / file).read_bytes()).hexdigest()
        except OSError:  # run from an archive, or gone meanwhile
            continue
    return by_file


def nondeterministic(settings: Settings, code: Mapping[str, str], recipe: AppliedRecipe | None = None) -> Path | None:
    """Return the newest results folder of the same command and ``code`` in which two runs differ, None without one.

    ``code`` are digests of the user's source files, as of ``Audit.code``. The runs were those with the flags and the
    seed of ``recipe``, by default those without flags. Runs whose environment was varied do not count.
    """
    results = next((one for one in settings.out.parents if one.name == RESULTS), settings.cwd / RESULTS)
    for folder in store.all_results(results)[:_MOST]:
        own = folder == settings.out or folder in settings.out.parents
        if not own and _differs(folder, settings, code, recipe):
            return folder
    return None


def _differs(folder: Path, settings: Settings, code: Mapping[str, str], recipe: AppliedRecipe | None) -> bool:
    try:
        earlier = store.load_report(folder)
    except AuditNotFoundError:  # of another version, or damaged
        return False
    audits = [one.audit for one in earlier.audits] if isinstance(earlier, Check) else [earlier]
    same = [audit for audit in audits if audit.target == settings.target.words and _is_same(audit.code, code)]
    return any(_is_of(group, recipe) for audit in same for group in audit.groups)


def _is_same(code: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether no file has changed that both loaded; a module may be imported in some runs only."""
    both = {*code} & {*other}
    return bool(both) and all(code[file] == other[file] for file in both)


def _is_of(group: Group, recipe: AppliedRecipe | None) -> bool:
    """Whether these runs differ, with the flags and the seed of a recipe, and in one environment."""
    if group.first_difference is None or group.varied:
        return False
    if recipe is None or not recipe.flags:
        return not group.recipe.flags
    return {*group.recipe.flags} == {*recipe.flags} and group.recipe.seed == recipe.seed
