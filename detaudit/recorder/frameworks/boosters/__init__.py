"""Hook the trainings of libraries for gradient boosting."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def with_arrays(value: Any) -> Any:
    """Return decoded JSON with each list of floats as an array, so that the sum of weights counts it."""
    if isinstance(value, dict):
        return {key: with_arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        if value and {*map(type, value)} == {float}:
            return sys.modules["numpy"].array(value)
        return [with_arrays(item) for item in value]
    return value
