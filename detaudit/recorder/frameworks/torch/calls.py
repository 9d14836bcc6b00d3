"""Kinds of operations of torch, and calls that are saved to be repeated elsewhere."""

from __future__ import annotations

import json
import sys
from hashlib import blake2b

from .memory import Memory, TorchPlaces, tensors_in

# Save a call of an operation of torch, so that it can be repeated in another process: its arguments and settings.
#
# A tensor is saved as a view of its storage, so strides, offsets and memory that arguments share stay as they are.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    from ...process.stream import OpStream


BUILT_IN = ("aten", "prims", "prim", "quantized", "mkldnn", "mkldnn_prepacked", "_c10d_functional", "inductor")
"""Namespaces of operations that come with torch."""

_NAMED = ("dtype", "device", "layout", "memory_format")
"""Types of arguments, all in ``torch``, that are saved by their names."""


class CannotSaveError(Exception):
    """The call cannot be saved, for the reason in its first argument: an obstacle, see recorder/replay."""


def save(torch: Any, stream: OpStream, kind: OpKind, args: Any, kwargs: Any, *, backward: bool) -> None:
    """Write a line ``call`` and the memory of its tensors, or why it cannot be saved."""
    try:
        if kind.random:
            raise CannotSaveError("random", "")
        arguments = _SavedArguments(torch, stream)
        fields = {"args": arguments.encoded(list(args)), "kwargs": arguments.encoded(kwargs)}
        fields.update(modules=_modules(torch, kind.func), libraries=sorted(map(str, torch.ops.loaded_libraries)))
    except CannotSaveError as error:
        stream.write("call", framework="torch", op=kind.name, obstacle=error.args[0], detail=error.args[1])
        return
    stream.write(
        "call", framework="torch", op=kind.name, backward=backward, storages=arguments.storages,
        settings=settings(torch), python=sys.executable, path=list(sys.path), **fields,
    )  # fmt: skip


class Arguments:
    """Encodes arguments as JSON; a subclass numbers the memory of tensors."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._named = tuple(getattr(torch, name) for name in _NAMED)

    def encoded(self, value: Any) -> Any:
        """Return a value: plain ones as they are, others as an object with one key, their kind."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, self._torch.Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, self._named):
            return {type(value).__name__: str(value).rpartition("torch.")[2]}
        if isinstance(value, (list, tuple)):
            return [self.encoded(one) for one in value]
        if isinstance(value, dict):
            return {"dict": [[name, self.encoded(one)] for name, one in value.items()]}
        raise CannotSaveError("argument", type(value).__name__)

    def _tensor(self, tensor: Any) -> dict[str, Any]:
        torch = self._torch
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            raise CannotSaveError("argument", f"{type(tensor).__name__} ({tensor.layout})")
        if tensor.is_quantized:
            raise CannotSaveError("argument", "a quantized tensor")
        bits = [name for name in ("conj", "neg") if getattr(tensor, f"is_{name}")()]
        return {
            "storage": self.storage(tensor),
            "dtype": str(tensor.dtype).partition(".")[2],
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "offset": tensor.storage_offset(),
            "bits": bits,
        }

    def storage(self, tensor: Any) -> int:
        """Return the number of the memory of a tensor."""
        raise NotImplementedError


class _SavedArguments(Arguments):
    """Saves all memory of the tensors. ``storages`` lists the files and the devices."""

    def __init__(self, torch: Any, stream: OpStream) -> None:
        super().__init__(torch)
        self.storages: list[dict[str, Any]] = []
        self._stream = stream
        self._numbers: dict[int, int] = {}
        self._left = int(stream.request["call"])

    def storage(self, tensor: Any) -> int:
        """Save the memory of a tensor, and return its number."""
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage._cdata)
        if number is None:
            number = self._numbers[storage._cdata] = len(self.storages)
            size = storage.nbytes()
            self._left -= size
            if self._left < 0:
                raise CannotSaveError("too-large", "")
            host = storage.cpu()
            data = sys.modules["ctypes"].string_at(host.data_ptr(), size) if size else b""
            file = self._stream.save("storage%d" % number, data)
            kind = str(tensor.dtype).partition(".")[2]
            self.storages.append({"file": file, "bytes": size, "device": str(storage.device), "dtype": kind})
        return number


