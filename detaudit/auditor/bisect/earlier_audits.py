"""An earlier audit of the same command whose runs differed: then runs that match are no proof of determinism."""

from collections.abc import Iterable
from pathlib import Path

from detaudit.auditor import store
from detaudit.errors import AuditNotFoundError
from detaudit.launch import RESULTS
from detaudit.launch.plan import Settings
from detaudit.model import Audit, Group

_MOST = 20
"""How many of the newest audits are read."""


def nondeterministic(settings: Settings, files: Iterable[str]) -> Path | None:
    """Return the newest results folder of the same command in which two runs without flags differ, None without one.

    One from before a change of the user's source ``files`` is about another script. Runs whose environment was varied
    do not count.
    """
    folder = settings.out.parent if settings.out.parent.name == RESULTS else settings.cwd / RESULTS
    edited = max((_time(settings.cwd / file) for file in files), default=0.0)
    for place in store.all_results(folder)[:_MOST]:
        if place != settings.out and _time(place / store.FILE) > edited and _differs(place, settings):
            return place
    return None


def _differs(place: Path, settings: Settings) -> bool:
    try:
        found = store.load_report(place)
    except AuditNotFoundError:  # of another version, or damaged
        return False
    return isinstance(found, Audit) and found.target == settings.target.words and any(map(_bare, found.groups))


def _bare(group: Group) -> bool:
    return group.first_difference is not None and not group.recipe.flags and not group.varied


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
