"""What to type next, and what to be warned of."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from detaudit import wire
from detaudit.launch.plan import Settings
from detaudit.model import Group, NextStep, Status, Verdict


def command(settings: Settings, *options: str, verb: str = "run") -> str:
    """Return a ``detaudit run`` command, or another, for the same target with these options."""
    target = settings.target
    words = ["detaudit", verb, *([target.script] if target.script else [])]
    words += ["-m", target.module] if target.module else []
    words += options
    if settings.target.python != sys.executable and "--python" not in options:
        words += ["--python", settings.target.python]
    words += _carried_on(settings, verb)
    if target.arguments:
        words += ["--", *target.arguments]
    return shlex.join(words)


def _carried_on(settings: Settings, verb: str) -> list[str]:
    """Return the options that say how a run is started and what of it is compared; recipes are for the caller."""
    words = ["--timeout", f"{settings.timeout:g}"] if settings.timeout is not None else []
    words += ["--fail-fast"] if settings.fail_fast and verb == "run" else []
    words += [word for name in settings.vary for word in ("--vary", name)]
    chosen = settings.stages != wire.DEFAULT_STAGES and verb != "trace"
    words += ["--stages", ",".join(settings.stages)] if chosen else []
    words += ["--loss-pattern", settings.loss_pattern.pattern] if settings.loss_pattern else []
    words += [word for path in settings.artifacts for word in ("--artifact", path)]
    if settings.isolate_root is not None:
        return [*words, "--isolate-root", str(settings.isolate_root)]
    return [*words, "--isolate"] if settings.isolate else words


def next_steps(settings: Settings, groups: Sequence[Group]) -> tuple[NextStep, ...]:
    """Return the commands that follow from these groups."""
    runs = str(settings.runs)
    steps = []
    verdicts = {group.verdict for group in groups}
    pairs = zip(settings.recipes, groups, strict=False)
    mended = next((recipe for recipe, group in pairs if group.verdict is Verdict.DETERMINISTIC), None)
    fine = (Status.OK, Status.STOPPED)
    failed = next((run for group in groups for run in group.runs if run.status not in fine), None)
    tried_all = any(group.recipe.name.startswith("all") for group in groups)
    if failed is not None:
        steps.append((_log(failed.logs), f"all that run {failed.id} wrote to stderr"))
        if any("ModuleNotFoundError" in line for line in failed.stderr_tail):
            steps.append((command(settings, "--python", "PATH/TO/python"), "with the Python that your training uses"))
        if failed.status is Status.NO_RECORD and not settings.artifacts:
            words = ("--runs", runs, "--artifact", "PATH/TO/MODEL")
            steps.append((command(settings, *words), "or compare a file that the script writes"))
    if Verdict.NONDETERMINISTIC in verdicts and mended is None and not tried_all:
        recipes = [word for name in ("none", "seeds", "all") for word in ("--recipe", name)]
        steps.append((command(settings, "--runs", runs, *recipes), "do the seeds mend it, or every flag?"))
    if Verdict.NONDETERMINISTIC in verdicts and not settings.vary:
        steps.append((command(settings, verb="bisect"), "which flags mend it, and is each of them needed?"))
        if not settings.artifacts and settings.loss_pattern is None:
            steps.append((command(settings, verb="trace"), "where does the difference enter?"))
    if Verdict.NONDETERMINISTIC in verdicts and settings.vary:
        steps.append((command(settings, "--over", "variations", verb="bisect"), "which of the variations matter?"))
    if mended is not None:
        steps.append(
            (command(settings, "--runs", runs, *mended.options), "in CI: its exit status is 0 while this stays so")
        )
    steps.append((f"detaudit report {shlex.quote(shown(settings.out))}", "print this again"))
    return tuple(NextStep(command=command_, why=why) for command_, why in steps)


def go_on(settings: Settings) -> tuple[NextStep, ...]:
    """Return the command that goes on with a bisection that was interrupted; artifacts are gone, and cannot."""
    if settings.artifacts:
        return ()
    return (
        NextStep(
            command=f"detaudit bisect --resume {shlex.quote(shown(settings.out))}", why="go on where this stopped"
        ),
    )


def _log(folder: str) -> str:
    return f"less {shlex.quote(shown(Path(folder) / 'stderr.log'))}"


def shown(path: Path) -> str:
    """Return a path as people would type it: relative where it lies below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def warnings(groups: Sequence[Group], carried: Sequence[str], *, unwatched: bool) -> tuple[str, ...]:
    """Return what throws doubt on these groups.

    ``carried`` are files that one run left for another; ``unwatched`` says that none could be seen.
    """
    found = []
    for group in groups:
        found += [
            f"{group.recipe.name}: the flag {flag.id} was not applied: {flag.detail}"
            for flag in group.flags
            if flag.state in ("failed", "unavailable")
        ]
        found += [f"{group.recipe.name}: {text}" for text in group.warnings]
        found += [f"{group.recipe.name} run {run.id}: {text}" for run in group.runs for text in run.warnings]
    if carried:
        found.append(
            f"a run read what an earlier run wrote, so they did not start alike: {', '.join(carried[:5])}"
            + (f" and {len(carried) - 5} more" if len(carried) > 5 else "")
            + ". Give each run its own copy of the working directory: --isolate"
        )
    if unwatched and sum(len(group.runs) for group in groups) > 1:
        found.append(
            "files that one run leaves for the next could not be watched: this system offers no inotify, or no more of "
            "it. To be sure that runs start alike: --isolate"
        )
    return tuple(dict.fromkeys(found))
