"""From what the user asked for to the runs that will be started."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from detaudit import wire
from detaudit.errors import WorkspaceError
from detaudit.launch import SCRATCH, RunSpec
from detaudit.launch.environment import run_environment
from detaudit.launch.target import Target
from detaudit.launch.workspace import IsolatedWorkspace, SharedWorkspace, repository_root
from detaudit.model import FlagState
from detaudit.recipe.flags import NO_ASLR
from detaudit.recipe.recipes import Recipe


@dataclass(frozen=True)
class Settings:
    """One audit as it was asked for. ``timeout`` is in seconds, ``artifacts`` are relative to where a run starts."""

    target: Target
    recipes: tuple[Recipe, ...]
    runs: int
    out: Path
    mark: str
    cwd: Path
    command: tuple[str, ...] = ()
    timeout: float | None = None
    fail_fast: bool = False
    isolate: bool = False
    isolate_root: Path | None = None
    stages: tuple[str, ...] = wire.DEFAULT_STAGES
    loss_pattern: re.Pattern[str] | None = None
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupPlan:
    """The runs of one recipe, and the flags that were left out of it here, with the reason."""

    recipe: Recipe
    run: RunSpec
    runs: int
    folder: Path
    refused: Mapping[str, FlagState]

    def spec(self, number: int) -> RunSpec:
        """Return the run of this number. They are equal but for the folder that keeps what each leaves behind."""
        return replace(self.run, folder=self.folder / str(number))


def workspace_for(settings: Settings) -> SharedWorkspace | IsolatedWorkspace:
    """Return where the runs will work. Raises WorkspaceError for an --isolate-root that does not hold the cwd."""
    if not settings.isolate:
        return SharedWorkspace(settings.cwd)
    root = (settings.isolate_root or repository_root(settings.cwd)).resolve()
    if not settings.cwd.is_relative_to(root):
        raise WorkspaceError(
            f"--isolate-root {root} does not hold the working directory {settings.cwd}",
            "Start detaudit inside that folder, or name one above the working directory.",
        )
    return IsolatedWorkspace(root, settings.cwd, settings.out)


def plan_group(
    settings: Settings,
    recipe: Recipe,
    space: SharedWorkspace | IsolatedWorkspace,
    refused: Mapping[str, FlagState],
) -> GroupPlan:
    """Return the runs of one recipe."""
    flags = [flag for flag in recipe.flags if flag.id not in refused]
    target, base = settings.target, {**os.environ, **space.workspace.env}
    if isinstance(space, IsolatedWorkspace):
        target = replace(
            target, script=space.inside(target.script), arguments=tuple(map(space.inside, target.arguments))
        )
        paths = base.get("PYTHONPATH", "").split(os.pathsep)
        base["PYTHONPATH"] = os.pathsep.join(map(space.inside, paths))
    live = settings.out / "live"
    env = run_environment(
        base,
        flags,
        recipe.seed,
        trace=live / "trace",
        scratch=live / SCRATCH,
        mark=settings.mark,
        stages=settings.stages,
    )
    spec = RunSpec(
        argv=target.argv,
        cwd=space.workspace.cwd,
        env=env,
        folder=live,
        live=live,
        mark=settings.mark,
        expected=target.expected_argument,
        timeout=settings.timeout,
        no_aslr=any(flag.launcher == NO_ASLR for flag in flags),
    )
    folder = settings.out / "runs" / re.sub(r"[^A-Za-z0-9.+-]+", "_", recipe.name)
    return GroupPlan(recipe, spec, settings.runs, folder, refused)
