"""Read the models of XGBoost (JSON and UBJSON), LightGBM (text) and CatBoost: each tree is a part, if that is known.

The parameters at the end of a LightGBM model, which name files and threads, and the random number of a CatBoost model
are left out.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from detaudit.runs.formats import Part
from detaudit.runs.formats import text as shown_text

MOST = 2**30
"""Bytes of a model that is read."""

MOST_PAIRS = 10_000

_LIGHTGBM, _TREE, _PARAMETERS = b"tree\nversion=", b"\n\nTree=", b"\nparameters:\n"
_CATBOOST = b"CBM1"
_DTYPE = "|tree"


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    if path.stat().st_size > MOST:
        raise ValueError("it is too large")
    model = path.read_bytes()
    if model.startswith(_LIGHTGBM):
        return _lightgbm(model)
    return _catboost(model) if model.startswith(_CATBOOST) else _xgboost(model)


def _lightgbm(text: bytes) -> Iterator[Part]:
    model = text.partition(_PARAMETERS)[0]
    for index, piece in enumerate(model.split(_TREE)):
        yield Part(f"tree {index - 1}" if index else "header", iter([piece]), _DTYPE)


def _xgboost(text: bytes) -> Iterator[Part]:
    try:
        model = json.loads(text)
    except ValueError:
        # UBJSON, whose objects begin as those of JSON do
        return iter([Part("model", iter([text]), _DTYPE)])
    return _trees(model["learner"])


def _trees(learner: dict[str, Any]) -> Iterator[Part]:
    booster = learner["gradient_booster"]
    for step in (booster, *booster.get("gbtree", {}).values()):  # dart holds a gbtree
        for index, tree in enumerate(step.get("model", {}).get("trees", ()) if isinstance(step, dict) else ()):
            yield Part(f"tree {index}", iter([json.dumps(tree).encode()]), _DTYPE)
    weights = booster.get("model", {}).get("weights")
    if weights is not None:  # gblinear
        yield Part("weights", iter([json.dumps(weights).encode()]), _DTYPE)
    kept = {key: learner.get(key) for key in ("learner_model_param", "objective", "feature_names", "feature_types")}
    yield Part("parameters", iter([json.dumps(kept).encode()]), _DTYPE)
    for name, told in sorted(learner.get("attributes", {}).items()):  # such as best_score
        yield shown_text(f"attribute {name}", told)


# How catboost/libs/model/flatbuffers/model.fbs lays a model out: a table TModelCore, whose second field is the trees,
# and the third a vector of pairs of texts, among them a random number and the time of the training.
_TREES, _INFO, _KEY, _VALUE = 1, 2, 0, 1
_RANDOM = "model_guid"


def _catboost(model: bytes) -> Iterator[Part]:
    size = int.from_bytes(model[4:8], "little")
    core, rest = bytearray(model[8 : 8 + size]), model[8 + size :]
    if len(core) < size:
        raise EOFError("it ends too early")
    texts, end = {}, 0
    root = _u32(core, 0)
    info, trees = _field(core, root, _INFO), _field(core, root, _TREES)
    if info:
        vector = info + _u32(core, info)
        for index in range(min(_u32(core, vector), MOST_PAIRS)):
            at = vector + 4 + 4 * index
            pair = at + _u32(core, at)
            (key, _), (value, where) = (_text(core, pair, field) for field in (_KEY, _VALUE))
            texts[key.decode("utf-8", "backslashreplace")] = value.decode("utf-8", "backslashreplace")
            end = max(end, where + len(value))
    # What is built first lies last. The texts may be of any length, so nothing before their end is compared with them.
    if trees and trees + _u32(core, trees) >= end:
        core = core[end:].lstrip(b"\0")
    yield Part("trees", iter([bytes(core), rest]), _DTYPE)
    for name, told in sorted(texts.items()):
        if name != _RANDOM:
            yield shown_text(name, told)


def _u32(data: bytearray, at: int) -> int:
    if not 0 <= at <= len(data) - 4:
        raise ValueError("an offset in it leads outside")
    return int.from_bytes(data[at : at + 4], "little")


def _field(data: bytearray, table: int, number: int) -> int:
    """Return where a field of a table of a flatbuffer is, 0 if it has none: https://flatbuffers.dev/internals/."""
    offset = _u32(data, table)
    vtable = table - (offset - 2**32 if offset >= 2**31 else offset)
    if not 0 <= vtable <= len(data) - 4:
        raise ValueError("an offset in it leads outside")
    at = 4 + 2 * number
    if at + 2 > int.from_bytes(data[vtable : vtable + 2], "little"):
        return 0
    offset = int.from_bytes(data[vtable + at : vtable + at + 2], "little")
    return table + offset if offset else 0


def _text(data: bytearray, table: int, number: int) -> tuple[bytes, int]:
    field = _field(data, table, number)
    if not field:
        return b"", 0
    at = field + _u32(data, field)
    size = _u32(data, at)
    if at + 4 + size > len(data):
        raise ValueError("a text in it ends outside")
    return bytes(data[at + 4 : at + 4 + size]), at + 4
