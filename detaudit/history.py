"""Earlier audits are evidence: which are surely of the same training, and what they add to runs that match."""

import contextlib
import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from detaudit import advice, baseline
from detaudit.config.options import written
from detaudit.errors import AuditNotFoundError, DetauditError
from detaudit.judge import comparer, verdict
from detaudit.launch import RESULTS
from detaudit.launch.plan import Settings
from detaudit.launch.target import outer_environment
from detaudit.model import Audit, Check, Group, RunRecord, Status, Verdict, Warning
from detaudit.model.audit import EarlierRuns
from detaudit.model.problems import EarlierRunsDiffer
from detaudit.model.warnings import EarlierResultDiffers
from detaudit.runs import environment
from detaudit.runs.inputs import WRITTEN
from detaudit.store import all_results, load_report

MOST = 100
"""How many of the newest results folders are read: a hundred reports take about a second."""

MOST_COMPARED = 20
"""With the runs of how many of the newest audits those of a new one are compared, a run of each."""

MOST_S = 10.0
"""For so many seconds: the logs of a long training take some time to read."""

_NEUTRAL = ("timeout", "fail_fast", "stages", "history")
"""Options that change neither the result of a run nor what decides about it."""

_OF_SESSION = re.compile(
    "_|SHLVL|PWD|OLDPWD|COLUMNS|LINES|WINDOWID|STY|DISPLAY|PYTEST_CURRENT_TEST"
    "|(?:TERM|COLORTERM|SSH|XDG_SESSION|TMUX|WAYLAND|DBUS|VSCODE)(?:_.*)?"
)
"""Variables that each terminal has others of, and scripts do not read."""

_LEARNED = ("packages", "frameworks", "cuda", "cudnn")
"""Parts of an environment that a run tells as it comes to them, so that one that was ended knows fewer."""


def options(settings: Settings) -> dict[str, Any]:
    """Return the options that are not as by default, and a digest of the variables of runs, but for those of a session.

    A copy in which changes are tried is as the folder that it is of.
    """
    of_copy = ("isolate", "isolate_root", "PYTHONPATH") if settings.linked else ()
    texts = {name: value for name, value in written(settings).items() if name not in (*_NEUTRAL, *of_copy)}
    outer = outer_environment() if settings.outer is None else settings.outer
    own = {name: value for name, value in settings.env.items() if name not in of_copy}
    variables = sorted(one for one in {**outer, **own}.items() if not _OF_SESSION.fullmatch(one[0]))
    texts["env"] = hashlib.sha256(repr(variables).encode(errors="backslashreplace")).hexdigest()
    return texts


def earlier_steps(settings: Settings) -> int | None:
    """Return how many steps a whole run of the same command did, in the newest audit that has one; None without."""
    runs = (run for _, audit in _earlier(settings) for group in audit.groups for run in group.runs)
    return next((run.steps for run in runs if run.is_whole), None)


def differed(group: Group, audit: Audit, settings: Settings) -> Path | None:
    """Return the newest results folder in which two runs of the same training as this group differ, None without one.

    ``audit`` is the report that the group is of.
    """
    return next((folder for folder, one in _same(group, audit, settings) if _runs(folder, one).differing), None)


def considered(group: Group, audit: Audit, settings: Settings, record: RunRecord | None) -> Group:
    """Return a group with what earlier audits of the same training say of it, if its runs match.

    Two of their runs that differ make it inconclusive, and those that match a ``record`` of this group add to its
    evidence. If they match each other alone, something that is not recorded may have changed: that is a warning.
    """
    if group.verdict is not Verdict.DETERMINISTIC:
        return group
    every: list[EarlierRuns] = []
    others: list[str] = []
    compared, until = 0, time.monotonic() + MOST_S
    for folder, one in _same(group, audit, settings):
        runs = _runs(folder, one)
        if runs.differing:
            every.append(runs)
        elif _all_match(one) and one.through == group.through and compared < MOST_COMPARED and time.monotonic() < until:
            compared += 1
            same = _matches(folder, one, group, audit, settings, record)
            every += [runs] if same else []
            others += [runs.folder] if same is False else []
    total, differing = (sum(getattr(one, name) for one in every) for name in ("runs", "differing"))
    warnings: tuple[Warning, ...] = group.warnings
    if differing:
        folders = tuple(one.folder for one in every if one.differing)
        reason = EarlierRunsDiffer(runs=total, differing=differing, folders=folders)
        return replace(group, verdict=Verdict.INCONCLUSIVE, reason=reason, earlier=tuple(every))
    if others:
        warnings = (*warnings, EarlierResultDiffers(folders=tuple(others)))
    surer = verdict.confidence(group.compared + total) if group.confidence is not None else None
    return replace(group, confidence=surer, warnings=warnings, earlier=tuple(every))


