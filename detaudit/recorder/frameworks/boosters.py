"""Hook XGBoost, LightGBM and CatBoost: their functions, and the boosters that a script trains itself.

The estimators of XGBoost and LightGBM are scikit-learn's.
"""

from __future__ import annotations

import json
import os
import sys

from . import estimators, fits
from .fits import hook_functions, hook_methods, hook_predictions, read_when_freed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..process.recorder import Recorder


_OF_THIS_TRAINING = "model_info"
"""The part of a model of CatBoost with its name, the time, and all parameters of its training."""


def install(library: Any, recorder: Recorder) -> None:
    """Record the trainings of this library from now on."""
    booster: Any
    read: Callable[[Any], Any]
    name = library.__name__
    recorder.sink.write({"k": "framework", "name": name, "version": str(library.__version__)})
    if name == "catboost":
        booster, read = library.CatBoost, _read_catboost
        hook_functions(library, ("cv",), recorder)
        hook_methods(booster, ("_fit",), recorder)
        for kind in (booster, library.CatBoostClassifier, library.CatBoostRegressor):
            hook_predictions(kind, ("predict", "predict_proba"), recorder)
    elif name == "lightgbm":
        booster, read = library.Booster, _read_lightgbm
        hook_functions(library, ("train", "cv"), recorder)
        hook_functions(library.engine, ("train", "cv"), recorder)
        hook_methods(booster, ("update",), recorder)
        hook_methods(booster, ("refit",), recorder, returns=True)
        hook_predictions(booster, ("predict",), recorder)
    else:
        booster, read = library.Booster, _read_xgboost
        hook_functions(library, ("train", "cv"), recorder)
        hook_functions(library.training, ("train", "cv"), recorder)
        hook_methods(booster, ("update", "boost"), recorder)
        hook_predictions(booster, ("predict", "inplace_predict"), recorder)
    estimators.READERS["%s.%s" % (booster.__module__, booster.__qualname__)] = read
    read_when_freed(booster, fits.of(recorder))


def _read_xgboost(booster: Any) -> Any:
    """Return the model without the parameters of its training, such as the number of threads."""
    return _with_arrays(json.loads(bytes(booster.save_raw("json"))))


def _read_lightgbm(booster: Any) -> Any:
    """Return the trees, and the values of their leaves once more, without the parameters of the training."""
    text, _, _ = booster.model_to_string(num_iteration=-1).partition("\nparameters:")
    values = [line.partition("=")[2].split() for line in text.splitlines() if line.startswith("leaf_value=")]
    return text, sys.modules["numpy"].array([float(value) for tree in values for value in tree])


def _read_catboost(model: Any) -> Any:
    """Return the trees, features and classes of a model, None before it is trained."""
    if not model.is_fitted():
        return None
    descriptor = os.memfd_create("detaudit")
    with os.fdopen(descriptor, "rb") as file:
        model.save_model("/proc/self/fd/%d" % descriptor, format="json")
        document = json.loads(file.read())
    document[_OF_THIS_TRAINING] = document[_OF_THIS_TRAINING].get("class_params")
    return _with_arrays(document), model.get_leaf_values()  # the text of the JSON has fewer digits


def _with_arrays(value: Any) -> Any:
    """Return decoded JSON with each list of floats as an array, so that the sum of weights counts it."""
    if isinstance(value, dict):
        return {key: _with_arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        if value and {*map(type, value)} == {float}:
            return sys.modules["numpy"].array(value)
        return [_with_arrays(item) for item in value]
    return value
