"""Start the recorder in a process: hook the imports of frameworks, and the end of the process."""

from __future__ import annotations

import atexit
import os

from .. import wire
from .frameworks import HOOKS
from .patches import flags
from .process import children, imports
from .process.recorder import Recorder
from .process.settings import READ_VARIABLES, SettingsRecorder
from .randomness import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import NoReturn

_GENERATORS = ("random", "numpy.random")
"""Modules with a global random generator; see training/generators.py."""

_HOOKED_FIRST = (
    ("random", "randomness.draws", "watch_python"),
    ("numpy.random", "randomness.draws", "watch_numpy"),
    ("numpy.random", "randomness.seeds", "watch_entropy"),
    ("concurrent.futures._base", "randomness.order", "watch_futures"),
    ("concurrent.futures.thread", "process.threads", "name_tasks"),
    ("threading", "process.writers", "watch_threads"),
    ("threading", "randomness.draws", "watch_threads"),
    ("multiprocessing.pool", "randomness.order", "watch_pool"),
    ("multiprocessing.pool", "process.threads", "watch_pool"),
    ("concurrent.futures.process", "process.threads", "watch_executor"),
    ("loky.process_executor", "process.threads", "watch_executor"),
    ("joblib.externals.loky.process_executor", "process.threads", "watch_executor"),
    ("joblib.parallel", "process.threads", "watch_joblib"),
    ("subprocess", "process.children", "watch_subprocess"),
    ("queue", "randomness.order", "watch"),
    ("h5py._hl.files", "process.children", "watch_h5py"),
    *[hooked for framework in wire.FRAMEWORKS.values() for hooked in framework.first],
)
"""Modules to hook before any flag is applied, and for each the module here and the function that hooks it."""


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

        importlib.import_module("." + HOOKS[name], __package__ + ".frameworks").install(module, recorder)

    imports.when_imported(name, recorder.sink, install)


def _watch_generator(recorder: Recorder, name: str) -> None:
    def watch(_: ModuleType) -> None:
        from .training import generators

        generators.watch(name)
        if name == "random":
            generators.watch_in_children(name)

    imports.when_imported(name, recorder.sink, watch)


def _watch_seeds(recorder: Recorder, name: str) -> None:
    def watch(module: ModuleType) -> None:
        from .randomness import seeds

        seeds.watch(module, name, recorder.sink)

    imports.when_imported(name, recorder.sink, watch)


def _prepare_for_calls(recorder: Recorder) -> None:
    # For a script that imports detaudit to call detaudit.record or the probes.
    def prepare(_: ModuleType) -> None:
        from . import probes
        from .probes import returned
        from .training import record

        record.prepare(recorder)
        probes.prepare(recorder)
        returned.prepare(recorder)

    imports.when_imported("detaudit", recorder.sink, prepare)


def _watch_settings(recorder: Recorder) -> None:
    settings = SettingsRecorder(recorder)
    settings.install()
    for name in (*READ_VARIABLES, "detaudit"):
        imports.when_imported(name, recorder.sink, lambda _, name=name: settings.imported(name))  # type: ignore[misc]


def _watch_system(recorder: Recorder) -> None:
    system.watch(recorder.sink)
    imports.when_imported("uuid", recorder.sink, lambda uuid: system.watch_uuid(uuid, recorder.sink))


def _hook(recorder: Recorder, name: str, own: str, function: str) -> None:
    def watch(module: ModuleType) -> None:
        import importlib

        getattr(importlib.import_module("." + own, __package__), function)(module, recorder)

    imports.when_imported(name, recorder.sink, watch)


def _instrument(recorder: Recorder) -> None:
    if os.environ.get(wire.ENV_WATCH):
        from . import watch

        watch.prepare(recorder)


def start() -> None:
    """Start recording in this process. The bootstrap calls this once, before any user code runs."""
    recorder = Recorder(os.environ[wire.ENV_LOGS])
    recorder.sink.hello()
    _watch_ends(recorder)
    for hooked in _HOOKED_FIRST:
        _hook(recorder, *hooked)
    for module, instruction in flags.instructions(os.environ.get(wire.ENV_FLAGS, "")):
        imports.when_imported(module, recorder.sink, flags.applier(instruction, recorder.sink))
    for name in _GENERATORS:
        _watch_generator(recorder, name)
    for name in ("random", "numpy.random", *[name for name, one in wire.FRAMEWORKS.items() if one.seeds]):
        _watch_seeds(recorder, name)
    for name in HOOKS:
        _watch_framework(recorder, name)
    _prepare_for_calls(recorder)
    recorder.sink.guarded("watch", lambda: _instrument(recorder))
    recorder.sink.guarded("environ", lambda: _watch_settings(recorder))
    recorder.sink.guarded("os", lambda: _watch_system(recorder))
    recorder.sink.guarded("outputs", lambda: children.watch_files(recorder))
    recorder.sink.guarded("child", lambda: children.watch_children(recorder))
