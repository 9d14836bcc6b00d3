"""Record what models return: each call as long as nothing was trained, after that the calls since the last update.

A call counts if no other one is in progress in its thread. Calls of other threads than the main one have no fixed
order; their digests are added up.
"""

from __future__ import annotations

import threading
import weakref

from ... import wire
from . import digest, generators
from .nested import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ..process.recorder import Recorder
    from .reader import FrameworkReader

LATER_BYTES = 16 * 2**20
LATER_CALLS = 256
"""After the first update, so many bytes and calls wait before they are digested: most are followed by an update."""

_PLAIN = (bool, int, float, complex, str, bytes)
_MASK = (1 << 128) - 1


def values_in(value: Any, tensors: Callable[[Any], Sequence[Any] | None]) -> Iterator[Any]:
    """Yield the tensors and numbers of nested collections and dataclasses in order, numbers and texts as text.

    ``tensors`` returns what a value consists of if it is a tensor, else None. Objects of other types are left out.
    """
    for leaf in leaves(value, dataclasses=True):
        found = tensors(leaf)
        if found is not None:
            yield from found
        elif isinstance(leaf, _PLAIN):
            yield f"{type(leaf).__name__}:{leaf!r}"
        elif hasattr(leaf, "tobytes") and getattr(getattr(leaf, "dtype", None), "kind", "") in tuple("biufc"):
            yield f"{leaf.dtype}{leaf.shape}:{digest.of_bytes(leaf.tobytes())}"


class Outputs:
    """The outputs of one framework in this process. ``began`` is whether anything was trained, in any thread."""

    def __init__(self, framework: str, recorder: Recorder, reader: FrameworkReader) -> None:
        self.framework = framework + wire.INFERENCE
        self._sink, self._stages, self._called = recorder.sink, recorder.stages, recorder.called
        self._reader = reader
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._calls = self._written = 0
        self._devices: set[str] = set()
        self._weighed: dict[int, weakref.ref[Any]] = {}
        self._inputs = threading.local()
        self.updated()
        self.began = False

    def updated(self) -> None:
        """Drop what was returned so far: the weights are about to change, or just changed."""
        self.began = True
        self._later: list[list[Any]] = []
        self._later_bytes = 0
        self._chain, self._count, self._unordered = "", 0, 0

    @property
    def each(self) -> bool:
        """Whether each call is a result of its own, because nothing was trained so far."""
        return not self.began and "output" in self._stages

    def calling(self, model: Any, weights: Callable[[], Sequence[Any]], arguments: Sequence[Any]) -> None:
        """Digest what a model is called with, and its weights at its first call: the call may change both."""
        inputs = weighed = None
        if "batch" in self._stages:
            inputs = self._digest(arguments)
        if "init" in self._stages and self._weighed.get(id(model), lambda: None)() is not model:
            self._weighed[id(model)] = weakref.ref(model)
            held = weights()
            weighed = self._digest(held) if held else None
        self._inputs.of_call = weighed, inputs

    def returned(self, values: Sequence[Any]) -> None:
        """Record the output of a call: its tensors, and its numbers as text."""
        (weighed, inputs), self._inputs.of_call = getattr(self._inputs, "of_call", None) or (None, None), None
        if not values or "output" not in self._stages:
            return
        if self.began:
            self._keep(values)
            return
        output = self._digest(values)
        self._add(output)
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._devices:
            self._devices = {self._reader.device(value) for value in values if not isinstance(value, str)}
        self._calls += 1
        rng = generators.state_digest() if "rng" in self._stages else None  # a generator shows only once it was used
        stages = {"init": weighed, "rng": rng, "batch": inputs, "output": output}
        self._sink.write(*[self._event(self._calls, stage, one) for stage, one in stages.items() if one is not None])
        self._called(self._calls)

    def _event(self, call: int, stage: str, found: str) -> dict[str, object]:
        return {"k": "event", "fw": self.framework, "step": call, "stage": stage, "digest": found, "value": None}

    def _keep(self, values: Sequence[Any]) -> None:
        """Keep the output until it is known whether an update follows, or digest it if that takes much memory."""
        size = sum([self._reader.size(value) for value in values if not isinstance(value, str)])
        large = size > LATER_BYTES
        if self._later_bytes + size > LATER_BYTES or len(self._later) == LATER_CALLS:
            self._digest_later()
        kept = [value if isinstance(value, str) else self._reader.kept(value, not large) for value in values]
        if threading.current_thread() is not threading.main_thread() or any(value is None for value in kept):
            self._digest_later()
            self._add(self._digest(values))
            return
        self._later_bytes += size
        self._later.append(kept)

    def _digest_later(self) -> None:
        later, self._later, self._later_bytes = self._later, [], 0
        for values in later:
            self._add(self._digest(values))

    def _add(self, output: str) -> None:
        self._count += 1
        if threading.current_thread() is threading.main_thread():
            self._chain = digest.of_bytes((self._chain + output).encode())
        else:
            self._unordered = (self._unordered + int(output, 16)) & _MASK

    def _digest(self, values: Sequence[Any]) -> str:
        tensors = [value for value in values if not isinstance(value, str)]
        texts = [f"{place} {value}" for place, value in enumerate(values) if isinstance(value, str)]
        parts = digest.of_parts(self._reader.parts(tensors))
        return digest.of_bytes("\n".join([parts, *texts]).encode()) if texts else parts

    def summary(self) -> str | None:
        """Return one digest of all outputs since the last update, None if there are none."""
        self._digest_later()
        if not self._count:
            return None
        return digest.of_bytes(f"{self._chain} {self._count} {self._unordered:x}".encode())

    def finish(self) -> None:
        """Write the end of an inference, if nothing was trained. A later end replaces an earlier one."""
        found = None if self.began else self.summary()
        if found is None or self._written == self._count:
            return
        self._written = self._count
        calls = self._calls
        if self._unordered:
            calls += 1
            self._sink.write(self._event(calls, "output", f"{self._unordered:032x}"))
        end = {"digest": found, "sum": "", "loss": None, "params": 1, "sparse": False, "devices": sorted(self._devices)}
        self._sink.write({"k": "final", "fw": self.framework, "steps": calls, **end, "weights": []})
