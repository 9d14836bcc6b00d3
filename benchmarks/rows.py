"""What a benchmark found: ratios of two things that took turns, and what else was measured."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec


class Goal(msgspec.Struct, frozen=True):
    """A limit that a value should keep to."""

    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:,.10g}"

    def is_met(self, value: float) -> bool:
        """Return whether a value keeps to the limit."""
        return value >= self.limit if self.at_least else value <= self.limit


class Figure(msgspec.Struct, frozen=True):
    """What was also measured, in a unit of its own: it depends on the machine."""

    value: float
    unit: str
    goal: Goal | None = None

    def __str__(self) -> str:
        goal = f" (goal {self.goal})" if self.goal else ""
        value = f"{self.value:,.0f}" if self.value == round(self.value) else number(self.value)
        return f"{value} {self.unit}{goal}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Ratios of what was measured (``what``) to what it took turns with (``over``), one for each turn."""

    what: str
    over: str
    ratios: tuple[float, ...]
    goal: Goal | None = None
    also: tuple[Figure, ...] = ()

    @property
    def median(self) -> float:
        """The median of the ratios, which the goal is about."""
        return statistics.median(self.ratios)

    @property
    def range(self) -> str:
        """The lowest and the highest ratio."""
        return f"{number(min(self.ratios))} to {number(max(self.ratios))}" if len(self.ratios) > 1 else ""

    @property
    def missed(self) -> bool:
        """Whether the median, or another figure, misses its goal."""
        judged = [(self.goal, self.median), *((figure.goal, figure.value) for figure in self.also)]
        return any(goal is not None and not goal.is_met(value) for goal, value in judged)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a benchmark was measured on."""

    processor: str
    cores: int
    memory_gib: float
    gpus: tuple[str, ...]
    system: str
    python: str
    packages: dict[str, str]

    def __str__(self) -> str:
        packages = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        hardware = [self.processor, f"{self.cores} cores", f"{self.memory_gib:.0f} GiB", *self.gpus]
        return "; ".join([", ".join(filter(None, hardware)), self.system, f"Python {self.python}", packages])


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one measurement, and where they come from. ``busy`` is the share of all cores that others used."""

    commit: str
    date: str
    took_s: float
    busy: float
    machine: Machine
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Scale:
    """How much to measure: ``quick`` sees whether a benchmark works, and its figures mean nothing."""

    quick: bool = False
    repeats: int | None = None

    def turns(self, usual: int) -> int:
        """Return how many turns to take."""
        return self.repeats or (min(usual, 2) if self.quick else usual)

    def size(self, usual: int, quick: int) -> int:
        """Return how large to make what is measured."""
        return quick if self.quick else usual


Turns = Sequence[Mapping[str, float]]


def in_turn(turns: int, actions: Mapping[str, Callable[[], float]]) -> Turns:
    """Measure one action after another, again and again, so that a drift in the machine's speed affects all of them."""
    return [{name: action() for name, action in actions.items()} for _ in range(turns)]


def ratios(turns: Turns, a: str, b: str) -> tuple[float, ...]:
    """Return what ``a`` took in each turn, relative to ``b``, with the digits that are worth keeping."""
    return tuple(float(f"{turn[a] / turn[b]:.4g}") for turn in turns)


def median(values: Iterable[float]) -> float:
    """Return the median of any iterable."""
    return statistics.median(list(values))


def number(value: float) -> str:
    """Return a number with the digits that a measurement has: three, and no exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"
