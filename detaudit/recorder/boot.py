"""Starts the recorder in a process: its hooks after imports, and its last words at the end."""

from __future__ import annotations

import atexit
import os

from .. import wire
from .adapters import ADAPTERS, GENERATORS, SEEDED, WATCHED
from .patches import flags
from .process import imports
from .process.recorder import Recorder
from .process.settings import FRAMEWORKS, Settings
from .randomness import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import NoReturn


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
        from .training import generators

        generators.watch(name)

    imports.when_imported(name, recorder.sink, watch)


def _watch_sources(recorder: Recorder, name: str) -> None:
    def watch(module: ModuleType) -> None:
        from .randomness import seeds

        seeds.watch(module, name, recorder.sink)

    imports.when_imported(name, recorder.sink, watch)


def _watch_script(recorder: Recorder) -> None:
    def prepare(_: ModuleType) -> None:
        from . import probes
        from .probes import compilers, returned
        from .training import record

        record.prepare(recorder)
        probes.prepare(recorder)
        returned.prepare(recorder)
        imports.when_imported("torch", recorder.sink, compilers.torch_imported)

    imports.when_imported("detaudit", recorder.sink, prepare)


def _watch_settings(recorder: Recorder) -> None:
    settings = Settings(recorder)
    settings.install()
    for name in (*FRAMEWORKS, "detaudit"):
        imports.when_imported(name, recorder.sink, lambda _, name=name: settings.imported(name))  # type: ignore[misc]


def _watch_system(recorder: Recorder) -> None:
    system.watch(recorder.sink)
    imports.when_imported("uuid", recorder.sink, lambda uuid: system.watch_uuid(uuid, recorder.sink))


def _watch_calls(recorder: Recorder, name: str, where: str, function: str) -> None:
    def watch(module: ModuleType) -> None:
        import importlib

        getattr(importlib.import_module("." + where, __package__), function)(module, recorder)

    imports.when_imported(name, recorder.sink, watch)


def _watch_closely(recorder: Recorder) -> None:
    if os.environ.get(wire.ENV_WATCH):
        from . import watch

        watch.prepare(recorder)


def start() -> None:
    """Begin recording in this process. Called once, by the bootstrap, before any user code."""
    recorder = Recorder(os.environ[wire.ENV_TRACE])
    recorder.sink.hello()
    _watch_ends(recorder)
    for watched in WATCHED:
        _watch_calls(recorder, *watched)
    for module, order in flags.orders(os.environ.get(wire.ENV_FLAGS, "")):
        imports.when_imported(module, recorder.sink, flags.applier(order, recorder.sink))
    for name in GENERATORS:
        _watch_generator(recorder, name)
    for name in SEEDED:
        _watch_sources(recorder, name)
    for name in ADAPTERS:
        _watch_framework(recorder, name)
    _watch_script(recorder)
    recorder.sink.guarded("watch", lambda: _watch_closely(recorder))
    recorder.sink.guarded("environ", lambda: _watch_settings(recorder))
    recorder.sink.guarded("os", lambda: _watch_system(recorder))
