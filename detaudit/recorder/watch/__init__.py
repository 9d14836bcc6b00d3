"""Watches a window of steps operation by operation, or line by line, where that was asked for."""

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

FRAMEWORKS = {"torch": "torch.operations", "tensorflow": "tensorflow.watcher"}
"""Framework, and the file here that watches its operations."""


def prepare(recorder: Recorder) -> None:
    """Watch what ENV_WATCH asks for: lines at once, operations in whichever framework is imported."""
    asked = os.environ.get(wire.ENV_WATCH)
    if not asked:
        return
    stream = OpStream(recorder, json.loads(asked))
    if stream.level == "lines":
        from .lines import opened, tracer

        opened.install(stream)
        tracer.install(stream)
        return
    for name, file in FRAMEWORKS.items():

        def install(module: ModuleType, file: str = file) -> None:
            importlib.import_module("." + file, __package__).install(module, stream)

        imports.when_imported(name, recorder.sink, install)
