"""Stored results: benchmarks/results/NAME.json, each with the commit and the machine that it was measured on."""

import datetime
import importlib.metadata
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from benchmarks.catalogue import FOLDER, MEASUREMENTS, Measurement
from benchmarks.rows import Machine, Result, Scale
from detaudit import __version__
from detaudit.runs import environment

RESULTS = FOLDER / "results"
PACKAGES = ("torch", "tensorflow-cpu", "tensorflow", "keras", "numpy")
MEASURED = ("detaudit", "configs", "benchmarks/*.py")
LOOK_S = 1


def machine() -> Machine:
    """Describe this machine."""
    found = environment.describe()
    installed = {
        one.metadata["Name"].lower().replace("_", "-"): one.version for one in importlib.metadata.distributions()
    }
    return Machine(
        processor=found["cpu"],
        cores=found["cpus"],
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        gpus=tuple(map(str, found["gpus"])),
        system=" ".join([platform.system(), *re.findall(r"^\d+\.\d+", platform.release())]),
        python=platform.python_version(),
        packages={name: installed[name] for name in PACKAGES if name in installed},
    )


def commit() -> str:
    """Return the commit of what is measured, and whether it was changed since; of an sdist its version."""
    if not (FOLDER.parent / ".git").exists():
        return __version__

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=FOLDER.parent, check=True, capture_output=True, text=True).stdout

    changed = git("status", "--porcelain", "--", *MEASURED)
    return git("rev-parse", "--short=7", "HEAD").strip() + (" with changes" if changed else "")


def measured(measurement: Measurement, scale: Scale) -> Result:
    """Carry out a measurement."""
    where, busy = commit(), psutil.cpu_percent(interval=LOOK_S) / 100
    started = time.monotonic()
    rows = tuple(measurement.measure(scale))
    return Result(
        commit=where,
        date=datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        took_s=round(time.monotonic() - started, 1),
        busy=busy,
        machine=machine(),
        rows=rows,
    )


def store(name: str, result: Result, folder: Path = RESULTS) -> None:
    """Keep a result in place of an earlier one."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def stored(folder: Path = RESULTS) -> Mapping[str, Result]:
    """Return all results that were kept, by the name of their measurement."""
    paths = {one.name: folder / f"{one.name}.json" for one in MEASUREMENTS}
    return {name: msgspec.json.decode(path.read_bytes(), type=Result) for name, path in paths.items() if path.exists()}
