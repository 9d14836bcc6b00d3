"""Describe the NVIDIA GPUs of a machine, and find those that a process may use."""

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from detaudit.auditor.evidence import environment

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


def describe(root: Path, path: str) -> list[dict[str, Any]]:
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
    found = [{**known.get(gpu.get("bus"), {}), **gpu} for gpu in answered] or listed
    if any(gpu.get("mig") == "Enabled" for gpu in found):
        parts = instances(_ask([smi, "-L"]))
        found = [{**gpu, "instances": parts[gpu["uuid"]]} if gpu.get("uuid") in parts else gpu for gpu in found]
    return found


def _listed(root: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = environment.fields(environment.read(file))
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
    found = {
        fact: value[:_LONGEST]
        for fact, value in gpu.items()
        if value and value != "N/A" and value[0] != "[" and "?" not in value
    }
    if "bus" in found:
        # nvidia-smi writes the domain with eight digits, the driver with four.
        found["bus"] = found["bus"].lower()[-12:]
    return found


def instances(text: str) -> dict[str, list[dict[str, str]]]:
    """Return the instances of each GPU that MIG divides, by the UUID of the GPU, from ``nvidia-smi -L``."""
    found: dict[str, list[dict[str, str]]] = {}
    gpu = ""
    for line in text.splitlines():
        if match := _GPU.match(line):
            gpu = match[1][:_LONGEST]
        elif match := _INSTANCE.match(line):
            found.setdefault(gpu, []).append({"profile": match[1][:_LONGEST], "uuid": match[2][:_LONGEST]})
    return found


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
    found: list[Mapping[str, Any]] = []
    for name in map(str.strip, named.split(",")) if named else ():
        if not name:
            break
        if not _INDEX.fullmatch(name):
            matching = [one for one in _parts(gpus) if one.get("uuid", "").startswith(name)]
            if len(matching) != 1:
                return None
            found += matching
        elif name.startswith("-") or (ordered and name not in by_index):
            break  # CUDA ignores an invalid name and all that follow.
        elif ordered:
            found.append(by_index[name])
        else:
            return None
    return found


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
