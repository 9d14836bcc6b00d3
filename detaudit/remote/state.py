"""The state that a run starts from: the same on every machine, with nothing of what called the worker."""

import contextlib
import os
import resource
import signal
from collections.abc import Mapping

from detaudit import wire
from detaudit.launch.interpreter import outer_environment
from detaudit.launch.slots import DEVICES
from detaudit.remote.plan import Plan

OWN = (
    *("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "USER"),
    *("CONDA_PREFIX", "VIRTUAL_ENV"),
    *(DEVICES, "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
)
"""The variables that a run has from its machine. All others come from the plan, its recipe or the recorder.

A scheduler hands out devices by the last four; a plan does not know which.
"""

UNSET = "DETAUDIT_UNSET_"
"""A variable of this name stands for one that is not set, because their number moves addresses."""

STACK = 8 * 2**20
"""Bytes of stack, as on a desktop. Schedulers often lift the limit, which moves the addresses of everything else."""


def planned_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return what a plan takes over of the environment in which it is made: settings that change results."""
    return {name: env[name] for name in sorted(env) if wire.affects_determinism(name) and name not in OWN}


def variables(plan: Plan, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of the runs of a plan on this machine, before any recipe: ``env``, filtered and filled.

    It has the same names on every machine.
    """
    env = outer_environment() if env is None else env
    wanted = dict.fromkeys((*OWN, *plan.passed))
    own = {name if name in env else UNSET + name: env.get(name, "") for name in wanted if name not in plan.variables}
    path = {"PYTHONPATH": env["PYTHONPATH"]} if "PYTHONPATH" in env else {}
    return {**path, **own, **plan.variables}


def reset_process() -> None:
    """Undo what a scheduler changed in this process and its children would inherit: signals, priority, the stack."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    with contextlib.suppress(OSError):  # to raise the priority takes a privilege
        os.setpriority(os.PRIO_PROCESS, 0, 0)