def settings(torch: Any) -> dict[str, Any]:
    """Return the settings that operations are repeated with."""
    return {
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "benchmark": torch.backends.cudnn.benchmark,
        "cudnn": torch.backends.cudnn.deterministic,
        "mkldnn": torch.backends.mkldnn.enabled,
    }


def _modules(torch: Any, func: Any) -> list[str]:
    """Return the modules that define an operation, which a process has to import to have it, [] for torch's own."""
    namespace, _, name = func._schema.name.partition("::")
    if namespace in BUILT_IN:
        return []
    modules = list(dict.fromkeys(_definers(torch, namespace, name)))
    if not modules or "__main__" in modules:
        raise CannotSaveError("library", namespace)
    return modules


def _definers(torch: Any, namespace: str, name: str) -> Iterator[str]:
    custom = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {}).get(f"{namespace}::{name}")
    if custom is not None:
        yield custom._init_fn.__module__
        return
    for module, imported_module in list(sys.modules.items()):
        attributes = list(vars(imported_module).values()) if hasattr(imported_module, "__dict__") else []
        if any(type(one) is torch.library.Library and one.ns == namespace for one in attributes):
            yield module
    if namespace in sys.modules:
        yield namespace


# Classify the operations of torch by their schemas: what they write, whether they draw, or only return views.


_OVERWRITES = {
    f"aten::{name}_"
    for name in (
        "uniform", "normal", "fill", "zero", "copy", "random", "bernoulli", "exponential", "geometric", "cauchy",
        "log_normal", "set", "resize", "_foreach_copy", "_foreach_zero",
    )
}  # fmt: skip
"""These only write to their first argument, whose previous contents are not an input."""

ENTERS = ("aten::lift_fresh", "aten::set_")
"""Through these, memory that torch did not allocate becomes a tensor."""


class OpKind:
    """The properties of an operation, from its schema. If ``only`` is given, all other operations are passed over."""

    def __init__(self, torch: Any, func: Any, only: frozenset[str] | None = None) -> None:
        schema = func._schema
        name: str = schema.name
        self.func, self.name = func, str(func)
        written = [argument for argument in schema.arguments if _is_written(argument)]
        self.written = {argument.name for argument in written}
        self.places = {index for index, argument in enumerate(schema.arguments) if _is_written(argument)}
        self.only_written = {argument.name for argument in written if argument.is_out}
        self.overwrites = name in _OVERWRITES
        self.collective = name.startswith("c10d::")
        if self.collective:  # writes to its first argument, which its schema does not say
            self.places = {0}
            self.overwrites = schema.arguments[0].name.startswith("output") or name.startswith("c10d::recv")
        returns = schema.returns
        aliases = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        views = (aliases and not written) or name in ("aten::_unsafe_view", "aten::_reshape_alias")
        self.enters = name.startswith(ENTERS)
        self.passed_over = (views and not self.enters) or name.startswith(("profiler::", "prim::"))
        self.passed_over |= only is not None and name.removeprefix("aten::") not in only
        self.uninitialized = "empty" in name or name == "aten::resize_"
        self.random = torch.Tag.nondeterministic_seeded in func.tags


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


# Note the operations of torch that one step calls, with what is needed to repeat each of them in another process.
#
# Calls with the same operation, arguments, shapes and integers are noted once, and counted.


_COLLECTIVES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")
_ALIGNED = 64
"""Bytes: memory is saved from a multiple of them on, so that tensors are aligned as in the script."""


