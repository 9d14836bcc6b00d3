"""Hook ONNX Runtime: what a session returns."""

from __future__ import annotations

import sys

from .fits import hook_predictions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from ..process.recorder import Recorder


def install(module: ModuleType, recorder: Recorder) -> None:
    """Record the runs of sessions from now on."""
    version = getattr(sys.modules.get("onnxruntime"), "__version__", "")
    recorder.sink.write({"k": "framework", "name": "onnxruntime", "version": str(version)})
    hook_predictions(module.Session, ("run",), recorder)
