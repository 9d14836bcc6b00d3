"""Hook CatBoost: the training that all its models and functions have in common."""

from __future__ import annotations

import json
import os

from .. import estimators, fits
from ..fits import hook_functions, hook_methods, read_when_freed
from . import with_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...process.recorder import Recorder


_OF_THIS_TRAINING = "model_info"
"""The part of a model with its name, the time, and all parameters of its training."""


def _read(model: Any) -> Any:
    """Return the trees, features and classes of a model, None before it is trained."""
    if not model.is_fitted():
        return None
    descriptor = os.memfd_create("detaudit")
    with os.fdopen(descriptor, "rb") as file:
        model.save_model("/proc/self/fd/%d" % descriptor, format="json")
        document = json.loads(file.read())
    document[_OF_THIS_TRAINING] = document[_OF_THIS_TRAINING].get("class_params")
    return with_arrays(document), model.get_leaf_values()  # the text of the JSON has fewer digits


def install(catboost: Any, recorder: Recorder) -> None:
    """Record the trainings of this CatBoost from now on."""
    recorder.sink.write({"k": "framework", "name": "catboost", "version": str(catboost.__version__)})
    estimators.READERS["catboost.core.CatBoost"] = _read
    hook_functions(catboost, ("cv",), recorder)
    hook_methods(catboost.CatBoost, ("_fit",), recorder)
    read_when_freed(catboost.CatBoost, fits.of(recorder))
