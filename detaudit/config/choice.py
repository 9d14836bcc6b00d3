"""Which flags can do anything here, which fix a culprit, and which operations are known to race."""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from detaudit import wire
from detaudit.config import yamlfile
from detaudit.config.flags import Device, Flag
from detaudit.errors import ConfigError
from detaudit.model import SEEDING, Cause, Inapplicable, Source, SourceKind
from detaudit.model.sources import ByHandOnly, FewerThanTwoGpus, NoGpu, NoLongerNeeded, NotImported, TooOld

# Select the flags that apply to a training, given what it imports and where its weights are.


_NEEDS: dict[str, tuple[str, ...]] = {
    "python": (),
    "system": (),
    "openmp": ("torch", "numpy"),  # TensorFlow has its own thread pools.
    "mkl": ("torch", "numpy"),
    "onednn": ("torch", "tensorflow"),
    "cuda": (),
    "nccl": (),
    "horovod": (),
}
"""The flags of a framework apply only if one of these is imported; by default the framework itself."""

_XLA = ("jax", "tensorflow")
_OVER_GPUS = ("nccl", "horovod")
_GPU = ("cuda", "gpu", "rocm", "hip")
"""Prefixes of GPU names in torch, TensorFlow and JAX: cuda:0, GPU:0."""


def applicable(
    flags: Iterable[Flag], frameworks: Mapping[str, str], devices: Sequence[str]
) -> tuple[tuple[Flag, ...], dict[str, Inapplicable]]:
    """Return the flags that apply, and for each of the others the reason why it does not.

    ``frameworks`` are the versions by name, and ``devices`` the devices of the weights of all ranks, both as a run
    recorded them. If no device was recorded, no flag is left out because of its devices.
    """
    kinds = _kinds(devices)
    fit: list[Flag] = []
    reasons: dict[str, Inapplicable] = {}
    for flag in flags:
        reason = _reason(flag, frameworks, kinds)
        if reason is not None:
            reasons[flag.id] = reason
        else:
            fit.append(flag)
    return tuple(fit), reasons


def is_gpu(device: str) -> bool:
    """Return whether this is the name of a GPU in torch, TensorFlow or JAX."""
    return device.lower().rpartition("device:")[2].startswith(_GPU)


def _kinds(devices: Sequence[str]) -> set[Device]:
    gpus = sum(is_gpu(device) for name in devices for device in name.split(","))
    kinds: set[Device] = {"cpu"}
    if gpus or not devices:
        kinds.add("gpu")
    if gpus > 1 or not devices:
        kinds.add("multi-gpu")
    return kinds


def _reason(flag: Flag, frameworks: Mapping[str, str], kinds: set[Device]) -> Inapplicable | None:
    if flag.by_hand_only:
        return ByHandOnly()
    needs = _XLA if "XLA_FLAGS" in flag.env else _NEEDS.get(flag.framework, (flag.framework,))
    if needs and not any(name in frameworks for name in needs):
        return NotImported(modules=needs)
    if flag.framework in _OVER_GPUS and "horovod" in frameworks:
        return None
    if kinds.isdisjoint(flag.devices):
        return NoGpu() if "gpu" in flag.devices else FewerThanTwoGpus()
    version = frameworks.get(flag.framework, "")
    if flag.until and _number(version)[: len(_number(flag.until))] > _number(flag.until):
        return NoLongerNeeded(framework=flag.framework, until=flag.until, found=version)
    return too_old(flag, frameworks)


def too_old(flag: Flag, frameworks: Mapping[str, str]) -> TooOld | None:
    """Return why the installed version of its framework is too old for a flag, None if it is not."""
    version = frameworks.get(flag.framework, "")
    if flag.since and () < _number(version) < _number(flag.since):
        return TooOld(framework=flag.framework, since=flag.since, found=version)
    return None


