"""Which flags can do something in a training, once a run has shown what it imports and where its weights live."""

from collections.abc import Iterable, Mapping, Sequence

from detaudit.recipe.flags import Device, Flag

_NEEDS: dict[str, tuple[str, ...]] = {
    "python": (),
    "system": (),
    "openmp": ("torch", "numpy"),  # TensorFlow has thread pools of its own
    "mkl": ("torch", "numpy"),
    "onednn": ("torch", "tensorflow"),
    "cuda": (),
    "nccl": (),
    "horovod": (),
}
"""One of these must be imported; for all others, the framework itself."""

_XLA = ("jax", "tensorflow")
_OVER_GPUS = ("nccl", "horovod")
_GPU = ("cuda", "gpu", "rocm", "hip")
"""How torch, TensorFlow and JAX begin the name of one: cuda:0, GPU:0."""


def applicable(
    flags: Iterable[Flag], frameworks: Mapping[str, str], devices: Sequence[str]
) -> tuple[tuple[Flag, ...], dict[str, str]]:
    """Return the flags that can do something, and for each of the others why it cannot.

    ``frameworks`` are the versions by name and ``devices`` where the weights live (those of all ranks, one after
    another), both as a run recorded them. Where no device was seen, none is a reason to leave a flag out.
    """
    kinds = _kinds(devices)
    fit, reasons = [], {}
    for flag in flags:
        reason = _reason(flag, frameworks, kinds)
        if reason:
            reasons[flag.id] = reason
        else:
            fit.append(flag)
    return tuple(fit), reasons


def is_gpu(device: str) -> bool:
    """Whether torch, TensorFlow or JAX calls a GPU by this name."""
    return device.lower().rpartition("device:")[2].startswith(_GPU)


def _kinds(devices: Sequence[str]) -> set[Device]:
    gpus = sum(is_gpu(device) for name in devices for device in name.split(","))
    kinds: set[Device] = {"cpu"}
    if gpus or not devices:
        kinds.add("gpu")
    if gpus > 1 or not devices:
        kinds.add("multi-gpu")
    return kinds


def _reason(flag: Flag, frameworks: Mapping[str, str], kinds: set[Device]) -> str:
    if flag.is_advice:
        return "detaudit cannot apply it: it must stand in the script"
    needs = _XLA if "XLA_FLAGS" in flag.env else _NEEDS.get(flag.framework, (flag.framework,))
    if needs and not any(name in frameworks for name in needs):
        return f"{' and '.join(needs)} {'were' if len(needs) > 1 else 'was'} not imported"
    if flag.framework in _OVER_GPUS and "horovod" in frameworks:
        return ""
    if kinds.isdisjoint(flag.devices):
        return "no weights were on a GPU" if "gpu" in flag.devices else "the weights were not on several GPUs"
    version = frameworks.get(flag.framework, "")
    if flag.until and _number(version)[: len(_number(flag.until))] > _number(flag.until):
        return f"{flag.framework} {version} does not need it: {flag.until} was the last that did"
    return too_old(flag, frameworks)


def too_old(flag: Flag, frameworks: Mapping[str, str]) -> str:
    """Return why the version of a flag's framework does not know it, ``""`` where it does."""
    version = frameworks.get(flag.framework, "")
    if flag.since and () < _number(version) < _number(flag.since):
        return f"{flag.framework} {version} does not know it: it came with {flag.since}"
    return ""


def _number(version: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version: 2.13.0+cpu and 2.13.0a0 are 2.13.0; none for what has none."""
    numbers = []
    for part in version.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
