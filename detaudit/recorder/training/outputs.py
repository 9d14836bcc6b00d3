"""What models return: each call, or those since the last update."""

from __future__ import annotations

import threading
import weakref

from ... import wire
from ..process import threads
from . import digest, generators
from .walk import leaves

# Keep what models return until the next update of the weights, apart for each thread.
#
# What the main thread returns has an order. Calls of other threads have none: their digests are added up. A thread that
# calls models while another one trains goes on by chance after the last update, so none of its calls count, except for
# what it returns after the last update of a training of its own. A task of a pool is a thread here.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..process.log import Row
    from ..process.recorder import Recorder
    from .digest import FrameworkReader


LATER_BYTES = 16 * 2**20
LATER_CALLS = 256
"""After the first update, so many bytes and calls wait before they are digested: most are followed by an update."""

_MOST_KNOWN = 100_000
"""Calls whose repetitions are recognized."""

_MASK = (1 << 128) - 1


class _ThreadCalls:
    """The calls of one thread, or of one task of a pool, since the last update of what it trains, if it trains."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.trains = False
        self.drop()

    def drop(self) -> None:
        self.count = self.total = 0


class LastCalls:
    """The calls of all threads since the last update. ``digested`` returns the digest of what a call returned."""

    def __init__(self, reader: FrameworkReader, digested: Callable[[Sequence[Any]], str]) -> None:
        self._reader, self._digested = reader, digested
        self._here = threading.local()
        self._lock = threading.RLock()  # a signal handler may call models, or update weights
        self._beside: list[_ThreadCalls] = []
        self._main_trains = False
        self._drop()

    def _drop(self) -> None:
        self._later: list[list[Any]] = []
        self._later_bytes = self._ordered = 0
        self._chain = ""
        self._chained: set[str] = set()

    def updated(self) -> None:
        """Drop what the update of the weights, in this thread, makes obsolete."""
        if not self._beside and threading.get_ident() == threading.main_thread().ident:
            self._main_trains = True
            self._drop()
            return
        # A framework's own thread updates for the main one.
        here = self.of_thread() if threads.in_background() else None
        with self._lock:
            if here is None:
                self._main_trains = True
            else:
                here.trains = True
                here.drop()
            self._beside = [one for one in self._beside if one.trains and one is not here]
            if here is not None:
                self._beside.append(here)
        if here is None or not self._main_trains:
            self._drop()

    def of_thread(self) -> _ThreadCalls | None:
        """Return the calls of this thread from the beginning of its first call on, None in the main thread."""
        if threading.get_ident() == threading.main_thread().ident:
            return None
        calls: _ThreadCalls | None = getattr(self._here, "calls", None)
        if calls is None or calls.task != threads.ended_tasks():
            calls = self._here.calls = _ThreadCalls(threads.ended_tasks())
            with self._lock:
                self._beside.append(calls)
        return calls

    def keep(self, values: Sequence[Any]) -> None:
        """Keep an output until it is known whether an update follows, or digest it if that takes much memory."""
        if self.of_thread() is not None:
            self.add(self._digested(values))
            return
        size = sum([self._reader.size(value) for value in values if not isinstance(value, str)])
        large = size > LATER_BYTES
        if self._later_bytes + size > LATER_BYTES or len(self._later) == LATER_CALLS:
            self._digest_later()
        kept = [value if isinstance(value, str) else self._reader.kept(value, not large) for value in values]
        if any(value is None for value in kept):
            self._digest_later()
            self._append_once(self._digested(values))
            return
        self._later_bytes += size
        self._later.append(kept)

    def _digest_later(self) -> None:
        later, self._later, self._later_bytes = self._later, [], 0
        for values in later:
            self._append_once(self._digested(values))

    def _append_once(self, output: str) -> None:
        # How often one is repeated may depend on the time, as in a benchmark of a trained model.
        if output not in self._chained:
            if len(self._chained) < _MOST_KNOWN:
                self._chained.add(output)
            self._append(output)

    def _append(self, output: str) -> None:
        self._ordered += 1
        self._chain = digest.of_bytes((self._chain + output).encode())

    def add(self, output: str) -> None:
        """Count a call by the digest of its output."""
        here = self.of_thread()
        if here is None:
            self._append(output)
        else:
            here.count += 1
            here.total = (here.total + int(output, 16)) & _MASK

    @property
    def unordered(self) -> int:
        """The sum of the digests of what threads returned."""
        return sum([one.total for one in self._beside]) & _MASK

    @property
    def count(self) -> int:
        """The number of calls that count."""
        return self._ordered + len(self._later) + sum([one.count for one in self._beside])

    def summary(self) -> str | None:
        """Return one digest of all outputs that count, None if there are none."""
        self._digest_later()
        return digest.of_bytes(f"{self._chain} {self.count} {self.unordered:x}".encode()) if self.count else None


# Record what models return: each call as long as nothing was trained, after that the calls since the last update.
#
# A call counts if no other one is in progress in its thread. The end of this file says which count after an update. As
# long as nothing was trained, calls with equal inputs and outputs count once: a benchmark repeats one by chance.


_PLAIN = (bool, int, float, complex, str, bytes)


def values_in(value: Any, tensors: Callable[[Any], Sequence[Any] | None]) -> list[Any]:
    """Return the tensors and numbers of nested collections and dataclasses in order, numbers and texts as text.

    ``tensors`` returns what a value consists of if it is a tensor, else None. Objects of other types are left out.
    """
    values: list[Any] = []
    for leaf in leaves(value, dataclasses=True):
        parts = tensors(leaf)
        if parts is not None:
            values += parts
        elif isinstance(leaf, _PLAIN):
            values.append(f"{type(leaf).__name__}:{leaf!r}")
        elif hasattr(leaf, "tobytes") and getattr(getattr(leaf, "dtype", None), "kind", "") in tuple("biufc"):
            values.append(f"{leaf.dtype}{leaf.shape}:{digest.of_bytes(leaf.tobytes())}")
    return values


class Outputs:
    """The outputs of one framework in this process. ``began`` is whether anything was trained, in any thread."""

    def __init__(self, framework: str, recorder: Recorder, reader: FrameworkReader) -> None:
        self.framework = framework + wire.INFERENCE
        self._sink, self._stages, self._called = recorder.sink, recorder.stages, recorder.called
        self._recorder, self._reader = recorder, reader
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
    def pending(self) -> bool:
        """Whether a call counts whose end was not written yet."""
        return not self.began and self._written != self._last.count

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
        first = self._weighed.get(id(model), lambda: None)() is not model
        if first and not self._recorder.lane and "init" in self._stages:  # not again for each task of a pool
            self._weighed[id(model)] = weakref.ref(model)
            weight_tensors = weights()
            weighed = self._digest(weight_tensors) if weight_tensors else None
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
        lane = self._recorder.lane
        self._write([(self._calls, lane, stage, one, None) for stage, one in stages.items() if one is not None])
        self._called(self._calls)

    def _repeats(self, call: tuple[str, str], in_main: bool) -> bool:
        """Return whether there was a call with these inputs and this output, in this thread or another beside main."""
        known = self._known if in_main else self._known_in_threads
        if call in known:
            return True
        if len(known) < _MOST_KNOWN:
            known.add(call)
        return False

    def _write(self, rows: Sequence[Row]) -> None:
        self._sink.write_rows(self.framework, rows)

    def _digest(self, values: Sequence[Any]) -> str:
        tensors = [value for value in values if not isinstance(value, str)]
        texts = [f"{index} {value}" for index, value in enumerate(values) if isinstance(value, str)]
        parts = digest.of_parts(self._reader.parts(tensors))
        return digest.of_bytes("\n".join([parts, *texts]).encode()) if texts else parts

    def summary(self) -> str | None:
        """Return one digest of all outputs since the last update, None if there are none."""
        return self._last.summary()

    def finish(self) -> None:
        """Write the end of an inference, if nothing was trained. A later end replaces an earlier one."""
        summary = None if self.began else self.summary()
        if summary is None or self._written == self._last.count:
            return
        self._written = self._last.count
        calls = self._calls
        if self._last.unordered:
            calls += 1
            self._write([(calls, self._recorder.lane, "output", f"{self._last.unordered:032x}", None)])
        end = {
            "digest": summary,
            "sum": "",
            "loss": None,
            "params": 1,
            "sparse": False,
            "devices": sorted(self._devices),
        }
        line = {"k": "final", "fw": self.framework, "lane": self._recorder.lane, "steps": calls}
        self._sink.write({**line, **end, "weights": []})