class StepWatcher:
    """Notes the calls of one step, and writes them once it is over."""

    def __init__(self, torch: Any, stream: OpStream) -> None:
        self._torch, self._stream = torch, stream
        self._memory, self.places = Memory(torch), TorchPlaces(torch)
        self._kinds: dict[Any, OpKind] = {}
        self._node: Callable[[], Any] = torch._C._current_autograd_node
        self._wanted = int(stream.request["last"])
        self._forget()
        stream.when_forked(self._forget)
        stream.when_open(self._opened)
        stream.when_over(lambda: self._write(complete=False), self._forget)

    def _forget(self) -> None:
        self._memory.forget()
        self._left = int(self._stream.request["bytes"])
        self._calls: dict[str, dict[str, Any]] = {}
        self._files: dict[str, str] = {}
        self._left_out: dict[tuple[str, str], int] = {}
        self._was_open = False

    def _opened(self, now: bool) -> None:
        if self._was_open and not now:
            self._write(complete=True)
        self._was_open = now

    def run(self, func: Any, args: Any, kwargs: Any, frame: FrameType | None) -> Any:
        """Note a call, and make it."""
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = OpKind(self._torch, func)
        forward = self._torch.is_grad_enabled() and self._node() is None
        if self._stream.step(not forward) == self._wanted:
            try:
                with self._memory.reader.undisturbed(), self._stream.lock:
                    self._note(kind, args, kwargs, frame)
            except Exception as error:
                self._leave_out("failed", kind.name)
                self._stream.trouble("an operation of torch", error)
        return func(*args, **kwargs)

    def higher_order(self, func: Any) -> None:
        """Note an operation that takes functions or kernels."""
        if self._stream.step(True) == self._wanted:
            self._leave_out("higher-order", str(func))

    def _leave_out(self, reason: str, name: str) -> None:
        self._left_out[reason, name] = self._left_out.get((reason, name), 0) + 1

    def _note(self, kind: OpKind, args: Any, kwargs: Any, frame: FrameType | None) -> None:
        node = self._node()
        if kind.passed_over and node is None:
            self.places.passed(frame)
        if kind.name.startswith(("profiler.", "prim.")):
            return
        reason = _reason(kind, kwargs)
        if reason:
            self._leave_out(reason, kind.name)
            return
        file, line, _ = self.places.location(frame, node)
        try:
            arguments = _StepArguments(self._torch)
            fields = {"args": arguments.encoded(list(args)), "kwargs": arguments.encoded(kwargs)}
            storages = arguments.spans(fields)
            key = json.dumps([kind.name, node is not None, fields, [one.key() for one in storages]])
            noted = self._calls.get(key)
            if noted is None:
                saved = [self._saved(one) for one in storages]
                tensors = list(tensors_in((args, kwargs), self._torch.Tensor))
                noted = {"op": kind.name, "dtype": self._dtype(tensors, kwargs), "count": 0, "storages": saved}
                noted.update(backward=node is not None, file=file, line=line, **fields)
                self._calls[key] = noted
        except CannotSaveError as error:
            self._leave_out(error.args[0], kind.name)
            return
        noted["count"] += 1

    def _dtype(self, tensors: list[Any], kwargs: Any) -> str:
        """Return the type of the first floating-point tensor, else of the first one, else that of the result."""
        floating = [one.dtype for one in tensors if _is_floating(one)]
        dtypes = floating or [one.dtype for one in tensors] or [kwargs.get("dtype") or self._torch.get_default_dtype()]
        return str(dtypes[0]).partition(".")[2]

    def _saved(self, span: _Span) -> dict[str, Any]:
        """Save memory, unless that needs too much: then floating-point numbers are to be drawn."""
        fields = {"bytes": span.size, "device": span.device, "dtype": span.dtype}
        if span.size > self._left:
            if span.exact:
                raise CannotSaveError("too-large", "")
            return {**fields, "file": ""}
        data = span.read()
        digest = blake2b(data, digest_size=16).hexdigest()
        if digest not in self._files:
            self._left -= span.size
            self._files[digest] = self._stream.save("memory%d" % len(self._files), data)
        return {**fields, "file": self._files[digest]}

    def _write(self, *, complete: bool) -> None:
        """Write what was noted, and that this is all of the step if it is ``complete``."""
        with self._stream.lock:
            if not (self._calls or self._left_out):
                return
            for noted in self._calls.values():
                self._stream.write("noted", **noted)
            rows = [[reason, name, count] for (reason, name), count in self._left_out.items()]
            counters: Counter[str] = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("frames", {})
            self._stream.write(
                "step", step=self._wanted, complete=complete, left_out=rows, compiled=int(counters.get("ok", 0)),
                settings=settings(self._torch),
            )  # fmt: skip
            self._stream.flush()
            self._calls, self._left_out = {}, {}


