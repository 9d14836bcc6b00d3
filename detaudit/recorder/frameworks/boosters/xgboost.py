"""Hook XGBoost: its functions, and the boosters that a script trains itself. Its estimators are scikit-learn's."""

from __future__ import annotations

import json

from .. import estimators, fits
from ..fits import hook_functions, hook_methods, read_when_freed
from . import with_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...process.recorder import Recorder


def _read(booster: Any) -> Any:
    """Return the model without the parameters of its training, such as the number of threads."""
    return with_arrays(json.loads(bytes(booster.save_raw("json"))))


def install(xgboost: Any, recorder: Recorder) -> None:
    """Record the trainings of this XGBoost from now on."""
    recorder.sink.write({"k": "framework", "name": "xgboost", "version": str(xgboost.__version__)})
    estimators.READERS["xgboost.core.Booster"] = _read
    for module in (xgboost, xgboost.training):
        hook_functions(module, ("train", "cv"), recorder)
    hook_methods(xgboost.Booster, ("update", "boost"), recorder)
    read_when_freed(xgboost.Booster, fits.of(recorder))
