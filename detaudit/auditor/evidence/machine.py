"""Describe the machine that a run had, and which parts of it may change the bits of a training.

A part is relevant if a training whose runs match on each of two machines may differ between the two because of it. If
in doubt it is: machines that wrongly count as the same give a false "nondeterministic", and machines that wrongly count
as different lose nothing if each has two runs.

- ``processor``, ``cpu``, ``instructions``: math libraries choose their code by them. oneDNN "will choose the best code
  based on detected processor features" (https://oneapi-src.github.io/oneDNN/v2.5/dev_guide_cpu_dispatcher_control.html).
  Intel names for MKL "run-time processor dispatching, alignment of data arrays, variation in number of threads"
  (https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-macos/2024-0/obtaining-numerically-reproducible-results.html).
  OpenBLAS on Arm asks for the part number (driver/others/dynamic_arm64.c).
- ``microcode``: an update may disable instructions or fix their results (Intel's specification updates).
- ``caches``: their sizes decide how matrix products are cut into blocks, and so the order of sums: in OpenBLAS the L2
  cache (https://github.com/OpenMathLib/OpenBLAS/pull/5909), in oneDNN each core's share of a cache
  (get_per_core_cache_size, src/cpu/platform.cpp).
- ``cpus``, ``sockets``, ``cores``, ``hardware_threads``, ``quota``: how many threads share a sum. OpenMP starts one for
  each usable CPU, MKL at most one for each core
  (https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-linux/2026-0/mkl-dynamic.html). joblib
  (https://joblib.readthedocs.io/en/stable/generated/joblib.cpu_count.html) and libraries in Rust
  (https://doc.rust-lang.org/std/thread/fn.available_parallelism.html) obey the quota, torch does not.
- ``libc``: its math functions are not correctly rounded, and differ between versions and processors
  (https://www.gnu.org/software/libc/manual/html_node/Errors-in-Math-Functions.html).
- ``gpus``, ``mig``: cuBLAS promises the same bits on GPUs with "the same architecture and the same number of SMs"
  (https://docs.nvidia.com/cuda/cublas/#results-reproducibility), and an instance has a part of the SMs
  (https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html).
- ``ecc``: without it, memory errors change values. ``driver``: it compiles PTX for the GPU.
- ``stack``, ``aslr``, ``system``: if addresses are not random, the stack limit and the kernel decide them. They decide
  the order of a set of objects, and the alignment of arrays, which changes results of MKL
  (https://software.intel.com/content/www/us/en/develop/articles/getting-reproducible-results-with-intel-mkl.html).
- ``locale``: names are sorted and files are decoded by it.

The rest changes only speed, and with it how often a race shows: ``numa_nodes``, ``memory_nodes``, ``governor``,
``boost``, ``thp``, ``seccomp``; of a GPU its clock, VBIOS, place and UUID.
"""

import os
import re
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from detaudit.auditor.evidence import environment, gpus
from detaudit.launch.slots import DEVICES, cpu_quota

RELEVANT = (
    *("processor", "microcode", "caches", "sockets", "cores", "hardware_threads", "quota"),
    *("stack", "aslr", "system", "locale"),
)
"""Facts that may change bits between machines, besides those of environment.relevant and those of GPUs."""

_BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VENDOR = ("vendor_id", "cpu implementer", "cpu architecture", "cpu variant", "cpu part", "cpu revision")
"""What x86 and Arm say of a processor besides its model, which Arm does not name."""

_COLLATION = ("LC_ALL", "LC_COLLATE", "LANG")
"""Variables that decide the order of names, the strongest first."""

_CPUS = "sys/devices/system/cpu"
_LONGEST = 100
_LONGEST_HOST = 40


def identity(root: Path = Path("/")) -> str:
    """Return what identifies this machine until it restarts: its boot ID; ``""`` if the kernel shows none.

    Containers of one machine have the same, whatever their host names. So have copies of a virtual machine that were
    restored from one snapshot: they are one machine to all who read it.
    """
    found = environment.read(root / "proc/sys/kernel/random/boot_id").strip()
    return found if _BOOT_ID.fullmatch(found) else ""


