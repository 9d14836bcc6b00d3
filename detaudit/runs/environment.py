"""The machine and what runs imported: what may change bits."""

import contextlib
import os
import platform
import re
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from detaudit import __version__, wire
from detaudit.launch.slots import DEVICES, cpu_quota
from detaudit.model import Change
from detaudit.runs.log import Process

# The environment of an audit: the part of it that affects determinism, and nothing else.


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
    values: dict[str, str] = {}
    for key, _, value in (line.partition(":") for line in text.splitlines()):
        values.setdefault(key.strip().lower(), value.strip())
    return values


def _processor(root: Path) -> tuple[str, set[str]]:
    """Return the model and the features of the first processor; on Arm the model is listed elsewhere or nowhere."""
    cpuinfo = fields(read(root / "proc/cpuinfo"))
    # Virtual machines give processors of several generations one name.
    numbers = ", ".join(f"{key} {cpuinfo[key]}" for key in ("cpu family", "model", "stepping") if key in cpuinfo)
    name = " ".join(filter(None, [cpuinfo.get("model name", ""), f"({numbers})" if numbers else ""]))
    return name, set((cpuinfo.get("flags") or cpuinfo.get("features") or "").split())


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
    facts = {**machine, **environment.get("packages", {}), **environment.get("variables", {})}
    return {name: str(facts[name]) for name in sorted(facts) if facts[name]}


def words(value: object) -> str:
    """Return a part of an environment as text, ``""`` for none."""
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def changes(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Change, ...]:
    """Return what differs between two environments, sorted by name."""
    names = sorted({*a, *b})
    return tuple(Change(name=name, a=a.get(name), b=b.get(name)) for name in names if a.get(name) != b.get(name))


# Describe the NVIDIA GPUs of a machine, and find those that a process may use.


_ANSWERS_WITHIN = 20
"""Seconds. Without persistence mode, the driver first has to wake the GPUs."""

_ASKED = {
    "bus": "pci.bus_id",
    "uuid": "uuid",
    "model": "name",
    "ecc": "ecc.mode.current",
    "mig": "mig.mode.current",
    "max_clock": "clocks.max.sm",
}
"""Facts and the fields of ``nvidia-smi --query-gpu``, which refuses a query with a field that it does not know."""

_LISTED = {"bus": "bus location", "uuid": "gpu uuid", "model": "model", "vbios": "video bios"}
"""Facts and the lines of ``/proc/driver/nvidia/gpus/*/information``."""

_GPU = re.compile(r"GPU \d+: .*\(UUID: (\S+)\)")
_INSTANCE = re.compile(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (\S+)\)")
_INDEX = re.compile(r"0|-?[1-9][0-9]*")
_LONGEST = 100


def describe_gpus(root: Path, path: str) -> list[dict[str, Any]]:
    """Describe each GPU, in the order of their places on the bus, which is nvidia-smi's; leave out what is unknown.

    A GPU has texts: ``bus``, ``uuid``, ``model``, ``vbios``, and if nvidia-smi is on ``path`` and answers, ``ecc`` and
    ``mig`` (Enabled or Disabled) and ``max_clock`` (MHz of its multiprocessors). ``instances`` are the parts that MIG
    has divided it into, each with ``profile`` and ``uuid``. nvidia-smi knows only the GPUs that a container or a job
    may use, the driver's folder may list all.
    """
    listed = list(_listed(root))
    smi = shutil.which("nvidia-smi", path=path)
    if smi is None:
        return listed
    query = f"--query-gpu={','.join(_ASKED.values())}"
    answered = list(answers(_ask([smi, query, "--format=csv,noheader,nounits"])))
    known = {gpu["bus"]: gpu for gpu in listed if "bus" in gpu}
    gpus = [{**known.get(gpu.get("bus"), {}), **gpu} for gpu in answered] or listed
    if any(gpu.get("mig") == "Enabled" for gpu in gpus):
        parts = instances(_ask([smi, "-L"]))
        gpus = [{**gpu, "instances": parts[gpu["uuid"]]} if gpu.get("uuid") in parts else gpu for gpu in gpus]
    return gpus


def _listed(root: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = fields(read(file))
        gpu = _known({fact: lines.get(name, "") for fact, name in _LISTED.items()})
        if gpu:
            yield gpu


def _ask(command: Sequence[str]) -> str:
    """Return what a program prints, ``""`` if it fails or does not end in time.

    A program that waits in the driver of a broken GPU cannot be killed, so a thread waits for it.
    """
    printed: list[str] = []
    waiting = threading.Thread(target=_run, args=(command, printed), daemon=True)
    waiting.start()
    waiting.join(_ANSWERS_WITHIN + 1)
    return "".join(printed)


def _run(command: Sequence[str], printed: list[str]) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS_WITHIN, check=True
        )
        printed.append(done.stdout.decode(errors="replace"))


def answers(text: str) -> Iterator[dict[str, Any]]:
    """Yield the GPUs in the answer of nvidia-smi to a query of the fields, a line each."""
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(_ASKED) and (gpu := _known(dict(zip(_ASKED, values, strict=True)))):
            yield gpu


