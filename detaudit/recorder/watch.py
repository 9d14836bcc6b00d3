"""Instrument a run: record the operations, or the lines of user code, in a window of steps."""

from __future__ import annotations

import importlib
import json
import os

from .. import wire
from .process import imports
from .process.stream import OpStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .process.recorder import Recorder


LINES = "lines.tracer"
"""The module here that records lines of user code, and the files that they open."""


def prepare(recorder: Recorder) -> None:
    """Install what ENV_WATCH requests: for lines now, for operations when a framework is imported."""
    requested = os.environ.get(wire.ENV_WATCH)
    if not requested:
        return
    stream = OpStream(recorder, json.loads(requested))
    if stream.level == "lines":
        lines = _load(LINES)
        lines.install_opened(stream)
        lines.install(stream)
        return
    for name, framework in wire.FRAMEWORKS.items():

        def install(module: ModuleType, own: str = framework.operations) -> None:
            _load(own).install(module, stream)

        if framework.operations:
            imports.when_imported(name, recorder.sink, install)


def _load(own: str) -> ModuleType:
    return importlib.import_module("." + own, __package__)
