"""Looks at a machine before anything is run on it: what bears on determinism here, and what threatens it."""

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from detaudit.auditor.evidence import environment
from detaudit.launch import versions
from detaudit.model import SCHEMA_VERSION, Diagnosis, Threat
from detaudit.recipe.flags import Catalogue, Device, Flag
from detaudit.recipe.names import retired

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_EVERYWHERE = ("python", "system", "cuda")
"""Parts of the catalogue that need no package."""


def diagnose(
    python: str, catalogue: Catalogue, devices: Collection[Device], base: Mapping[str, str] = os.environ
) -> Diagnosis:
    """Return what this machine, and the packages of ``python``, mean for the bits of a training.

    Raises UnknownNameError for what is no Python.
    """
    told = environment.describe(base)
    told["python"], told["packages"] = versions.installed(python)
    return Diagnosis(
        schema_version=SCHEMA_VERSION,
        python=python,
        environment=told,
        bearing=environment.bearing(told),
        threats=tuple(threats(told, catalogue, devices, base)),
    )


def threats(
    told: Mapping[str, Any], catalogue: Catalogue, devices: Collection[Device], base: Mapping[str, str]
) -> Iterator[Threat]:
    """Yield what may make runs differ here: what is loose, what only seems held, what follows the machine."""
    has = {name.removesuffix("-cpu") for name in told["packages"]}
    for flag in catalogue.select(catalogue.automatic(devices)):
        if flag.framework in _EVERYWHERE or flag.framework in has:
            yield from _loose(flag, base)
    for name, value in base.items():
        if (row := retired(f"{name}={value}")) is not None:
            yield Threat(what=f"{name}={value} is set, but {row.why}", cure=row.instead or "Leave it out.")
    if not any(name in base for name in _THREADS):
        yield Threat(
            what=f"threads: libraries take as many as there are processors ({told['cpus']} here), and sums of another "
            "number of parts may round otherwise on another machine",
            cure="OMP_NUM_THREADS=2 python train.py, the same number everywhere",
        )


def _loose(flag: Flag, base: Mapping[str, str]) -> Iterator[Threat]:
    """Yield a flag that must be set before Python starts, and is not."""
    unset = [name for name in flag.env if name not in base]
    if flag.when == "before-start" and (unset or flag.launcher):
        what = f"{', '.join(unset)} is not set" if unset else "memory addresses are another in each process"
        yield Threat(what=what, cure=f"{flag.title}: {flag.in_script}", flag=flag.id)