def _known(gpu: Mapping[str, str]) -> dict[str, Any]:
    """Leave out what the driver does not know: ``[N/A]``, and ``GPU-????????-…`` before anything has used the GPU."""
    facts = {
        fact: value[:_LONGEST]
        for fact, value in gpu.items()
        if value and value != "N/A" and value[0] != "[" and "?" not in value
    }
    if "bus" in facts:
        # nvidia-smi writes the domain with eight digits, the driver with four.
        facts["bus"] = facts["bus"].lower()[-12:]
    return facts


def instances(text: str) -> dict[str, list[dict[str, str]]]:
    """Return the instances of each GPU that MIG divides, by the UUID of the GPU, from ``nvidia-smi -L``."""
    gpu_instances: dict[str, list[dict[str, str]]] = {}
    gpu = ""
    for line in text.splitlines():
        if match := _GPU.match(line):
            gpu = match[1][:_LONGEST]
        elif match := _INSTANCE.match(line):
            gpu_instances.setdefault(gpu, []).append({"profile": match[1][:_LONGEST], "uuid": match[2][:_LONGEST]})
    return gpu_instances


def visible(gpus: Sequence[Mapping[str, Any]], named: str | None) -> list[Mapping[str, Any]] | None:
    """Return the GPUs, or instances of them, that CUDA_VISIBLE_DEVICES names, in its order; all if it is unset.

    None if that is unknown: an index may mean another GPU with another CUDA_DEVICE_ORDER if there are several models,
    or any instance if there are some, and a UUID may be that of a GPU that is not described
    (https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html).
    """
    if named is None:
        return list(gpus)
    ordered = len({gpu.get("model") for gpu in gpus}) == 1 and all(gpu.get("mig") != "Enabled" for gpu in gpus)
    by_index = {str(index): gpu for index, gpu in enumerate(gpus)}
    visible_gpus: list[Mapping[str, Any]] = []
    for name in map(str.strip, named.split(",")) if named else ():
        if not name:
            break
        if not _INDEX.fullmatch(name):
            matching = [one for one in _parts(gpus) if one.get("uuid", "").startswith(name)]
            if len(matching) != 1:
                return None
            visible_gpus += matching
        elif name.startswith("-") or (ordered and name not in by_index):
            break  # CUDA ignores an invalid name and all that follow.
        elif ordered:
            visible_gpus.append(by_index[name])
        else:
            return None
    return visible_gpus