def describe(root: Path = Path("/"), base: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Describe this machine as facts for JSON, readable without root; what it does not show is left out.

    ``host`` is for display only. ``quota`` is in CPUs, ``stack`` the soft limit in bytes or ``unlimited``, ``cores``
    and ``hardware_threads`` are those of all ``sockets``, ``gpu_devices`` as in gpus.describe.
    """
    status = environment.fields(environment.read(root / "proc/self/status"))
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    thp = re.search(r"\[(\w+)\]", environment.read(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    found = {
        "host": _line(root / "proc/sys/kernel/hostname")[:_LONGEST_HOST],
        **environment.hardware(root),
        **_processor(root),
        **_topology(root),
        "caches": _caches(root),
        "quota": _quota(root),
        "numa_nodes": _line(root / "sys/devices/system/node/online"),
        "memory_nodes": _readable(status.get("mems_allowed_list", "")),
        "governor": _line(root / _CPUS / "cpu0/cpufreq/scaling_governor"),
        "boost": _boost(root),
        "stack": "unlimited" if stack == resource.RLIM_INFINITY else stack,
        "thp": _readable(thp[1]) if thp else "",
        "aslr": _line(root / "proc/sys/kernel/randomize_va_space"),
        "seccomp": _readable(status.get("seccomp", "")),
        "locale": _readable(next((base[name] for name in _COLLATION if base.get(name)), "")),
        "gpu_devices": gpus.describe(root, base.get("PATH", "")),
    }
    return {name: value for name, value in found.items() if value not in ("", None, [])}


def relevant(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what may change the bits of a training between two machines, as text, sorted by name.

    ``facts`` are those of describe and of an audit's environment together. ``gpus`` are the models of the GPUs that
    CUDA_VISIBLE_DEVICES names, in place of the variable: two slots of one machine are the same.
    """
    found = {name: environment.words(facts.get(name)) for name in RELEVANT} | environment.relevant(facts)
    devices = facts.get("gpu_devices")
    seen = gpus.visible(devices, facts.get("variables", {}).get(DEVICES)) if devices else None
    if seen is not None:
        found.pop(DEVICES, None)
        found["gpus"] = ", ".join(map(gpus.label, seen))
        for name in ("ecc", "mig"):
            found[name] = ", ".join(gpu[name] for gpu in seen if name in gpu)
    return {name: found[name] for name in sorted(found) if found[name]}


def _readable(text: str) -> str:
    """Return the start of a text without what a terminal or JSON cannot take."""
    return "".join(filter(str.isprintable, text[:_LONGEST])).strip()


def _line(path: Path) -> str:
    """Return the first line of a file, ``""`` if there is none."""
    return _readable(environment.read(path).partition("\n")[0])


def _processor(root: Path) -> dict[str, str]:
    found = environment.fields(environment.read(root / "proc/cpuinfo"))
    numbers = ", ".join(f"{name} {_readable(found[name])}" for name in _VENDOR if name in found)
    return {"processor": numbers, "microcode": _readable(found.get("microcode", ""))}


def _topology(root: Path) -> dict[str, int | None]:
    """Count the sockets, the cores and the hardware threads that are online."""
    places = [place for place in (root / _CPUS).glob("cpu[0-9]*/topology") if place.is_dir()]
    sockets = {_line(place / "physical_package_id") for place in places}
    cores = {_line(place / "core_cpus_list") or _line(place / "thread_siblings_list") for place in places}
    counts = {"sockets": len(sockets - {""}), "cores": len(cores - {""}), "hardware_threads": len(places)}
    return {name: count or None for name, count in counts.items()}


def _caches(root: Path) -> list[str]:
    """Return the data caches of the first CPU, such as ``L1d 32K`` or ``L3 32768K for 16 CPUs``, sorted by level."""
    found = []
    for place in (root / _CPUS / "cpu0/cache").glob("index[0-9]*"):
        level, size, kind = (_line(place / name) for name in ("level", "size", "type"))
        if level and size and kind in ("Data", "Unified"):
            shared = _count(_line(place / "shared_cpu_list"))
            found.append(f"L{level}{'d' * (kind == 'Data')} {size}" + (f" for {shared} CPUs" if shared > 1 else ""))
    return sorted(found)


def _count(cpus: str) -> int:
    """Return how many CPUs are in a list such as ``0-3,8``, 0 if it is none."""
    ranges = re.findall(r"([0-9]{1,9})(?:-([0-9]{1,9}))?(?:,|$)", cpus)
    return sum(max(0, int(last or first) - int(first) + 1) for first, last in ranges)


def _quota(root: Path) -> float | None:
    """Return the lowest quota of the process's group and those around it, in CPUs, None if there is none."""
    quotas = [quota for group in _groups(root) if (quota := cpu_quota(group)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the mount of the control groups, then the groups of this process below it, from the outside in.

    In a container they are often not there: its own group is the mount.
    """
    mount = root / "sys/fs/cgroup"
    yield mount
    for line in environment.read(root / "proc/self/cgroup").splitlines():
        controllers, _, place = line.partition(":")[2].partition(":")
        names = [name for name in place.split("/") if name]
        if ".." in names or (controllers and "cpu" not in controllers.split(",")):
            continue
        group = mount / "cpu" if controllers else mount
        for name in names:
            group /= name
            yield group


def _boost(root: Path) -> bool | None:
    """Return whether CPUs may go above their base frequency, None if that is unknown."""
    boost, no_turbo = _line(root / _CPUS / "cpufreq/boost"), _line(root / _CPUS / "intel_pstate/no_turbo")
    return {"1": True, "0": False}.get(boost, {"1": False, "0": True}.get(no_turbo))
