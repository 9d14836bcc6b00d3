"""Hook LightGBM: its functions, and the boosters that a script trains itself. Its estimators are scikit-learn's."""

from __future__ import annotations

import sys

from .. import estimators, fits
from ..fits import hook_functions, hook_methods, read_when_freed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...process.recorder import Recorder


def _read(booster: Any) -> Any:
    """Return the trees, and the values of their leaves once more, without the parameters of the training."""
    text, _, _ = booster.model_to_string(num_iteration=-1).partition("\nparameters:")
    values = [line.partition("=")[2].split() for line in text.splitlines() if line.startswith("leaf_value=")]
    return text, sys.modules["numpy"].array([float(value) for tree in values for value in tree])


def install(lightgbm: Any, recorder: Recorder) -> None:
    """Record the trainings of this LightGBM from now on."""
    recorder.sink.write({"k": "framework", "name": "lightgbm", "version": str(lightgbm.__version__)})
    estimators.READERS["lightgbm.basic.Booster"] = _read
    for module in (lightgbm, lightgbm.engine):
        hook_functions(module, ("train", "cv"), recorder)
    hook_methods(lightgbm.Booster, ("update",), recorder)
    hook_methods(lightgbm.Booster, ("refit",), recorder, returns=True)
    read_when_freed(lightgbm.Booster, fits.of(recorder))