class _Span:
    """The part of some memory that tensors of a call are in. ``exact``: not all of them are floating-point numbers."""

    def __init__(self, torch: Any, storage: Any, dtype: str) -> None:
        self._torch, self._storage = torch, storage
        self.dtype, self.device, self.exact = dtype, str(storage.device), False
        self._first, self._last = -1, 0

    def add(self, tensor: Any) -> None:
        """Note the part that a tensor is in."""
        self.exact = self.exact or not _is_floating(tensor)
        steps = [(size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())]
        first, size = tensor.storage_offset(), sum(steps) + 1 if tensor.numel() else 0
        start, end = first * tensor.element_size(), (first + size) * tensor.element_size()
        if end > self._storage.nbytes():
            raise CannotSaveError("argument", "a tensor whose memory was freed")
        if size:
            self._first = start if self._first < 0 else min(start, self._first)
            self._last = max(end, self._last)

    @property
    def start(self) -> int:
        """Where it begins in the memory, in bytes."""
        return max(self._first, 0) // _ALIGNED * _ALIGNED

    @property
    def size(self) -> int:
        """Its bytes."""
        return self._last - self.start if self._last else 0

    def key(self) -> list[Any]:
        """Return what is the same if a repetition of one call stands for another: of integers their values too."""
        values = blake2b(self.read(), digest_size=16).hexdigest() if self.exact else ""
        return [self.size, self.dtype, self.device, values]

    def read(self) -> bytes:
        """Return the bytes."""
        if not self.size:
            return b""
        torch = self._torch
        flat = torch.empty(0, dtype=torch.uint8, device=self._storage.device)
        host = flat.set_(self._storage, self.start, (self.size,)).cpu()
        return bytes(sys.modules["ctypes"].string_at(host.data_ptr(), self.size))


class _StepArguments(Arguments):
    """Encodes arguments without their memory; each tensor is in a span of it."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self._spans: dict[int, _Span] = {}

    def storage(self, tensor: Any) -> int:
        """See Arguments."""
        if tensor.is_meta:
            raise CannotSaveError("argument", "a tensor without memory")
        storage = tensor.untyped_storage()
        if storage._cdata not in self._spans:
            self._spans[storage._cdata] = _Span(self._torch, storage, str(tensor.dtype).partition(".")[2])
        self._spans[storage._cdata].add(tensor)
        return list(self._spans).index(storage._cdata)

    def spans(self, fields: Any) -> list[_Span]:
        """Return the spans, after counting the offsets of the encoded tensors from where these begin."""
        spans = list(self._spans.values())
        for tensor in _encoded_tensors(fields):
            size = self._torch.empty(0, dtype=getattr(self._torch, tensor["dtype"])).element_size()
            tensor["offset"] = max(tensor["offset"] - spans[tensor["storage"]].start // size, 0)
        return spans


def _encoded_tensors(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict) and set(value) == {"tensor"}:
        return [value["tensor"]]
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [tensor for item in items for tensor in _encoded_tensors(item)]


def _is_floating(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _reason(kind: OpKind, kwargs: Any) -> str:
    """Return why calls of an operation are not repeated, "" if they are."""
    namespace = kind.name.partition(".")[0]
    if namespace in _COLLECTIVES:
        return "collective"
    if namespace not in BUILT_IN:
        return "custom"
    if kind.passed_over or kind.enters:
        return "view"
    if kind.uninitialized:
        return "uninitialized"
    return "generator" if kind.random and kwargs.get("generator") is not None else ""
