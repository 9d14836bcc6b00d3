"""Examine a machine before anything runs on it: what affects determinism here, and what are the risks."""

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from detaudit.config.flags import Catalogue, Device, Flag
from detaudit.config.yamlfile import retired
from detaudit.launch.packages import installed
from detaudit.model import SCHEMA_VERSION, Diagnosis, Risk
from detaudit.model.audit import RandomAddresses, RetiredSetting, ThreadsFollowMachine, VariablesUnset
from detaudit.runs import environment

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_EVERYWHERE = ("python", "system", "cuda")
"""Parts of the catalogue that need no package."""


def diagnose(
    python: str, catalogue: Catalogue, devices: Collection[Device], base: Mapping[str, str] = os.environ
) -> Diagnosis:
    """Return what affects determinism on this machine with the packages of ``python``.

    Raises UnknownNameError if that is not a Python.
    """
    described = environment.describe(base)
    described["python"], described["packages"] = installed(python)
    return Diagnosis(
        schema_version=SCHEMA_VERSION,
        python=python,
        environment=described,
        relevant=environment.relevant(described),
        risks=tuple(risks(described, catalogue, devices, base)),
    )


def risks(
    described: Mapping[str, Any], catalogue: Catalogue, devices: Collection[Device], base: Mapping[str, str]
) -> Iterator[Risk]:
    """Yield why runs may differ here: what is not set, what is set in vain, what follows the machine."""
    installed = {name.removesuffix("-cpu") for name in described["packages"]}
    for flag in catalogue.select(catalogue.standard(devices)):
        if flag.framework in _EVERYWHERE or flag.framework in installed:
            yield from _unset(flag, catalogue, base)
    for name, value in base.items():
        if (row := retired(f"{name}={value}")) is not None:
            yield RetiredSetting(variable=name, value=value, why=row.why, replacement=row.replacement)
    if not any(name in base for name in _THREADS):
        yield ThreadsFollowMachine(cpus=described["cpus"])


def _unset(flag: Flag, catalogue: Catalogue, base: Mapping[str, str]) -> Iterator[Risk]:
    """Yield a flag that must be set before Python starts and is not set."""
    if flag.when != "before-start":
        return
    unset = tuple(name for name in flag.env if name not in base)
    line = catalogue.command(flag.id)
    if flag.launcher:
        yield RandomAddresses(flag=flag.id, title=flag.title, by_hand=line)
    elif unset:
        yield VariablesUnset(variables=unset, flag=flag.id, title=flag.title, by_hand=line)
