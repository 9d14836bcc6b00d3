"""What an audit ran on: the part of the environment that bears on determinism, and nothing else."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from detaudit import __version__, wire
from detaudit.auditor.traces import Process


def describe(base: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return this machine and the variables that were set before any recipe."""
    system = os.uname()
    return {
        "detaudit": __version__,
        "system": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpus": os.cpu_count(),
        "variables": {name: base[name] for name in sorted(base) if wire.bears_on_determinism(name)},
        "python": None,
        "frameworks": {},
    }


def add_processes(environment: dict[str, Any], processes: Iterable[Process]) -> None:
    """Add the versions that the runs themselves reported."""
    for process in processes:
        environment["python"] = environment["python"] or process.hello.python
        for framework in process.frameworks:
            environment["frameworks"][framework.name] = framework.version
