"""Which weights of the runs of a recipe differ, as a table of weights and steps."""

import math
from dataclasses import dataclass

from detaudit.model.figures import WeightCell, Weights
from detaudit.report.messages import weights as texts


@dataclass(frozen=True)
class WeightTable:
    """The weights that differ between the runs of a recipe."""

    name: str
    weights: Weights

    @property
    def sentence(self) -> str:
        """What it shows."""
        return texts.sentence(self.weights)

    @property
    def left_out(self) -> list[str]:
        """What it does not show."""
        return texts.left_out(self.weights)

    @property
    def columns(self) -> list[str]:
        """The heads of its columns."""
        return [texts.END if step is None else f"{step:,}" for step in self.weights.steps]

    @property
    def rows(self) -> list[tuple[str, str, list[dict[str, str]]]]:
        """The name of each weight, its type and shape, and its cells: what they show, their class, their words."""
        runs = len(self.weights.runs)
        return [
            (
                texts.name(row),
                texts.kind(row),
                [
                    {
                        "text": _text(cell),
                        "kind": _shade(cell),
                        "tip": f"{texts.name(row)}, {texts.step(step)}: {texts.cell(cell, runs)}",
                        "words": texts.cell(cell, runs),
                    }
                    for step, cell in zip(self.weights.steps, row.cells, strict=True)
                ],
            )
            for row in self.weights.rows
        ]


def _text(cell: WeightCell | None) -> str:
    if cell is None or cell.digests == 1:
        return "" if cell is None else "·"
    return "!" if cell.apart is None else f"{_power(cell.apart)}" if cell.apart else "≠"


def _shade(cell: WeightCell | None) -> str:
    """Return the class that colors a cell, from a rounding to sums that have nothing in common."""
    if cell is None or cell.digests == 1:
        return "x" if cell is None else "h0"
    return f"h{5 if cell.apart is None else max(1, min(5, (_power(cell.apart) + 11) // 2)) if cell.apart else 1}"


def _power(apart: float) -> int:
    return math.floor(math.log10(apart))
