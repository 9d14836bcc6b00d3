"""What stands above, below and in the figure of the weights, one by one."""

from collections.abc import Sequence

from detaudit.model.fact import count
from detaudit.model.figures import WeightCell, WeightRow, Weights
from detaudit.model.wording import both, brief, every, shortened

TITLE = "Which weights differ first"
ABOUT = (
    "Weights are recorded one by one at steps 1, 2, 4, 8, … and at the end. A number is a power of ten: that of the "
    "largest difference between the sum of a weight and its sum in the first run, relative to the larger of the two. A "
    "dot says that all runs match, ≠ that digests differ and sums do not, ! that a sum is NaN or infinite."
)
END = "end"
_NAMED = 3


def step(column: int | None) -> str:
    """Return what a column stands for."""
    return "the end" if column is None else f"step {column:,}"


def name(row: WeightRow) -> str:
    """Return what a weight is called, by its place if its name is not known."""
    return row.kind.name or f"weight {row.place:,}"


def kind(row: WeightRow) -> str:
    """Return the type of a weight, and its shape if it has dimensions."""
    return f"{row.kind.dtype} {list(row.kind.shape)}" if row.kind.shape else row.kind.dtype


def cell(weight_cell: WeightCell | None, runs: int) -> str:
    """Return what a cell says in words."""
    if weight_cell is None:
        return "not recorded in every run"
    if weight_cell.digests == 1:
        return f"{every(runs, 'run')} match"
    if weight_cell.apart is None:
        apart = "a sum is NaN or infinite"
    else:
        apart = (
            f"sums differ by up to {brief(weight_cell.apart)} of the larger one"
            if weight_cell.apart
            else "the sums are equal"
        )
    return f"{count(weight_cell.digests, 'different digest')}, {apart}"


def sentence(weights: Weights) -> str:
    """Return which weights differ, and when they first do."""
    runs = every(len(weights.runs), "run")
    if not weights.rows:
        where = f"at {_steps(weights.listed)}, as far as all of them recorded it"
        return f"{runs} match in {_each(weights.count)} {where}"
    names = [name(row) for row in weights.rows][: weights.first]
    differ = "differs" if weights.differing == 1 else "differ"
    first = next(index for index, cell in enumerate(weights.rows[0].cells) if cell is not None and cell.digests > 1)
    return (
        f"{weights.differing:,} of {count(weights.count, 'weight')} {differ}, first at {step(weights.steps[first])}: "
        f"{shortened(names, weights.first - len(names), _NAMED)}"
    )


def left_out(weights: Weights) -> list[str]:
    """Return what the table does not show."""
    lines = []
    more = weights.differing - len(weights.rows)
    if more:
        lines.append(f"{count(more, 'more weight')} {'differs' if more == 1 else 'differ'}")
    hidden = [one for one in weights.listed if one not in weights.steps]
    if weights.rows and hidden:
        lines.append(f"not shown: {_steps(hidden)}")
    if weights.unlisted:
        are = "is" if weights.unlisted == 1 else "are"
        lines.append(f"{count(weights.unlisted, 'more weight')} {are} not recorded one by one")
    return lines


def _each(number: int) -> str:
    return "the only weight" if number == 1 else f"each of {number:,} weights"


def _steps(columns: Sequence[int | None]) -> str:
    numbers = [f"{one:,}" for one in columns if one is not None]
    words = both([*numbers, *(["the end"] if None in columns else [])])
    return f"step{'s' * (len(numbers) > 1)} {words}" if numbers else words
