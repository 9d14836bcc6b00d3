"""What stands above and below the figures of an HTML report, and what they are called for those who cannot see them."""

from collections.abc import Sequence

from detaudit.model import Confidence, Number, StepSpread, TensorGrid, as_number, digits
from detaudit.model.fact import both, brief, count, duration, every, shortened
from detaudit.model.figures import Curve, Ladder, Losses, NoFigure, Steps, WeightCell, WeightRow, Weights

RUNS = "Runs with the same result share a letter and a color. Digits that all runs share are gray."
LADDER = (
    "Of a step, the first stage that differs points to the cause. A number says how many different digests the runs "
    "have, a dot that all match. A frame marks where a run first differs."
)
LOSSES = "The loss of each run by step. Move over a figure, or focus it and use the arrow keys, to read the values."
DISTANCES = (
    "How far the loss is from that of the first run, on a logarithmic scale. Steps at which both are bit-identical are "
    "in the band below."
)
DISTANCES_A_B = (
    "How far the loss of B is from that of A, on a logarithmic scale. Steps at which both are bit-identical are in the "
    "band below."
)
STRIP = "What chance alone changes. A change of the script that moves the loss less than this shows nothing."
FLAGS = "What each recipe sets, and what became of it in the training."
SETTINGS = "Settings of the frameworks and variables at the end of the first process that trained."
FILE = "This page is one file: it loads nothing, and says the same without scripts."
MATRIX = (
    "A column for each trial, in the order in which they were made: ● set, ○ left out of the set that was found, "
    "· not set."
)
SET, LEFT_OUT, NOT_SET = "set", "left out of the set that was found", "not set"
PROOF_ABOUT = "The probability that a difference goes unnoticed, by the share of runs in which it shows up."
COSTS = (
    "The time of a training with the flag over that without it, of pairs of runs that took turns: the median, and "
    "between which of them it is. A range with 1x in it is no measurable cost. An empty dot is an alternative."
)
TIMES = "Each run is as wide as it was long, in the color of its trial; its number is below."
PROOF = "one mismatch is proof"
REFERENCE = "the others are compared with it"
EQUAL = "equal"
NOT_FINITE = "NaN or infinite"

SPREAD = (
    "Of the operations that both instrumented runs have in a step, the share that returns something different. Some "
    "absorb the difference: they take something different, and return the same."
)
WHERE = "The elements in their order, in equal parts: the stronger the color, the more of them differ."
MOST_ULP = "largest difference in units in the last place (ulp), the steps from one number to the next"
MOST_ABSOLUTE = "largest difference"
MOST_RELATIVE = "largest difference beside the larger of the two values"
NANS = "elements with NaN on at least one side, not counted in the difference"

_ULPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""The distance from 1 to the next number, by type."""

_MISSING = {
    NoFigure.LOGS_GONE: "no figures: the event logs of these runs are not in the results folder",
    NoFigure.LOGS_NOT_FETCHED: "no figures: the losses are in event logs that were not fetched, "
    "since no step of them was needed; `detaudit plan --records logs` keeps them with the runs",
    NoFigure.NO_LOSSES: "no loss was recorded: pass it to `detaudit.record`, or read it with --loss-pattern",
}


def missing(why: NoFigure) -> str:
    """Return why there are no figures."""
    return _MISSING[why]


def proof_title(runs: int) -> str:
    """Return what the curve of a proof is about."""
    return f"What {count(runs, 'matching run')} would catch"


def missed(confidence: Confidence) -> str:
    """Return the point of the curve of a proof at the level of confidence."""
    return f"in {confidence.max_differing_rate:.0%} of runs: unnoticed with probability {1 - confidence.level:.0%}"


def cost(value: float, ends: tuple[float, float], pairs: int) -> str:
    """Return the cost of a flag with its range."""
    return f"{value:.2f}x ({ends[0]:.2f}x to {ends[1]:.2f}x, {count(pairs, 'pair')})"


def times(runs: int, seconds: float) -> str:
    """Return how long all runs took."""
    return f"{count(runs, 'run')} took {duration(seconds, '.0f')}"


def more_flags(number: int) -> str:
    """Return how many flags are not shown."""
    return f"and {count(number, 'more flag', 'more flags')} in the table of trials"


def ulps(length: int) -> str:
    """Return the distances in ulps of this length in bits."""
    if length < 2:
        return f"{length} ulp"
    return f"{2 ** (length - 1):,} to {2**length - 1:,} ulp"


def where(slices: Sequence[int]) -> str:
    """Return in how many parts of a tensor elements differ."""
    return f"elements differ in {sum(map(bool, slices)):,} of {count(len(slices), 'equal part')} of the tensor"


def matrix(grid: TensorGrid) -> str:
    """Return in how many parts of the rows and of the columns of a tensor elements differ."""
    rows, columns = grid.counts, list(zip(*grid.counts, strict=False))
    parts = (
        f"{sum(map(any, lines)):,} of {count(len(lines), 'equal part')} of its {total:,} {name}"
        for lines, total, name in ((rows, grid.rows, "rows"), (columns, grid.columns, "columns"))
    )
    return f"elements of the tensor differ in {both(parts)}"


def matrix_about(grid: TensorGrid) -> str:
    """Return how a tensor is drawn."""
    return (
        f"{grid.rows:,} rows from top to bottom and {grid.columns:,} columns from left to right, in equal parts: the "
        "stronger the color, the more of their elements differ."
    )


def mismatched(number: int, total: int) -> str:
    """Return how many elements of a tensor differ."""
    return f"{number:,} of {count(total, 'element')} {'differs' if number == 1 else 'differ'}"


def spread(step_spread: StepSpread) -> str:
    """Return how many operations of a step differ."""
    return f"{step_spread.differing:,} of {step_spread.operations:,}"


def losses_apart(losses: tuple[Number, Number] | None) -> str:
    """Return how far the losses of two runs are apart at a step, ``-`` if one has none."""
    if losses is None or None in losses:
        return "-"
    a, b = losses
    if a == b:
        return EQUAL
    if isinstance(a, float | int) and isinstance(b, float | int):
        return brief(as_number(abs(a - b)))
    return NOT_FINITE


def more_results(number: int) -> str:
    """Return how many results are not shown."""
    return f"and {count(number, 'more result', 'more results')}"


def matches(run: int) -> str:
    """Return that a run matches another."""
    return f"matches run {run}"


def steps(column: Steps) -> str:
    """Return the steps that a column stands for."""
    first, last = column
    return f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"


def between(least: float, greatest: float) -> str:
    """Return a range, with all digits if it is too narrow for a few."""
    few, more = (brief(least), brief(greatest)), (digits(least), digits(greatest))
    return " to ".join(dict.fromkeys(more if few[0] == few[1] else few))


def cell(number: int | None, runs: int) -> str:
    """Return what a cell of the ladder says."""
    if number is None:
        return "not recorded in every run"
    return f"{every(runs, 'run')} match" if number == 1 else count(number, "different digest")


def ladder(figure: Ladder) -> str:
    """Return what the ladder shows."""
    differing = [row.stage for row in figure.rows if any(number and number > 1 for number in row.counts)]
    if not figure.first and differing:
        return f"runs differ in {both(differing)}"
    if not figure.first:
        return f"{every(len(figure.runs), 'run')} match in each stage and step that all of them recorded"
    return f"runs first differ at {both(f'step {step:,} ({stage})' for stage, step in figure.first)}"


def runs(curve: Curve, letter: str) -> str:
    """Return the letter of a curve, and the runs that share it."""
    return f"{letter} " * bool(letter) + f"run{'s' * (len(curve.runs) > 1)} {shortened(map(str, curve.runs), most=8)}"


def losses(figure: Losses) -> str:
    """Return what the curves show."""
    total = sum(len(curve.runs) for curve in figure.curves)
    if len(figure.curves) == 1:
        return f"the losses of {every(total, 'run')} match at every step" if total > 1 else "the losses of 1 run"
    first = f" from step {figure.first:,} on" if figure.first is not None else ""
    return f"{count(total, 'run')} with {count(len(figure.curves), 'different curve')}{first}"


def binned(figure: Losses) -> str:
    """Return how many steps a point stands for, ``""`` if it is one."""
    most = max(last - first + 1 for first, last in figure.bins)
    return f"each point stands for up to {most:,} steps, except near the first difference" if most > 1 else ""


def loss_type(figure: Losses) -> str:
    """Return the type of the losses and how fine it is, ``""`` if it is not known."""
    if figure.dtype is None:
        return ""
    ulp = _ULPS.get(figure.dtype)
    fine = f", in which 1 ulp is up to {brief(ulp)} of a value" if ulp else ""
    return f"the losses are of type {figure.dtype}{fine}"


def farthest(figure: Losses) -> str:
    """Return how far the losses are apart at first and at most, ``""`` if they match."""
    if figure.first is None:
        return ""
    apart = [
        (one.greatest, steps(bin_))
        for curve in figure.curves
        for bin_, one in zip(figure.bins, curve.distances, strict=False)
        if one and one.greatest
    ]
    if not apart:
        return f"the losses first differ at step {figure.first:,}, where one is not a finite number"
    most, where = max(apart)
    return f"the losses first differ at step {figure.first:,}; the largest difference is {brief(most)}, at {where}"


WEIGHTS_TITLE = "Which weights differ first"
WEIGHTS_ABOUT = (
    "Weights are recorded one by one at steps 1, 2, 4, 8, … and at the end. A number is a power of ten: that of the "
    "largest difference between the sum of a weight and its sum in the first run, relative to the larger of the two. A "
    "dot says that all runs match, ≠ that digests differ and sums do not, ! that a sum is NaN or infinite."
)
WEIGHTS_END = "end"
_NAMED = 3


def column_title(column: int | None) -> str:
    """Return what a column stands for."""
    return "the end" if column is None else f"step {column:,}"


def weight_name(row: WeightRow) -> str:
    """Return what a weight is called, by its place if its name is not known."""
    return row.kind.name or f"weight {row.place:,}"


def weight_kind(row: WeightRow) -> str:
    """Return the type of a weight, and its shape if it has dimensions."""
    return f"{row.kind.dtype} {list(row.kind.shape)}" if row.kind.shape else row.kind.dtype


def weight_cell(cell: WeightCell | None, runs: int) -> str:
    """Return what a cell says in words."""
    if cell is None:
        return "not recorded in every run"
    if cell.digests == 1:
        return f"{every(runs, 'run')} match"
    if cell.apart is None:
        apart = "a sum is NaN or infinite"
    else:
        apart = f"sums differ by up to {brief(cell.apart)} of the larger one" if cell.apart else "the sums are equal"
    return f"{count(cell.digests, 'different digest')}, {apart}"


def weights_sentence(weights: Weights) -> str:
    """Return which weights differ, and when they first do."""
    runs = every(len(weights.runs), "run")
    if not weights.rows:
        where = f"at {_steps_listed(weights.listed)}, as far as all of them recorded it"
        return f"{runs} match in {_each_weight(weights.count)} {where}"
    names = [weight_name(row) for row in weights.rows][: weights.first]
    differ = "differs" if weights.differing == 1 else "differ"
    first = next(index for index, one in enumerate(weights.rows[0].cells) if one is not None and one.digests > 1)
    at = column_title(weights.steps[first])
    return (
        f"{weights.differing:,} of {count(weights.count, 'weight')} {differ}, first at {at}: "
        f"{shortened(names, weights.first - len(names), _NAMED)}"
    )


def weights_left_out(weights: Weights) -> list[str]:
    """Return what the table does not show."""
    lines = []
    more = weights.differing - len(weights.rows)
    if more:
        lines.append(f"{count(more, 'more weight')} {'differs' if more == 1 else 'differ'}")
    hidden = [one for one in weights.listed if one not in weights.steps]
    if weights.rows and hidden:
        lines.append(f"not shown: {_steps_listed(hidden)}")
    if weights.unlisted:
        are = "is" if weights.unlisted == 1 else "are"
        lines.append(f"{count(weights.unlisted, 'more weight')} {are} not recorded one by one")
    return lines


def _each_weight(number: int) -> str:
    return "the only weight" if number == 1 else f"each of {number:,} weights"


def _steps_listed(columns: Sequence[int | None]) -> str:
    numbers = [f"{one:,}" for one in columns if one is not None]
    words = both([*numbers, *(["the end"] if None in columns else [])])
    return f"step{'s' * (len(numbers) > 1)} {words}" if numbers else words
