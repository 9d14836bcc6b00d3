"""Read the models of XGBoost (JSON and UBJSON) and LightGBM (text): each tree is a part.

The parameters at the end of a LightGBM model, which name files and threads, are left out.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from detaudit.auditor.evidence.formats import Part

MOST = 2**30
"""Bytes of a model that is read."""

_LIGHTGBM, _TREE, _PARAMETERS = b"tree\nversion=", b"\n\nTree=", b"\nparameters:\n"
_XGBOOST = (b"learner", b"version")
_DTYPE = "|tree"
_HEAD = 256


def parts(path: Path) -> Iterator[Part] | None:
    """Return the parts as Reader.parts does, None if neither library wrote the file."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if path.stat().st_size > MOST:
        raise ValueError("it is too large")
    if head.startswith(_LIGHTGBM):
        return _lightgbm(path.read_bytes())
    if head[:1] == b"{" and _XGBOOST[0] in head:
        return _xgboost(path.read_bytes())
    return None


def _lightgbm(text: bytes) -> Iterator[Part]:
    model = text.partition(_PARAMETERS)[0]
    for place, piece in enumerate(model.split(_TREE)):
        yield Part(f"tree {place - 1}" if place else "header", iter([piece]), _DTYPE)


def _xgboost(text: bytes) -> Iterator[Part] | None:
    try:
        learner = json.loads(text)["learner"]
    except (ValueError, KeyError, TypeError):
        # UBJSON, whose objects begin as those of JSON do
        return iter([Part("model", iter([text]), _DTYPE)]) if all(word in text for word in _XGBOOST) else None
    return _trees(learner)


def _trees(learner: dict[str, Any]) -> Iterator[Part]:
    booster = learner["gradient_booster"]
    for step in (booster, *booster.get("gbtree", {}).values()):  # dart holds a gbtree
        for place, tree in enumerate(step.get("model", {}).get("trees", ()) if isinstance(step, dict) else ()):
            yield Part(f"tree {place}", iter([json.dumps(tree).encode()]), _DTYPE)
    weights = booster.get("model", {}).get("weights")
    if weights is not None:  # gblinear
        yield Part("weights", iter([json.dumps(weights).encode()]), _DTYPE)
    kept = {key: learner.get(key) for key in ("learner_model_param", "objective")}
    yield Part("parameters", iter([json.dumps(kept).encode()]), _DTYPE)
