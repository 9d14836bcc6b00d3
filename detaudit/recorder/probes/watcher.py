"""Record the values of probes, each with the reader for its library."""

from __future__ import annotations

import importlib
import sys

from ... import wire
from . import log
from .log import ProbeLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from ..process.recorder import Recorder

    class Probes(Protocol):
        """The probes of a framework."""

        def monitor(self, value: Any, name: str) -> Any:
            """Record a tensor and later its gradient, and return the tensor or its replacement."""

        def gradient(self, value: Any, name: str) -> None:
            """Record a gradient."""

        def in_graph(self) -> bool:
            """Return whether a graph is being built, whose values are recorded when it runs."""

        def on_host(self, run: Callable[..., None], tensors: Sequence[Any]) -> Any:
            """Add a call of ``run`` with the arrays of these tensors to that graph, if one is being built."""


class ProbeWatcher:
    """Records values of any library. A failure is recorded too, and never reaches the script."""

    def __init__(self, recorder: Recorder) -> None:
        self.log = ProbeLog(recorder)
        self._arrays = log.NumpyReader()
        self._of: dict[str, Probes] = {}

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception once; it never reaches the script."""
        try:
            function()
        except Exception as error:
            self.log.trouble(where, error)

    def visit(self, value: Any, name: str) -> Any:
        """Record one part of a structure, and return it or its replacement."""
        try:
            return self._visit(value, name)
        except Exception as error:
            self.log.trouble(f"detaudit.monitor of {name!r}", error)
            return value

    def _visit(self, value: Any, name: str) -> Any:
        probes = self._probes(value)
        if probes is not None:
            return probes.monitor(value, name)
        self._note(value, name, gradient=False)
        return value

    def gradient(self, value: Any, name: str) -> None:
        """Record a gradient that the script passes."""
        probes = self._probes(value)
        if probes is not None:
            probes.gradient(value, name)
        else:
            self._note(value, name, gradient=True)

    def graph_of(self, values_: list[Any]) -> Probes | None:
        """Return the probes that can add to the graph these values belong to, None if there is none."""
        every = [self._probes(value) for value in values_]
        return next((probes for probes in every if probes is not None and probes.in_graph()), None)

    def _probes(self, value: Any) -> Probes | None:
        """Return the probes of the framework that a tensor is of, None for other values."""
        for name, framework in wire.FRAMEWORKS.items():
            module = sys.modules.get(name) if framework.probes else None
            if module is not None:
                own = importlib.import_module("." + framework.probes, __package__.rpartition(".")[0])
                if own.takes(module, value):
                    if name not in self._of:
                        self._of[name] = own.Probes(module, self.log)
                    return self._of[name]
        return None

    def _note(self, value: Any, name: str, *, gradient: bool) -> None:
        with self.log.lock:
            value_digest, text = self._read(value)
            self.log.note(name, value_digest, text, gradient=gradient, after_loss=gradient)

    def _read(self, value: Any) -> tuple[str, str | None]:
        plain = log.digest_plain(value)
        if plain is not None:
            return plain, log.shown(value)
        if not hasattr(value, "__array__"):
            raise TypeError(f"a probe accepts numbers, strings, tensors and arrays, not {type(value).__name__}")
        importlib.import_module("numpy")
        return self._arrays.read([value])
