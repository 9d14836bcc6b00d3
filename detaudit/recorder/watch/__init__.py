"""Instrument a run: record the operations, or the lines of user code, in a window of steps."""

from __future__ import annotations

import importlib
import json
import os

from ... import wire
from ..process import imports
from .stream import OpStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from ..process.recorder import Recorder

LINES = ("lines.opened", "lines.tracer")
"""The modules here that record lines of user code."""

FRAMEWORKS = {"torch": "torch.operations", "tensorflow": "tensorflow.watcher"}
"""Framework, and the module here that records its operations."""


def prepare(recorder: Recorder) -> None:
    """Install what ENV_WATCH requests: for lines now, for operations when a framework is imported."""
    requested = os.environ.get(wire.ENV_WATCH)
    if not requested:
        return
    stream = OpStream(recorder, json.loads(requested))
    if stream.level == "lines":
        for own in LINES:
            _load(own).install(stream)
        return
    for name, own in FRAMEWORKS.items():

        def install(module: ModuleType, own: str = own) -> None:
            _load(own).install(module, stream)

        imports.when_imported(name, recorder.sink, install)


def _load(own: str) -> ModuleType:
    return importlib.import_module("." + own, __package__)
