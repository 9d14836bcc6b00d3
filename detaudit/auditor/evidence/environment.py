"""The environment of an audit: the part of it that affects determinism, and nothing else."""

import contextlib
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from detaudit import __version__, wire
from detaudit.auditor.evidence.event_logs import Process
from detaudit.model import Change

_INSTRUCTIONS = (
    *("sse4_2", "avx", "avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_bf16", "amx_int8", "asimd", "sve", "sve2", "bf16", "i8mm"),
)
"""Those that math libraries choose their kernels by, as Linux spells them."""

_RELEVANT = ("python", "machine", "cpu", "instructions", "cpus", "libc", "driver", "cuda", "cudnn", "gpus")
_READ_INSIDE = {"torch.version.cuda": "cuda", "torch.backends.cudnn.version()": "cudnn"}


def describe(base: Mapping[str, str] = os.environ, root: Path = Path("/")) -> dict[str, Any]:
    """Describe this machine and the variables set before any recipe; ``cpus`` counts those that a run may use."""
    return {
        "detaudit": __version__,
        **hardware(root),
        "variables": {name: base[name] for name in sorted(base) if wire.affects_determinism(name)},
        "python": None,
        "frameworks": {},
        "packages": {},
    }


def hardware(root: Path = Path("/")) -> dict[str, Any]:
    """Describe what the kernels of math libraries are chosen by; empty what this machine does not show."""
    system = os.uname()
    model, flags = _processor(root)
    return {
        "system": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpu": model,
        "instructions": [name for name in _INSTRUCTIONS if name in flags],
        "cpus": len(os.sched_getaffinity(0)),
        "libc": " ".join(platform.libc_ver()).strip(),
        "gpus": _gpus(root),
        "driver": read(root / "sys/module/nvidia/version").strip(),
    }


def read(path: Path) -> str:
    """Return the text of a file, ``""`` if it cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace")
    return ""


def fields(text: str) -> dict[str, str]:
    """Return what lines of ``key: value`` say, by lower-case key; the first one of each counts."""
    found: dict[str, str] = {}
    for key, _, value in (line.partition(":") for line in text.splitlines()):
        found.setdefault(key.strip().lower(), value.strip())
    return found


def _processor(root: Path) -> tuple[str, set[str]]:
    """Return the model and the features of the first processor; on Arm the model is listed elsewhere or nowhere."""
    found = fields(read(root / "proc/cpuinfo"))
    # Virtual machines give processors of several generations one name.
    numbers = ", ".join(f"{key} {found[key]}" for key in ("cpu family", "model", "stepping") if key in found)
    name = " ".join(filter(None, [found.get("model name", ""), f"({numbers})" if numbers else ""]))
    return name, set((found.get("flags") or found.get("features") or "").split())


def has_gpu(root: Path = Path("/")) -> bool:
    """Return whether this machine may have a GPU that a training could use: from NVIDIA, from AMD, or inside WSL."""
    return bool(_gpus(root)) or any((root / "dev" / name).exists() for name in ("nvidiactl", "kfd", "dxg"))


def _gpus(root: Path) -> list[str]:
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    models = [line.partition(":")[2].strip() for f in files for line in read(f).splitlines() if "Model:" in line]
    return sorted(models)


def add_processes(environment: dict[str, Any], processes: Iterable[Process]) -> None:
    """Add the versions that the runs reported."""
    for process in processes:
        environment["python"] = environment["python"] or process.hello.python
        for framework in process.frameworks:
            environment["frameworks"][framework.name] = framework.version
        environment["packages"].update(process.versions)
        values = process.settings.values if process.settings else {}
        environment.update({key: values[name] for name, key in _READ_INSIDE.items() if values.get(name) is not None})


def relevant(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of an audit's environment that may change the bits of a training, as text, sorted by name.

    Frameworks promise determinism only if all of these are the same
    (https://docs.pytorch.org/docs/stable/notes/randomness.html). Variables that the script sets are left out.
    """
    machine = {name: words(environment.get(name)) for name in _RELEVANT}
    found = {**machine, **environment.get("packages", {}), **environment.get("variables", {})}
    return {name: str(found[name]) for name in sorted(found) if found[name]}


def words(value: object) -> str:
    """Return a part of an environment as text, ``""`` for none."""
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def changes(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Change, ...]:
    """Return what differs between two environments, sorted by name."""
    names = sorted({*a, *b})
    return tuple(Change(name=name, a=a.get(name), b=b.get(name)) for name in names if a.get(name) != b.get(name))
