"""Starts the recorder in a process: the sink, the post-import hooks, the ends of the process."""

from __future__ import annotations

import atexit
import os
import sys

from .. import wire
from . import flags, imports
from .adapters import ADAPTERS, GENERATORS, SEEDED
from .sink import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import NoReturn


class Recorder:
    """One process's recorder: what the adapters share, and what happens when the process ends."""

    def __init__(self, directory: str) -> None:
        self.sink = Sink(directory)
        self.stages = frozenset((os.environ.get(wire.ENV_STAGES) or ",".join(wire.DEFAULT_STAGES)).split(","))
        self._finishers: list[Callable[[], None]] = []
        self._forgetters: list[Callable[[], None]] = []
        self._threads_watched = False

    def at_end(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        """Register an adapter: ``finish`` before the process ends, ``forget`` in a forked child."""
        self._finishers.append(finish)
        self._forgetters.append(forget)
        # After the framework's own registrations, hence before its own teardown.
        atexit.register(self.finish)
        if not self._threads_watched:
            self._threads_watched = True
            self._finish_before_joining_threads()

    def finish(self) -> None:
        """Let every adapter write what is final."""
        for finish in self._finishers:
            self.sink.guarded("finish", finish)

    def bye(self, how: str) -> None:
        """Write the last line of an orderly end."""
        if self.sink.started:
            self.sink.write({"k": "bye", "how": how})

    def _finish_before_joining_threads(self) -> None:
        # A script that hangs at exit mostly hangs in joining its threads, before atexit: write first.
        register = getattr(sys.modules.get("threading"), "_register_atexit", None)
        if register is not None:
            self.sink.guarded("finish", lambda: register(self.finish))

    def after_fork(self) -> None:
        """In a forked child: a file of its own, and nothing of the parent's training."""
        self.sink.reopen()
        for forget in self._forgetters:
            self.sink.guarded("fork", forget)


def _watch_ends(recorder: Recorder) -> None:
    # Registered first, so atexit runs it last.
    atexit.register(recorder.bye, "exit")
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        recorder.finish()
        recorder.bye("os._exit")
        leave(status)

    os._exit = _exit
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.after_fork)


def _watch_framework(recorder: Recorder, name: str) -> None:
    def install(module: ModuleType) -> None:
        import importlib

        adapter = importlib.import_module("." + ADAPTERS[name], __package__ + ".adapters")
        adapter.install(module, recorder)

    imports.when_imported(name, recorder.sink, install)


def _watch_generator(recorder: Recorder, name: str) -> None:
    def watch(_: ModuleType) -> None:
        from . import rng

        rng.watch(name)

    imports.when_imported(name, recorder.sink, watch)


def _watch_sources(recorder: Recorder, name: str) -> None:
    def watch(module: ModuleType) -> None:
        from . import sources

        sources.watch(module, name, recorder.sink)

    imports.when_imported(name, recorder.sink, watch)


def _watch_script(recorder: Recorder) -> None:
    def prepare(_: ModuleType) -> None:
        from . import script

        script.prepare(recorder)

    imports.when_imported("detaudit", recorder.sink, prepare)


def start() -> None:
    """Begin recording in this process. Called once, by the bootstrap, before any user code."""
    recorder = Recorder(os.environ[wire.ENV_TRACE])
    recorder.sink.hello()
    _watch_ends(recorder)
    for module, order in flags.orders(os.environ.get(wire.ENV_FLAGS, "")):
        imports.when_imported(module, recorder.sink, flags.applier(order, recorder.sink))
    for name in GENERATORS:
        _watch_generator(recorder, name)
    for name in SEEDED:
        _watch_sources(recorder, name)
    for name in ADAPTERS:
        _watch_framework(recorder, name)
    _watch_script(recorder)
