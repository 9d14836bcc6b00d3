"""Prepare the calls of operations that one step of a script made, each to be repeated as it was made."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import zlib

from ...recorder.replay.torch_call import SavedCall, settle
from ..parts import Parts
from .cases import parts, seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class Case:
    """A call, whose place in the log is the number of its sample. Its memory is loaded by ``directions``."""

    size = None

    def __init__(self, torch: Any, call: dict[str, Any], sample: int, folder: str) -> None:
        self._torch, self._call, self._folder = torch, call, folder
        self.op, self.dtype, self.sample = call["op"], call["dtype"], sample
        self.inputs, self.shapes = "", ""

    def directions(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield what to repeat: the operation, in the direction of the step in which it was called."""
        torch = self._torch
        saved = SavedCall(torch, self._call)
        memory = [self._memory(index, one) for index, one in enumerate(self._call["storages"])]
        inputs = saved.inputs(memory)
        self.inputs = parts(torch, inputs).digest()
        self.shapes = ", ".join("x".join(map(str, one)) or "scalar" for one in _shapes(self._call))

        def repeated() -> Any:
            seed(torch)
            with torch.no_grad():
                result, changed = saved.made(memory)
            returned = result if isinstance(result, (list, tuple)) else [result]
            others = [one for one in changed if not any(one is output for output in returned)]
            return [result, others] if others else result

        yield "backward" if self._call["backward"] else "forward", repeated

    def _memory(self, index: int, storage: dict[str, Any]) -> Any:
        """Return the bytes that were saved, or else random numbers."""
        torch = self._torch
        if storage["file"]:
            with open(os.path.join(self._folder, storage["file"]), "rb") as file:
                data = bytearray(file.read())
            flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        else:
            flat = self._drawn(index, storage)
        return flat.to(storage["device"], copy=True)  # memory of torch, which is aligned as in the training

    def _drawn(self, index: int, storage: dict[str, Any]) -> Any:
        """Return numbers from 0 to 1, which most operations accept; the same in each process."""
        torch = self._torch
        dtype, size = getattr(torch, storage["dtype"]), storage["bytes"]
        generator = torch.Generator().manual_seed(zlib.crc32(("%s|%d|%d" % (self.op, self.sample, index)).encode()))
        count = size // torch.empty(0, dtype=dtype).element_size()
        kind = torch.complex64 if dtype.is_complex else torch.float32
        numbers = torch.rand(count, generator=generator, dtype=kind).to(dtype)
        return torch.empty(0, dtype=torch.uint8).set_(numbers.untyped_storage(), 0, (size,))


class Step:
    """The calls of one step, with the settings of the script."""

    def __init__(self, torch: Any, log: str) -> None:
        self._torch, self._folder = torch, os.path.dirname(log)
        with open(log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.startswith(('{"k":"noted"', '{"k":"step"'))]
        self._calls = [line for line in lines if line["k"] == "noted"]
        self._settings = lines[-1]["settings"]
        self.version: str = torch.__version__
        self.threads: int = self._settings["threads"]

    def items(self, dtypes: Sequence[str]) -> Iterator[list[str]]:
        """Yield each operation with each type that it was called with."""
        operations = dict.fromkeys((call["op"], call["dtype"]) for call in self._calls)
        yield from map(list, operations)

    def cases(self, op: str, dtype: str, only: list[int] | None, sizes: dict[str, Any]) -> Iterator[Case]:
        """Yield the calls of an operation."""
        for number, call in enumerate(self._calls):
            if (call["op"], call["dtype"]) == (op, dtype):
                yield Case(self._torch, call, number, self._folder)

    @contextlib.contextmanager
    def phase(self, threads: int, switch: bool) -> Iterator[None]:
        """Have the settings of the script, but so many threads, and deterministic algorithms if ``switch``."""
        torch = self._torch
        settle(torch, self._settings, threads or self.threads)
        if switch:
            torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)
            torch.set_num_threads(self.threads)

    def parts(self, result: Any) -> Parts:
        """Return the tensors in a result."""
        return parts(self._torch, result)


def _shapes(value: Any) -> Iterator[list[int]]:
    """Yield the shapes of the tensors in the arguments of a call."""
    if isinstance(value, dict):
        if "stride" in value:
            yield value["shape"]
        else:
            for name, one in value.items():
                if name not in ("storages", "dtype"):
                    yield from _shapes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _shapes(one)


def start(log: str) -> Step:
    """Import torch, and read the calls in this log. Raises what the import raises."""
    return Step(importlib.import_module("torch"), log)
