"""Record what models return: each call as long as nothing was trained, after that the calls since the last update.

A call counts if no other one is in progress in its thread. last_calls.py says which calls count after an update. As
long as nothing was trained, calls with equal inputs and outputs count once: a benchmark repeats one by chance.
"""

from __future__ import annotations

import threading
import weakref

from ... import wire
from . import digest, generators
from .last_calls import LastCalls
from .nested import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..process.recorder import Recorder
    from .reader import FrameworkReader

_MOST_KNOWN = 100_000
"""Calls whose repetitions are recognized."""

_PLAIN = (bool, int, float, complex, str, bytes)


def values_in(value: Any, tensors: Callable[[Any], Sequence[Any] | None]) -> list[Any]:
    """Return the tensors and numbers of nested collections and dataclasses in order, numbers and texts as text.

    ``tensors`` returns what a value consists of if it is a tensor, else None. Objects of other types are left out.
    """
    found: list[Any] = []
    for leaf in leaves(value, dataclasses=True):
        parts = tensors(leaf)
        if parts is not None:
            found += parts
        elif isinstance(leaf, _PLAIN):
            found.append(f"{type(leaf).__name__}:{leaf!r}")
        elif hasattr(leaf, "tobytes") and getattr(getattr(leaf, "dtype", None), "kind", "") in tuple("biufc"):
            found.append(f"{leaf.dtype}{leaf.shape}:{digest.of_bytes(leaf.tobytes())}")
    return found


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
        self._known: set[tuple[str, str]] = set()
        self._known_in_threads: set[tuple[str, str]] = set()
        self._last = LastCalls(self._reader, self._digest)
        self.began = False

    def updated(self) -> None:
        """Drop what was returned so far: the weights are about to change, or just changed."""
        self.began = True
        self._known.clear()
        self._known_in_threads.clear()
        self._last.updated()

    @property
    def each(self) -> bool:
        """Whether each call is a result of its own, because nothing was trained so far."""
        return not self.began and "output" in self._stages

    def entered(self) -> None:
        """Notice that a call begins: it is of the thread that is in it, even if an update comes before its end."""
        self._last.of_thread()

    def calling(self, model: Any, weights: Callable[[], Sequence[Any]], arguments: Sequence[Any]) -> None:
        """Digest what a model is called with, and its weights at its first call: the call may change both."""
        inputs = weighed = None
        if "output" in self._stages:
            inputs = self._digest(arguments)
        if "init" in self._stages and self._weighed.get(id(model), lambda: None)() is not model:
            self._weighed[id(model)] = weakref.ref(model)
            held = weights()
            weighed = self._digest(held) if held else None
        self._inputs.of_call = weighed, inputs

    def returned(self, values: Sequence[Any]) -> None:
        """Record the output of a call: its tensors, and its numbers as text."""
        if self.began:
            if values and "output" in self._stages:
                self._last.keep(values)
            return
        (weighed, inputs), self._inputs.of_call = getattr(self._inputs, "of_call", None) or (None, None), None
        if not values or "output" not in self._stages:
            return
        output = self._digest(values)
        in_main = threading.current_thread() is threading.main_thread()
        if inputs is not None and self._repeats((inputs, output), in_main):
            return
        self._last.add(output)
        if not in_main:
            return
        if not self._devices:
            self._devices = {self._reader.device(value) for value in values if not isinstance(value, str)}
        self._calls += 1
        rng = generators.state_digest() if "rng" in self._stages else None  # a generator shows only once it was used
        batch = inputs if "batch" in self._stages else None
        stages = {"init": weighed, "rng": rng, "batch": batch, "output": output}
        self._sink.write(*[self._event(self._calls, stage, one) for stage, one in stages.items() if one is not None])
        self._called(self._calls)

    def _repeats(self, call: tuple[str, str], in_main: bool) -> bool:
        """Return whether there was a call with these inputs and this output, in this thread or another beside main."""
        known = self._known if in_main else self._known_in_threads
        if call in known:
            return True
        if len(known) < _MOST_KNOWN:
            known.add(call)
        return False

    def _event(self, call: int, stage: str, found: str) -> dict[str, object]:
        return {"k": "event", "fw": self.framework, "step": call, "stage": stage, "digest": found, "value": None}

    def _digest(self, values: Sequence[Any]) -> str:
        tensors = [value for value in values if not isinstance(value, str)]
        texts = [f"{place} {value}" for place, value in enumerate(values) if isinstance(value, str)]
        parts = digest.of_parts(self._reader.parts(tensors))
        return digest.of_bytes("\n".join([parts, *texts]).encode()) if texts else parts

    def summary(self) -> str | None:
        """Return one digest of all outputs since the last update, None if there are none."""
        return self._last.summary()

    def finish(self) -> None:
        """Write the end of an inference, if nothing was trained. A later end replaces an earlier one."""
        found = None if self.began else self.summary()
        if found is None or self._written == self._last.count:
            return
        self._written = self._last.count
        calls = self._calls
        if self._last.unordered:
            calls += 1
            self._sink.write(self._event(calls, "output", f"{self._last.unordered:032x}"))
        end = {"digest": found, "sum": "", "loss": None, "params": 1, "sparse": False, "devices": sorted(self._devices)}
        self._sink.write({"k": "final", "fw": self.framework, "steps": calls, **end, "weights": []})
