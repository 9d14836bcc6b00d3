"""What to type next, and what to be warned of."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from detaudit.launch.plan import Settings
from detaudit.model import Group, Status, Verdict


def command(settings: Settings, *options: str) -> str:
    """Return a ``detaudit run`` command for the same target with these options."""
    target = settings.target
    words = ["detaudit", "run", *([target.script] if target.script else [])]
    words += ["-m", target.module] if target.module else []
    words += options
    if settings.isolate:
        words.append("--isolate")
    if target.arguments:
        words += ["--", *target.arguments]
    return shlex.join(words)


def next_steps(settings: Settings, groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the commands that follow from these groups, each with what it is for."""
    runs = str(settings.runs)
    steps = []
    differing = [group for group in groups if group.verdict is Verdict.NONDETERMINISTIC]
    mended = [group for group in groups if group.verdict is Verdict.DETERMINISTIC]
    failed = [run for group in groups for run in group.runs if run.status is not Status.OK]
    tried_all = any(group.recipe.name.startswith("all") for group in groups)
    if failed:
        steps.append(f"{_log(failed[0].logs)}  # all that run {failed[0].id} said")
        if any("ModuleNotFoundError" in line for line in failed[0].stderr_tail):
            steps.append(command(settings, "--python", "PATH/TO/python") + "  # the Python your training uses")
    if differing and not mended and not tried_all:
        steps.append(
            command(settings, "--runs", runs, "--recipe", "none", "--recipe", "seeds", "--recipe", "all")
            + "  # do the seeds mend it, or every flag?"
        )
    if mended:
        recipe = [word for name in [mended[0].recipe.name.split()[0]] for word in ("--recipe", name)]
        steps.append(command(settings, "--runs", runs, *recipe) + "  # in CI: exit status 0 while it stays so")
    steps.append(f"detaudit report {shlex.quote(shown(settings.out))}  # print this again")
    return tuple(steps)


def _log(folder: str) -> str:
    return f"less {shlex.quote(shown(Path(folder) / 'stderr.log'))}"


def shown(path: Path) -> str:
    """Return a path as people would type it: relative where it lies below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def warnings(settings: Settings, groups: Iterable[Group], carried: Sequence[str]) -> tuple[str, ...]:
    """Return what throws doubt on these groups."""
    found = []
    for group in groups:
        found += [
            f"{group.recipe.name}: the flag {flag.id} was not applied: {flag.detail}"
            for flag in group.flags
            if flag.state in ("failed", "unavailable")
        ]
        found += [f"{group.recipe.name} run {run.id}: {text}" for run in group.runs for text in run.warnings]
    if carried:
        found.append(
            f"a run read what an earlier run wrote, so they did not start alike: {', '.join(carried[:5])}"
            + (f" and {len(carried) - 5} more" if len(carried) > 5 else "")
            + ". Give each run its own copy of the working directory: --isolate"
        )
    return tuple(dict.fromkeys(found))