def _number(version: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version: (2, 13, 0) for 2.13.0+cpu and 2.13.0a0, () for nightly."""
    numbers = []
    for part in version.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


# The table of operations that are known to race, configs/ops.yaml, with the fix for each.


OpFramework = Literal["torch", "tensorflow"]
FixedBy = Literal["deterministic-algorithms", "one-thread", "edit"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of operations on a kind of device; configs/ops.yaml explains the fields."""

    id: str
    framework: OpFramework
    device: Literal["cpu", "gpu"]
    ops: tuple[str, ...]
    fixed_by: FixedBy
    source: str
    when: str = ""
    replacement: str = ""
    measured: bool = False


def load_ops(path: Path | None = None) -> tuple[Row, ...]:
    """Read the table. Raises ConfigError for an invalid file, or for an operation listed twice for a device."""
    path = path or yamlfile.configs_dir() / "ops.yaml"
    rows = tuple(yamlfile.load(path, list[Row]))
    seen: set[tuple[str, str, str]] = set()
    for number, row in enumerate(rows):
        if bool(row.replacement) != (row.fixed_by == "edit"):
            at = yamlfile.location(path, f"[{number}].fixed_by")
            raise ConfigError(
                f"{at}: {row.id!r} must have a `replacement` if `fixed_by` is `edit`, and only then",
                "Add or remove `replacement`.",
            )
        for index, op in enumerate(row.ops):
            if (key := (row.framework, row.device, op)) in seen:
                at = yamlfile.location(path, f"[{number}].ops[{index}]")
                raise ConfigError(f"{at}: duplicate operation {op!r} for the {row.device}", "Remove one of them.")
            seen.add(key)
    return rows


def base_name(op: str) -> str:
    """Return the name of an operation in the table.

    It is ``put_`` for ``aten::put_``, ``aten.put_.default`` and ``torch.ops.aten.put_``, and ``ResourceScatterSub`` for
    ``sgd/ResourceScatterSub_1``.
    """
    of_torch = re.search(r"\baten(?:::|\.)(\w+)", op)
    return of_torch[1] if of_torch else re.sub(r"_\d+$", "", op.rpartition("/")[2])


def known(op: str, framework: str, device: str) -> Row | None:
    """Return the family of an operation that may race on a device such as ``cuda:0``, None if there is none."""
    return _table().get((framework, "gpu" if is_gpu(device) else "cpu", base_name(op)))


def names(frameworks: Iterable[str], devices: Iterable[str]) -> tuple[str, ...]:
    """Return the operations that may race in these frameworks, on devices such as ``cuda:0``, by default the CPU."""
    kinds = {"gpu" if is_gpu(device) else "cpu" for one in devices for device in one.split(",")} or {"cpu"}
    known_by = set(frameworks)
    return tuple(op for framework, device, op in _table() if framework in known_by and device in kinds)


@functools.cache
def _table() -> dict[tuple[str, str, str], Row]:
    return {(row.framework, row.device, op): row for row in load_ops() for op in row.ops}


# Select the flags that fix a culprit, best first.


_MOST = 3

_SWITCHES: dict[tuple[str, FixedBy], tuple[str, ...]] = {
    ("torch", "deterministic-algorithms"): ("torch-deterministic-algorithms",),
    ("torch", "one-thread"): ("torch-one-thread", "openmp-one-thread"),
    ("tensorflow", "deterministic-algorithms"): ("tensorflow-op-determinism",),
    ("tensorflow", "one-thread"): ("tensorflow-one-thread",),
}
"""The flags that the table of operations means."""

_IN_KERNELS = (Cause.KERNEL, Cause.THREADS)
"""Causes inside operations: there a flag that matches certain lines too is no less suitable."""


_BEYOND_FLAGS = frozenset({SourceKind.COMPLETION_ORDER, SourceKind.SHARED_GENERATOR, SourceKind.ENTROPY})
"""What no flag changes that does not match it: it makes nobody wait, and no random number of the system another."""


def fix_flags(
    catalogue: Iterable[Flag],
    cause: Cause,
    frameworks: Mapping[str, str],
    devices: Sequence[str],
    source: Source | None = None,
    op: str = "",
) -> tuple[Flag, ...]:
    """Return at most three flags that fix a culprit, best first; none if only an edit does.

    ``source`` is what a line of the user's code does: flags that match it are returned alone, with what they require
    for that. ``op`` is the operation whose results differ: if it is known to race, the table of operations says what
    fixes it. Otherwise the cause decides. ``frameworks`` and ``devices`` are as a run recorded them.
    """
    if source is not None and source.kind in (SEEDING if cause is Cause.SEED else {SourceKind.SYSTEM_VALUE}):
        return ()
    fit, _ = applicable((flag for flag in catalogue if flag.action in ("standard", "fallback")), frameworks, devices)
    by_op = _of_op(op, frameworks, devices) if op else None
    if by_op is not None:
        return tuple(flag for name in by_op for flag in fit if flag.id == name)[:_MOST]
    matching = [flag for flag in fit if source is not None and flag.matches.matches(source)]
    if matching:
        needed = {name for flag in matching for name in flag.requires}
        return _distinct(_sorted(matching, cause), (f for f in fit if f.id in needed and cause in f.causes))
    if source is not None and source.kind in _BEYOND_FLAGS:
        return ()
    framework = _framework(op, frameworks) if op else ""
    suitable = _sorted((flag for flag in fit if _may_fix(flag, cause, source, framework)), cause)
    places = {name: index for flag in suitable[:1] for index, name in enumerate(flag.alternatives)}
    nearest = sorted((flag for flag in suitable if flag.id in places), key=lambda flag: places[flag.id])
    standard = [flag for flag in suitable if flag.action == "standard"]
    return _distinct(suitable[:1], (*standard, *nearest, *suitable))


def _of_op(op: str, frameworks: Mapping[str, str], devices: Sequence[str]) -> tuple[str, ...] | None:
    """Return the ids of what fixes an operation on the recorded devices, None for one that is not known to race."""
    framework = _framework(op, frameworks)
    places = sorted({"cuda" if is_gpu(one) else "cpu" for name in devices for one in name.split(",")}) or [
        "cpu",
        "cuda",
    ]
    rows = [row for device in reversed(places) if (row := known(op, framework, device)) is not None]
    if not rows:
        return None
    switches = (name for row in rows for name in _SWITCHES.get((framework, row.fixed_by), ()))
    return tuple(dict.fromkeys(switches))


def _framework(op: str, frameworks: Mapping[str, str]) -> str:
    """Return the framework of an operation; torch's names have ``aten`` in them."""
    if "aten" in op or "tensorflow" not in frameworks:
        return "torch"
    return "tensorflow"


def _may_fix(flag: Flag, cause: Cause, source: Source | None, framework: str) -> bool:
    if cause not in flag.causes or (framework and flag.framework in wire.FRAMEWORKS and flag.framework != framework):
        return False
    # A flag that matches lines of another kind does nothing for this one.
    return not (source is not None and flag.matches) or cause in _IN_KERNELS


def _sorted(flags: Iterable[Flag], cause: Cause) -> list[Flag]:
    def priority(flag: Flag) -> tuple[bool, int, bool]:
        rank = flag.causes.index(cause) if cause in flag.causes else len(flag.causes)
        return flag.action == "fallback", rank, flag.framework not in wire.FRAMEWORKS

    return sorted(flags, key=priority)


def _distinct(first: Iterable[Flag], rest: Iterable[Flag]) -> tuple[Flag, ...]:
    return tuple({flag.id: flag for flag in (*first, *rest)}.values())[:_MOST]


# Find out which devices this machine may have, before any run.


_ONE_GPU = {"nvidiactl", "kfd", "dxg"}
"""Device files of the drivers of NVIDIA and AMD, and of WSL for either."""


def devices(names: Iterable[str] | None = None) -> set[Device]:
    """Return the kinds of devices that may be here, by the ``names`` of the files in /dev.

    A driver that does not number its devices may have several.
    """
    file_names = set(names) if names is not None else {path.name for path in Path("/dev").glob("*")}
    numbered = {name for name in file_names if name.startswith("nvidia") and name.removeprefix("nvidia").isdigit()}
    kinds: set[Device] = {"cpu"}
    if numbered or file_names & _ONE_GPU:
        kinds.add("gpu")
    if len(numbered) > 1 or (file_names & _ONE_GPU and not numbered):
        kinds.add("multi-gpu")
    return kinds
