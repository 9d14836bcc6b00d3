"""Write the inputs and outputs of an operation of TensorFlow each time it runs inside the window."""

from __future__ import annotations

import os
import threading
from types import MappingProxyType
from typing import NamedTuple

from .... import private
from ...adapters.tensorflow.reader import TensorFlowReader
from .. import in_threads
from . import call as calls
from .calls import Calls
from .places import Place
from .variables import UNKNOWN, State, Variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..stream import OpStream


class Site(NamedTuple):
    """An operation in a graph, or an eager one, whose ``graph`` and ``node`` are "" then."""

    op: str
    place: Place
    graph: str = ""
    node: str = ""
    backward: bool = False
    random: bool = False
    found: tuple[int, ...] = ()
    """The variables whose value affects its result."""
    written: tuple[int, ...] = ()
    """The variables that it writes to. They are read back, as the last of its outputs."""
    numbers: tuple[int, ...] = ()
    """The places of its inputs that are numbers from Python."""
    attributes: Mapping[str, str] = MappingProxyType({})
    node_to_save: calls.Node = calls.Node()
    """The operation itself, if the call is to be saved."""


class Runs:
    """Writes a line for each run of an operation. TensorFlow's threads may call this at the same time."""

    def __init__(self, stream: OpStream, calls: Calls) -> None:
        self._stream, self._calls = stream, calls
        self._reader = TensorFlowReader()
        self._keeps = stream.level == "tensors"
        self.variables = Variables(self._state)
        self._lock = threading.RLock()
        self._counts: dict[str, int] = {}
        stream.when_open(self._opened)

    def _opened(self, _: bool) -> None:
        with self._lock:
            self._counts.clear()
            self.forget()

    def forget(self) -> None:
        """Forget the values of the variables."""
        with self._lock:
            self.variables.states.clear()

    def ran(self, site: Site, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        """Record an operation that just ran. This never raises, because the user's graph calls it."""
        if not self._stream.open:
            return
        try:
            with self._lock:
                self._ran(site, ins, outs)
        except Exception as error:
            self._stream.trouble("operation", error)

    def _ran(self, site: Site, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        if site.node:
            call = self._calls.current
            if not call.alone:
                self.forget()
                return
            thread, key = call.thread, self._calls.key(site.graph, site.node)
        else:
            thread, key = in_threads.name(), ""
        place = self._counts.get(thread, 0)
        if not key:
            self._counts[thread] = place + 1
        if not self._keeps:
            self._write(site, thread, key, ins, outs)
        elif key == self._stream.wanted.get("key") if key else self._is_wanted(thread, place):
            self._keep(site, ins, outs)
        elif site.written:
            self._written(site, [self._state(array) for array in outs[-len(site.written) :]])

    def _is_wanted(self, thread: str, place: int) -> bool:
        wanted = self._stream.wanted
        return not wanted.get("key") and wanted.get("thread") == thread and wanted.get("n") == place

    def _write(self, site: Site, thread: str, key: str, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        made = [self._state(array) for array in outs]
        came = [[self._found(number, site, made), number] for number in site.found]
        came += [[self.digest(array), -1] for array in ins]
        self._written(site, made[len(made) - len(site.written) :])
        storages = [-1] * (len(made) - len(site.written)) + list(site.written)
        fields: dict[str, Any] = {
            "n": self._stream.next_number(),
            "thread": thread,
            # An eager operation that writes to a variable comes after the loss of its step.
            "step": self._stream.step(bool(not key and site.written)),
            "op": site.op,
            "ins": came,
            "outs": [[state.digest, storage, True] for state, storage in zip(made, storages)],
            "file": site.place.file,
            "line": site.place.line,
        }
        more = {
            "key": key,
            "node": site.node,
            "module": site.place.module,
            "backward": site.backward,
            "random": site.random,
            "scalars": {**{str(len(site.found) + n + 1): _text(ins[n]) for n in site.numbers}, **site.attributes},
        }
        self._stream.write("op", **fields, **{name: value for name, value in more.items() if value})

    def _found(self, number: int, site: Site, made: list[State]) -> str:
        """Return the digest of a variable before the operation; if unknown, of the value that the operation read."""
        state = self.variables.states.get(number)
        if state is None and site.op == "ReadVariableOp":
            state = made[0]
        return state.digest if state is not None else ""

    def _written(self, site: Site, states: Sequence[State]) -> None:
        for number, state in zip(site.written, states):
            if number != UNKNOWN:
                self.variables.states[number] = state

    def _keep(self, site: Site, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        before = [self.variables.states.get(number) for number in site.found]
        states = [state.array if state is not None else None for state in before]
        if self._stream.wanted.get("call"):
            values = [self._reader.array(tensor) for tensor in ins]
            calls.save(self._stream, site.node_to_save, values, states, random=site.random, backward=site.backward)
        came = states + list(ins)
        for side, arrays in (("in", came), ("out", list(outs))):
            for place, array in enumerate(arrays):
                if array is not None:
                    self._keep_tensor(side + str(place), array)

    def _keep_tensor(self, role: str, tensor: Any) -> None:
        array = self._reader.array(tensor)
        path = self._stream.path(f".{role}.bin")
        with open(path, "wb", opener=private.opener) as file:
            file.write(self._reader.raw(array).tobytes())
        self._stream.write(
            "tensor",
            role=role,
            digest=self.digest(array),
            dtype=str(array.dtype),
            shape=list(array.shape),
            file=os.path.basename(path),
        )

    def _state(self, tensor: Any) -> State:
        array = self._reader.array(tensor)
        # The array may be a view of the variable's memory.
        return State("", array.copy()) if self._keeps else State(self.digest(array), None)

    def digest(self, tensor: Any) -> str:
        """Return the dtype, shape and digest of a tensor or an array."""
        _, dtype, shape, words = self._reader.part("", tensor)
        return "%s[%s]:%016x" % (dtype, ",".join([str(size) for size in shape]), words)


def _text(number: Any) -> str:
    """Return a tensor or an array without dimensions as text, with as many digits as its dtype needs."""
    return str(number.numpy() if hasattr(number, "numpy") else number)