def _all_match(group: Group) -> bool:
    """Whether an earlier group was deterministic, but for what audits before it said."""
    return group.verdict is Verdict.DETERMINISTIC or isinstance(group.reason, EarlierRunsDiffer)


def _runs(folder: Path, group: Group) -> EarlierRuns:
    """Return the runs of an earlier group that count: those that failed may have failed for want of memory."""
    counted = [run for run in group.runs if run.counts and run not in group.shorter]
    results = Counter(run.result for run in counted if run.status in (Status.OK, Status.ENDED, Status.STOPPED))
    runs = results.total()
    differing = runs - max(results.values(), default=0) if group.verdict is Verdict.NONDETERMINISTIC else 0
    return EarlierRuns(folder=advice.shown(folder), runs=runs, differing=differing)


def _matches(
    folder: Path, earlier: Group, group: Group, audit: Audit, settings: Settings, record: RunRecord | None
) -> bool | None:
    """Return whether a run of an earlier group has the result of these, None if nobody can say."""
    run = group.first_finished
    if run is None or record is None:
        return None
    relevant = environment.relevant(audit.environment)
    now = baseline.recording_of(audit.target, group.recipe, relevant, run, record).run
    try:
        then = baseline.load(str(folder), earlier.recipe.name, settings.loss_pattern).recording.run
        if comparer.first_difference(then, now, shared=True) is not None:
            return False
        return None if comparer.open_output(then, now) is not None else True
    except DetauditError:  # its event logs are gone, changed, or of another version
        return None


# Which audits are surely of the same training.


def is_same(a: Audit, b: Audit) -> bool:
    """Whether two audits are surely of the same code, data, packages, machine, arguments and options.

    What is not known of either is not surely the same.
    """
    return (
        a.target == b.target
        and a.options is not None
        and a.options == b.options
        and a.installed is not None
        and a.installed == b.installed
        and bool({*a.code} & {*b.code})
        and _agree(a.code, b.code)
        and _is_same_data(a.data, b.data)
        and _is_same_environment(a.environment, b.environment)
    )


def is_same_recipe(a: Group, b: Group) -> bool:
    """Whether the runs of two groups had the same flags and seed, and the same variations, all on one machine."""
    flags = [({*one.recipe.flags}, one.recipe.seed if one.recipe.flags else None) for one in (a, b)]
    varied = [({one.id for one in group.varied}, {*group.not_varied}) for group in (a, b)]
    return flags[0] == flags[1] and varied[0] == varied[1] and not (a.machines or b.machines)


def _agree(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether all that both know is the same: a module may be imported in some runs only."""
    return all(a[name] == b[name] for name in {*a} & {*b})


def _is_same_data(a: Mapping[str, str] | None, b: Mapping[str, str] | None) -> bool:
    """Whether one read all files that the other read, as runs that were ended read fewer, and all are the same."""
    if a is None or b is None:
        return False
    both = {*a} & {*b}
    return both in ({*a}, {*b}) and _agree(a, b) and all(a[name] != WRITTEN for name in both)


def _is_same_environment(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    learned = all(_agree(*(_learned(one.get(name)) for one in (a, b))) for name in _LEARNED)
    fixed = [{name: value for name, value in one.items() if name not in _LEARNED} for one in (a, b)]
    return learned and fixed[0] == fixed[1]


def _learned(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {} if value is None else {"": value}


def _same(group: Group, audit: Audit, settings: Settings) -> Iterator[tuple[Path, Group]]:
    """Yield the groups of earlier audits of the same training with their results folders, the newest first.

    Trials of a bisection, a trace or a fix are none of them, and a copy of a folder adds nothing.
    """
    known = set()
    for folder, earlier in _earlier(settings) if settings.history else ():
        runs = (earlier.started, *(run.wall_s for one in earlier.groups for run in one.runs))
        if type(earlier) is Audit and runs not in known and is_same(earlier, audit):
            known.add(runs)
            yield from ((folder, one) for one in earlier.groups if is_same_recipe(one, group))


def _earlier(settings: Settings) -> Iterator[tuple[Path, Audit]]:
    """Yield the earlier audits of the same command with their results folders, the newest first."""
    results = next((one for one in settings.out.parents if one.name == RESULTS), settings.cwd / RESULTS)
    for folder in all_results(results)[:MOST]:
        if folder == settings.out or folder in settings.out.parents:
            continue
        with contextlib.suppress(AuditNotFoundError):  # of another version, or damaged
            report = load_report(folder)
            audits = {folder / one.name: one.audit for one in report.audits} if isinstance(report, Check) else {}
            audits = audits or ({folder: report} if isinstance(report, Audit) else {})
            yield from ((path, audit) for path, audit in audits.items() if audit.target == settings.target.words)
