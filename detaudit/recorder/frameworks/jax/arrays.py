"""Read JAX arrays, and find what a training holds beside its weights."""

from __future__ import annotations

import importlib
import weakref

from ...training import digest
from ...training.digest import FrameworkReader
from ...training.models import ModelStates, OwnTensor
from ...training.weights import is_due
from ..tensorflow.models import LayerStates

# Read JAX's arrays: their digests, sums and values, without restricting what JAX can do with their buffers.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from .tracing import Plan


class PinnedArray:
    """Holds an array until the end. It is replaced by a copy before JAX reuses its buffer."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class JaxReader(FrameworkReader):
    """Reads arrays through NumPy. It keeps no view, which would stop JAX from reusing the buffer."""

    def __init__(self) -> None:
        self._np: Any = importlib.import_module("numpy")  # installed, since JAX needs it
        self._digest = digest.NumpyDigest(self._np)
        self._kinds: dict[Any, str] = {}

    def array(self, value: Any) -> Any:
        """Return a view of an array, which may be pinned, or a copy if it is on a device other than the CPU."""
        value = value.array if isinstance(value, PinnedArray) else value
        devices = value.devices() if hasattr(value, "devices") else ()
        if devices and next(iter(devices)).platform != "cpu" and (len(devices) == 1 or value.is_fully_replicated):
            # Use a new object on the same buffer, since the script's object would keep the copy.
            value = value.addressable_data(0)
        return self._np.asarray(value)

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, digest) of an array."""
        array = self.array(tensor)
        kind = self._kinds.get(array.dtype)
        if kind is None:
            kind = self._kinds[array.dtype] = str(array.dtype)
        return name, kind, array.shape, self._digest.words(array)

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._digest.total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of an array."""
        return int(getattr(tensor.array, "nbytes", 0))

    def device(self, tensor: Any) -> str:
        """Return the devices of an array, such as ``gpu:0``."""
        devices: Any = getattr(tensor.array, "devices", set)()
        return ",".join(sorted({f"{device.platform}:{device.id}" for device in devices})) or "cpu:0"

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array with one element, None for others."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiuV" else None


# Record what a JAX training leaves behind beside its weights: what it carries from step to step, what is alive.
#
# A training call returns it, and the next one takes it. That shows at the second call, so the state of the first step
# is not recorded. The collections that a model of Flax returns outside of a gradient count too, whoever made them. At
# the end, arrays of the type and shape of a weight count if they are alive: averages of weights, and weights that were
# changed after the last step.


class CarriedState:
    """The arrays of floats that came back last, by name."""

    def __init__(self, reader: JaxReader) -> None:
        self._reader = reader
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._held: dict[str, PinnedArray] = {}
        self._latest: dict[Plan, list[Callable[[], Any]]] = {}
        self._steps = 0
        self._new = False

    def enter(self, plan: Plan, inputs: Sequence[Any]) -> None:
        """Handle the inputs of a training call: outputs of earlier ones among them, but for weights, are carried."""
        input_ids = {id(array) for index, array in enumerate(inputs) if index not in plan.weights}
        for earlier, references in self._latest.items():
            if not earlier.carried:
                outputs = enumerate([reference() for reference in references])
                returned = [index for index, array in outputs if id(array) in input_ids and has_floats(array)]
                known = {*earlier.updated, *earlier.passed}
                earlier.carried += [index for index in returned if index not in known]  # other traces share the list

    def leave(self, plan: Plan, outputs: Sequence[Any]) -> None:
        """Handle the outputs of that call."""
        if plan.carried and self._latest:  # at the first call it may be known from another thread, by chance
            self._keep({plan.names[index]: outputs[index] for index in plan.carried})
        self._latest[plan] = [reference_to(array) for array in outputs]

    def collections(self, named: dict[str, Any]) -> None:
        """Handle collections that a model returned, by name."""
        self._keep({name: array for name, array in named.items() if has_floats(array)})

    def at_last(self, arrays: dict[str, PinnedArray]) -> None:
        """Add arrays that count at the end only."""
        self._held.update(arrays)

    def _keep(self, named: dict[str, Any]) -> None:
        self._new = self._new or bool(named)
        self._held.update({name: PinnedArray(array) for name, array in named.items()})

    def pinned_arrays(self) -> list[PinnedArray]:
        """Return what is held until the end. What a later call took and whose buffer it reused came back changed."""
        self._held = {name: pinned for name, pinned in self._held.items() if not _is_deleted(pinned.array)}
        return list(self._held.values())

    def at_step(self) -> str | None:
        """Return the digest of what is carried, None if nothing new is or if it is not digested at this step."""
        self._steps += 1
        if not self._new:
            return None
        self._new = False
        tensors = self.pinned_arrays()
        return digest.of_parts(self._reader.parts(tensors)) if is_due(self._steps, self._reader, tensors) else None

    def end(self) -> None:
        """Do nothing: arrays never change."""

    def names(self) -> dict[int, str]:
        """Return nothing: arrays have no names."""
        return {}

    def at_end(self, of_task: bool = False) -> list[list[Any]]:
        """Return the arrays that came back last; see wire.py."""
        parts = self._reader.parts(self.pinned_arrays())
        return [
            ["", name, True, dtype, [int(size) for size in shape], "%016x" % words]
            for name, (_, dtype, shape, words) in zip(self._held, parts)
        ]


class LiveArrays:
    """The arrays that are alive at the end and have the type and shape of a weight, as ``kinds`` lists them."""

    def __init__(self, jax: Any, reader: JaxReader, kinds: Callable[[], set[Any]]) -> None:
        self._jax, self._reader, self._kinds = jax, reader, kinds

    def at_step(self) -> str | None:
        """Return None: which arrays are alive within a training depends on chance."""
        return None

    def names(self) -> dict[int, str]:
        """Return nothing: arrays have no names."""
        return {}

    def at_end(self, of_task: bool = False) -> list[list[Any]]:
        """Return the arrays, each value once; see wire.py. A worker may keep arrays of earlier tasks."""
        kinds = set() if of_task else self._kinds()
        arrays = [one for one in self._jax.live_arrays() if kind_of(one) in kinds] if kinds else []
        parts = self._reader.parts([one for one in arrays if getattr(one, "is_fully_addressable", True)])
        distinct_arrays = sorted(
            {(dtype, tuple([int(size) for size in shape]), "%016x" % words) for _, dtype, shape, words in parts}
        )
        rest = distinct_arrays[_MOST_LIVE:]
        records: list[list[Any]] = [
            ["Array", "unnamed array of " + dtype, True, dtype, list(shape), words]
            for dtype, shape, words in distinct_arrays[:_MOST_LIVE]
        ]
        if rest:
            records.append(["Array", "unnamed arrays", True, "", [len(rest)], digest.of_bytes(repr(rest).encode())])
        return records

    def end(self) -> None:
        """Do nothing: what is alive is asked at the end."""

    def forget(self) -> None:
        """Do nothing: what is alive is asked at the end."""


_MOST_LIVE = 2000


def kind_of(array: Any) -> Any:
    """Return the type and the shape of an array."""
    return getattr(array, "dtype", None), getattr(array, "shape", ())


def has_numbers(array: Any) -> bool:
    """Return whether this is an array of floats or of integers, as the weights of a quantized model are."""
    return has_floats(array) or str(getattr(getattr(array, "dtype", None), "name", "")).startswith(("int", "uint"))


def _is_deleted(array: Any) -> bool:
    return hasattr(array, "is_deleted") and bool(array.is_deleted())


def has_floats(array: Any) -> bool:
    """Return whether this is an array of floats; counters and the keys of random generators are not."""
    name = str(getattr(getattr(array, "dtype", None), "name", ""))
    return name.startswith(("float", "bfloat", "complex"))


def reference_to(array: Any) -> Callable[[], Any]:
    """Return a function that returns the array, or None once the script dropped it."""
    # JAX returns plain numbers with some debugging options; those cannot be matched.
    return weakref.ref(array) if hasattr(array, "dtype") else lambda: None


# Find what models on JAX hold at the end: layers of Keras, and modules of flax.nnx.


__all__ = ["LayerStates", "NnxStates"]


class NnxStates(ModelStates):
    """The variables of all instances of ``nnx.Module`` that are alive at the end, but for random states."""

    def __init__(self, nnx: Any, reader: FrameworkReader, write: Callable[[Sequence[Any], bool], None]) -> None:
        super().__init__(nnx.Module, reader, write)
        self._nnx = nnx

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a module and the modules in it, by name."""
        inner = [(".".join(map(str, path)), module) for path, module in self._nnx.iter_modules(model)]
        return [("", model), *[(name, module) for name, module in inner if module is not model]]

    def own_tensors(self, part: Any) -> Iterator[OwnTensor]:
        """Yield the variables of a module that are not in its submodules."""
        parameter = self._nnx.Param
        for name, variable in self._variables("", vars(part)):
            array = variable.get_raw_value() if hasattr(variable, "get_raw_value") else variable.raw_value
            if has_numbers(array) and not type(variable).__name__.startswith("Rng"):
                yield OwnTensor(name, not isinstance(variable, parameter), array)

    def _variables(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, self._nnx.Variable):
            yield name, value
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield from self._variables(f"{name}/{key}" if name else str(key), inner)
        elif isinstance(value, (list, tuple)):
            for index, inner in enumerate(value):
                yield from self._variables(f"{name}/{index}", inner)
