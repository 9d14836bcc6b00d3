"""Compose the environment of a run: the user's own, the variables of the recipe, and what loads the recorder."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from detaudit import wire
from detaudit.recipe.flags import Flag, with_variables

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
