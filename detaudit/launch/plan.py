"""Settings of an audit, the runs of a group, and the environment of each."""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from detaudit import wire
from detaudit.config.flags import NO_ASLR, Flag, with_variables
from detaudit.config.options import RunOptions
from detaudit.config.recipes import Recipe
from detaudit.errors import WorkspaceError
from detaudit.launch import SCRATCH, RunSpec, Slot
from detaudit.launch.slots import ALONE, Jobs
from detaudit.launch.target import Target, outer_environment
from detaudit.launch.tree import SourceCopy
from detaudit.launch.vary import NOTHING_VARIES, Varying
from detaudit.launch.workspace import (
    LIVE,
    IsolatedWorkspace,
    SharedWorkspace,
    Workspaces,
    in_slot,
    repository_root,
    without_slot,
)
from detaudit.model import Across, FlagState
from detaudit.model.fact import now

# Compose the environment of a run: the user's own, the variables of the recipe, and what loads the recorder.


BOOTSTRAP = Path(__file__).resolve().parent.parent / "recorder" / "bootstrap"


def run_environment(
    base: Mapping[str, str],
    flags: Iterable[Flag],
    seed: int,
    *,
    logs: Path,
    scratch: Path,
    mark: str,
    stages: Iterable[str],
    until: int | None = None,
) -> dict[str, str]:
    """Return the environment variables of a run, which is ended after the step ``until``.

    ``scratch`` is the run's own folder, for flags that need one. The variables have the same size in every run of a
    group, because the size of the environment shifts memory addresses. PYTHONPATH is extended, never replaced.
    """
    flags = tuple(flags)
    env = with_variables(base, flags, seed, str(scratch))
    env["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *filter(None, [base.get("PYTHONPATH", "")])])
    env[wire.ENV_LOGS] = str(logs)
    env[wire.ENV_MARK] = mark
    env[wire.ENV_STAGES] = ",".join(stages)
    env[wire.ENV_FLAGS] = "\n".join(flag.order(seed) for flag in flags if flag.runs_inside)
    if until is not None:
        env[wire.ENV_UNTIL] = str(until)
    return env


# Plan the runs that the settings of an audit ask for.


@dataclass(frozen=True, kw_only=True)
class Settings(RunOptions):
    """The settings of one audit.

    ``outer`` are the variables of runs, None for those of this process, ``env`` is added to them, and recipes may
    override both. ``stepwise`` runs go further one after another; see policy.next_run. ``across`` is what it means that
    machines have different results, ``engine_options`` are those that name other machines, ``()`` if runs are done
    here. ``linked``: a copy of the folder may have links that lead out of it. ``outputs_suffice``: a run that trains
    nothing is compared by what left it alone.
    """

    target: Target
    recipes: tuple[Recipe, ...]
    runs: int
    out: Path
    mark: str
    cwd: Path
    command: tuple[str, ...] = ()
    stepwise: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    outer: Mapping[str, str] | None = None
    varying: Varying = NOTHING_VARIES
    jobs: Jobs = ALONE
    across: Across = Across.FAIL
    engine_options: tuple[str, ...] = ()
    linked: bool = False
    outputs_suffice: bool = False
    started: str = field(default_factory=now)


@dataclass(frozen=True)
class GroupPlan:
    """The runs of one recipe, and the flags of it that are not applied on this system, with their reasons.

    ``places`` has for each slot the run, and the same run in folders with different names if those vary.
    """

    recipe: Recipe
    places: tuple[tuple[RunSpec, ...], ...]
    runs: int
    folder: Path
    refused: Mapping[str, FlagState]
    varying: Varying = NOTHING_VARIES
    jobs: Jobs = ALONE

    def spec(self, number: int) -> RunSpec:
        """Return the run with this number. Runs are equal, but for what varies, their slots and their results."""
        usual, *alternatives = self.places[self.jobs.slot_index(number)]
        run = alternatives[(number - 2) % len(alternatives)] if number > 1 and alternatives else usual
        return self.jobs.on_devices(self.varying.apply(replace(run, folder=self.folder / str(number)), number), number)

    def shared(self, number: int, text: str) -> str:
        """Return what a run wrote without the paths that only its slot has."""
        spec = self.places[self.jobs.slot_index(number)][0]
        return without_slot(text, spec.live.parent, spec.slot.name)


def workspace_for(settings: Settings) -> Workspaces:
    """Return where the runs will work. Raises WorkspaceError for an --isolate-root that does not contain the cwd."""
    if not settings.isolate:
        return SharedWorkspace(settings.cwd)
    root = Path(settings.isolate_root or repository_root(settings.cwd)).resolve()
    if not settings.cwd.is_relative_to(root):
        raise WorkspaceError(
            f"--isolate-root {root} does not contain the working directory {settings.cwd}",
            "Start detaudit inside that folder, or choose a parent of the working directory.",
        )
    return IsolatedWorkspace(root, settings.cwd, settings.out, linked=settings.linked)


def in_copy(settings: Settings, copy: SourceCopy, env: Mapping[str, str], paths: Iterable[str] = ()) -> Settings:
    """Return the settings of runs that start from a copy of the user's folder, with the variables ``env``.

    ``paths`` in the user's folder are searched for modules first, in the copy.
    """
    target = replace(
        settings.target,
        script=copy.inside(settings.target.script),
        arguments=tuple(map(copy.inside, settings.target.arguments)),
    )
    base = {**(os.environ if settings.outer is None else settings.outer), **settings.env}
    own = base.get("PYTHONPATH", "")
    searched = os.pathsep.join(map(copy.inside, [*paths, *(own.split(os.pathsep) if own else [])]))
    return replace(
        settings,
        cwd=copy.cwd,
        isolate=True,
        isolate_root=str(copy.root),
        linked=True,
        target=target,
        artifacts=tuple(map(copy.inside, settings.artifacts)),
        env={**settings.env, **({"PYTHONPATH": searched} if searched else {}), **env},
    )


def plan_group(
    settings: Settings,
    recipe: Recipe,
    space: Workspaces,
    refused: Mapping[str, FlagState],
    varied: Collection[str] | None = None,
) -> GroupPlan:
    """Return the runs of one recipe. Variations that are not in ``varied`` are pinned; all vary if it is None."""
    varying = settings.varying.under(recipe, varied)
    flags = tuple(flag for flag in recipe.flags if flag.id not in refused)
    return GroupPlan(
        recipe=recipe,
        places=tuple(
            tuple(_run(settings, recipe, flags, space, slot, name) for name in ("", *varying.folders))
            for slot in settings.jobs.slots
        ),
        runs=settings.runs,
        folder=settings.out / "runs" / folder_name(recipe.name),
        refused=refused,
        varying=varying,
        jobs=settings.jobs,
    )


def folder_name(name: str) -> str:
    """Return the name of a folder for ``name``, a different one for each."""
    safe_name = re.sub(r"[^A-Za-z0-9.+-]+", "_", name)[:100]
    if safe_name == name and safe_name.strip("."):
        return safe_name
    return f"{safe_name}-{hashlib.blake2b(name.encode(errors='surrogateescape'), digest_size=4).hexdigest()}"


def _run(
    settings: Settings, recipe: Recipe, flags: tuple[Flag, ...], space: Workspaces, slot: Slot, copy_name: str
) -> RunSpec:
    space, mark = space.with_copy(copy_name, slot.name), in_slot(settings.mark, slot.name)
    outer = outer_environment() if settings.outer is None else settings.outer
    target, base = settings.target, {**outer, **settings.env, **space.workspace.env}
    if isinstance(space, IsolatedWorkspace):
        target = replace(
            target, script=space.inside(target.script), arguments=tuple(map(space.inside, target.arguments))
        )
        paths = base.get("PYTHONPATH", "").split(os.pathsep)
        base["PYTHONPATH"] = os.pathsep.join(map(space.inside, paths))
    live = settings.out / in_slot(LIVE, slot.name)
    env = run_environment(
        base,
        flags,
        recipe.seed,
        logs=live / wire.LOGS,
        scratch=live / SCRATCH,
        mark=mark,
        stages=settings.stages,
        until=settings.until.step if settings.until else None,
    )
    return RunSpec(
        argv=target.argv,
        cwd=space.workspace.cwd,
        env=env,
        folder=live,
        live=live,
        mark=mark,
        expected=target.expected_argument,
        timeout=settings.timeout,
        no_aslr=any(flag.launcher == NO_ASLR for flag in flags),
        copy_name=copy_name,
        slot=slot,
        recipe=recipe,
        ignore_text=settings.outputs.ignore_text,
        declared=settings.outputs.declared,
    )