def _parts(gpus: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield what a UUID may name: each GPU, and each instance as a GPU that has only this one."""
    for gpu in gpus:
        yield gpu
        for instance in gpu.get("instances", ()):
            yield {**gpu, "uuid": instance["uuid"], "instances": [instance]}


def label(gpu: Mapping[str, Any]) -> str:
    """Return the model of a GPU with the profiles of its instances, which decide how many multiprocessors each has."""
    profiles = [instance["profile"] for instance in gpu.get("instances", ())]
    return " ".join([gpu.get("model", "GPU"), *(["MIG", *profiles] if profiles else [])])


# Describe the machine that a run had, and which parts of it may change the bits of a training.
#
# A part is relevant if a training whose runs match on each of two machines may differ between the two because of it. If
# in doubt it is: machines that wrongly count as the same give a false "nondeterministic", and machines that wrongly
# count as different lose nothing if each has two runs.
#
# - ``processor``, ``cpu``, ``instructions``: math libraries choose their code by them. oneDNN "will choose the best
# code   based on detected processor features" (https://oneapi-
# src.github.io/oneDNN/v2.5/dev_guide_cpu_dispatcher_control.html).   Intel names for MKL "run-time processor
# dispatching, alignment of data arrays, variation in number of threads"
# (https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-macos/2024-0/obtaining-numerically-reproducible-
# results.html).   OpenBLAS on Arm asks for the part number (driver/others/dynamic_arm64.c). - ``microcode``: an update
# may disable instructions or fix their results (Intel's specification updates). - ``caches``: their sizes decide how
# matrix products are cut into blocks, and so the order of sums: in OpenBLAS the L2   cache
# (https://github.com/OpenMathLib/OpenBLAS/pull/5909), in oneDNN each core's share of a cache
# (get_per_core_cache_size, src/cpu/platform.cpp). - ``cpus``, ``sockets``, ``cores``, ``hardware_threads``, ``quota``:
# how many threads share a sum. OpenMP starts one for   each usable CPU, MKL at most one for each core
# (https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-linux/2026-0/mkl-dynamic.html). joblib
# (https://joblib.readthedocs.io/en/stable/generated/joblib.cpu_count.html) and libraries in Rust   (https://doc.rust-
# lang.org/std/thread/fn.available_parallelism.html) obey the quota, torch does not. - ``libc``: its math functions are
# not correctly rounded, and differ between versions and processors
# (https://www.gnu.org/software/libc/manual/html_node/Errors-in-Math-Functions.html). - ``gpus``, ``mig``: cuBLAS
# promises the same bits on GPUs with "the same architecture and the same number of SMs"
# (https://docs.nvidia.com/cuda/cublas/#results-reproducibility), and an instance has a part of the SMs
# (https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html). - ``ecc``: without it, memory
# errors change values. ``driver``: it compiles PTX for the GPU. - ``stack``, ``aslr``, ``system``: if addresses are not
# random, the stack limit and the kernel decide them. They decide   the order of a set of objects, and the alignment of
# arrays, which changes results of MKL   (https://software.intel.com/content/www/us/en/develop/articles/getting-
# reproducible-results-with-intel-mkl.html). - ``locale``: names are sorted and files are decoded by it.
#
# The rest changes only speed, and with it how often a race shows: ``numa_nodes``, ``memory_nodes``, ``governor``,
# ``boost``, ``thp``, ``seccomp``; of a GPU its clock, VBIOS, place and UUID.


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
_LONGEST_HOST = 40


def identity(root: Path = Path("/")) -> str:
    """Return what identifies this machine until it restarts: its boot ID; ``""`` if the kernel shows none.

    Containers of one machine have the same, whatever their host names. So have copies of a virtual machine that were
    restored from one snapshot: they are one machine to all who read it.
    """
    markup = read(root / "proc/sys/kernel/random/boot_id").strip()
    return markup if _BOOT_ID.fullmatch(markup) else ""


def describe_machine(root: Path = Path("/"), base: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Describe this machine as facts for JSON, readable without root; what it does not show is left out.

    ``host`` is for display only. ``quota`` is in CPUs, ``stack`` the soft limit in bytes or ``unlimited``, ``cores``
    and ``hardware_threads`` are those of all ``sockets``, ``gpu_devices`` as in gpus.describe.
    """
    status = fields(read(root / "proc/self/status"))
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    thp = re.search(r"\[(\w+)\]", read(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    facts = {
        "host": _line(root / "proc/sys/kernel/hostname")[:_LONGEST_HOST],
        **hardware(root),
        **_numbers_of_processor(root),
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
        "gpu_devices": describe_gpus(root, base.get("PATH", "")),
    }
    return {name: value for name, value in facts.items() if value not in ("", None, [])}


def relevant_of_machine(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what may change the bits of a training between two machines, as text, sorted by name.

    ``facts`` are those of describe and of an audit's environment together. ``gpus`` are the models of the GPUs that
    CUDA_VISIBLE_DEVICES names, in place of the variable: two slots of one machine are the same.
    """
    relevant_facts = {name: words(facts.get(name)) for name in RELEVANT} | relevant(facts)
    devices = facts.get("gpu_devices")
    seen = visible(devices, facts.get("variables", {}).get(DEVICES)) if devices else None
    if seen is not None:
        relevant_facts.pop(DEVICES, None)
        relevant_facts["gpus"] = ", ".join(map(label, seen))
        for name in ("ecc", "mig"):
            relevant_facts[name] = ", ".join(gpu[name] for gpu in seen if name in gpu)
    return {name: relevant_facts[name] for name in sorted(relevant_facts) if relevant_facts[name]}


def _readable(text: str) -> str:
    """Return the start of a text without what a terminal or JSON cannot take."""
    return "".join(filter(str.isprintable, text[:_LONGEST])).strip()


def _line(path: Path) -> str:
    """Return the first line of a file, ``""`` if there is none."""
    return _readable(read(path).partition("\n")[0])


def _numbers_of_processor(root: Path) -> dict[str, str]:
    cpuinfo = fields(read(root / "proc/cpuinfo"))
    numbers = ", ".join(f"{name} {_readable(cpuinfo[name])}" for name in _VENDOR if name in cpuinfo)
    return {"processor": numbers, "microcode": _readable(cpuinfo.get("microcode", ""))}


def _topology(root: Path) -> dict[str, int | None]:
    """Count the sockets, the cores and the hardware threads that are online."""
    folders = [folder for folder in (root / _CPUS).glob("cpu[0-9]*/topology") if folder.is_dir()]
    sockets = {_line(folder / "physical_package_id") for folder in folders}
    cores = {_line(folder / "core_cpus_list") or _line(folder / "thread_siblings_list") for folder in folders}
    counts = {"sockets": len(sockets - {""}), "cores": len(cores - {""}), "hardware_threads": len(folders)}
    return {name: count or None for name, count in counts.items()}


def _caches(root: Path) -> list[str]:
    """Return the data caches of the first CPU, such as ``L1d 32K`` or ``L3 32768K for 16 CPUs``, sorted by level."""
    caches = []
    for folder in (root / _CPUS / "cpu0/cache").glob("index[0-9]*"):
        level, size, kind = (_line(folder / name) for name in ("level", "size", "type"))
        if level and size and kind in ("Data", "Unified"):
            shared = _count(_line(folder / "shared_cpu_list"))
            caches.append(f"L{level}{'d' * (kind == 'Data')} {size}" + (f" for {shared} CPUs" if shared > 1 else ""))
    return sorted(caches)


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
    for line in read(root / "proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        names = [name for name in path.split("/") if name]
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
