"""The environment of a run: the user's own, the recipe's variables, and the recorder's way in."""

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
    trace: Path,
    scratch: Path,
    mark: str,
    stages: Iterable[str],
) -> dict[str, str]:
    """Return the variables of a run.

    ``scratch`` is a folder for what flags keep away from other runs.
    They are the same in every run of a group, to the byte: the size of the environment moves addresses.
    PYTHONPATH is added to, never replaced.
    """
    flags = tuple(flags)
    env = with_variables(base, flags, seed, str(scratch))
    env["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *filter(None, [base.get("PYTHONPATH", "")])])
    env[wire.ENV_LOGS] = str(trace)
    env[wire.ENV_MARK] = mark
    env[wire.ENV_STAGES] = ",".join(stages)
    env[wire.ENV_FLAGS] = "\n".join(flag.order(seed) for flag in flags if flag.runs_inside)
    return env
