"""Axes: where a value lies between the bottom (0) and the top (1) of a figure, and which values are written there."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

MOST_TICKS = 4

LOG_FROM = 1000.0
"""Values over more than three powers of ten are shown on a logarithmic scale."""


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis from ``low`` to ``high``."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value lies. One outside the axis lies at its end."""
        if self.log:
            value = max(value, self.low)
            place = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            span = self.high / 2 - self.low / 2  # which is finite, whatever the ends are
            place = (value / 2 - self.low / 2) / span if span else 0.5
        return min(1.0, max(0.0, place))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The values to write at the axis, with their texts."""
        return _powers(self.low, self.high) if self.log else _round_values(self.low, self.high)


def linear(values: Sequence[float]) -> Scale:
    """Return an axis for finite values: from 0 if they begin near it, and never empty."""
    low, high = min(values), max(values)
    if 0 < low < high / 3:
        low = 0.0
    if not high - low > abs(high) * 1e-12:
        margin = abs(high) * 0.05 or 1.0
        low, high = max(low - margin, -sys.float_info.max), min(high + margin, sys.float_info.max)
    return Scale(low, high)


def logarithmic(values: Sequence[float]) -> Scale:
    """Return an axis for positive values between whole powers of ten."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    low = min(max(low, -307), 307)
    return Scale(10.0**low, 10.0 ** min(max(high, low + 1), 308), log=True)


def fitting(values: Sequence[float]) -> Scale:
    """Return a linear axis, or a logarithmic one if the values are positive and far apart."""
    if min(values) > 0 and max(values) / LOG_FROM > min(values):
        return logarithmic(values)
    return linear(values)


def _round_values(low: float, high: float) -> list[tuple[float, str]]:
    rough = high / MOST_TICKS - low / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next((power * factor for factor in (1, 2, 5, 10) if power * factor >= rough), 0.0)
    if not step or not math.isfinite(high / step) or abs(high / step) > 1e12:
        return [(low, f"{low:.6g}"), (high, f"{high:.6g}")]
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(number * step, f"{number * step:.10g}") for number in range(first, last + 1)]


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    first, last = round(math.log10(low)), round(math.log10(high))
    every = max(1, -(-(last - first) // MOST_TICKS))
    return [(10.0**power, _power(power)) for power in range(last, first - 1, -every)][::-1]


def _power(power: int) -> str:
    return {0: "1", 1: "10"}.get(power, "10" + str(power).translate(_RAISED))
