"""Select the flags that apply to a training, given what it imports and where its weights are."""

from collections.abc import Iterable, Mapping, Sequence

from detaudit.model import Inapplicable
from detaudit.model.applicability import ByHandOnly, FewerThanTwoGpus, NoGpu, NoLongerNeeded, NotImported, TooOld
from detaudit.recipe.flags import Device, Flag

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
