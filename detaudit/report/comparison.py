"""What the reporters for people say of a comparison: both sides, the losses, where they part, what ended unlike."""

import shlex

from detaudit.model import UNHOOKED, Comparison, Difference, Likeness, LossPair, RankRecord, Side, Stage, digits
from detaudit.report import words

SIDES = ("SIDE", "RANK", "SUM OF WEIGHTS", "FINAL LOSS", "STEPS", "DIGEST")
CURVE = ("STEP", "LOSS A", "LOSS B", "DIFFERENCE")
WEIGHTS = ("RANK", "WEIGHT", "TYPE", "SHAPE", "SUM A", "SUM B")

LEFT = ("SIDE", "DIGEST", "TYPE", "SHAPE")

NEAR = 2
MOST_WEIGHTS = 10
MOST_CHANGES = 20

_FIRST = {
    Stage.RNG: "the random generators",
    Stage.BATCH: "the model's inputs",
    Stage.FORWARD: "the loss",
    Stage.BACKWARD: "the gradients",
    Stage.UPDATE: "the weights",
    Stage.STDOUT: "the printed losses",
}


def heading(found: Comparison) -> list[str]:
    """Return what is compared, a line for each side; with the commands where they are not the same."""
    unlike = found.a.command != found.b.command
    return [
        f"{letter}: {side.name}, {words.held(side.recipe)}{f' ({shlex.join(side.command)})' * unlike}"
        for letter, side in _sides(found)
    ]


def _sides(found: Comparison) -> tuple[tuple[str, Side], ...]:
    return ("A", found.a), ("B", found.b)


def sides(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of the final fingerprints; the rank is left out where no side has two."""
    rows = [_side(letter, rank) for letter, side in _sides(found) for rank in side.ranks]
    return _table(SIDES, rows, max(len(found.a.ranks), len(found.b.ranks)) > 1)


def _side(letter: str, rank: RankRecord) -> list[str]:
    total, loss = digits(rank.sum_of_weights), digits(rank.final_loss)
    return [letter, words.rank_name(rank), total, loss, _steps(rank), _digest(rank)]


def _table(headers: tuple[str, ...], rows: list[list[str]], ranks: bool) -> tuple[list[str], list[list[str]]]:
    if ranks:
        return list(headers), rows
    place = headers.index("RANK")
    return [name for name in headers if name != "RANK"], [row[:place] + row[place + 1 :] for row in rows]


def _has_ranks(found: Comparison) -> bool:
    return max(len(_trainings(side)) for _, side in _sides(found)) > 1


def _trainings(side: Side) -> list[RankRecord]:
    return [record for record in side.ranks if record.framework not in UNHOOKED]


def _steps(record: RankRecord) -> str:
    return "-" if record.framework == Stage.ARTIFACT else str(record.steps)


def _digest(record: RankRecord) -> str:
    return record.digest[:8] if record.digest else "-"


def curve(found: Comparison) -> list[list[str]]:
    """Return the losses of one rank in rows of CURVE: those around the step at which they part, then ever fewer.

    That is the rank in which the sides first differ, or else the first whose losses do. Nothing where all agree.
    """
    unlike = [pair.rank for pair in found.curve if pair.a != pair.b]
    if not unlike:
        return []
    rank = found.differs.rank if found.differs and found.differs.rank in unlike else unlike[0]
    pairs = [pair for pair in found.curve if pair.rank == rank]
    turn = next(place for place, pair in enumerate(pairs) if pair.a != pair.b)
    shown = [*pairs[max(0, turn - NEAR) : turn + NEAR + 1]]
    shown += [pair for pair in pairs[turn + NEAR + 1 :] if pair.step & (pair.step - 1) == 0 or pair is pairs[-1]]
    return [_pair(pair) for pair in shown]


def _pair(pair: LossPair) -> list[str]:
    distance = "-" if pair.distance is None else format(pair.distance, ".3g")
    return [str(pair.step), digits(pair.a), digits(pair.b), distance]


def sentence(found: Comparison) -> str:
    """Return what it comes to."""
    if found.differs is not None:
        return f"{_where(found, found.differs)}{_until(found, found.differs)}"
    if not found.steps_compared:
        return "bit-identical at the end; no step was kept on both sides"
    steps = f"{found.steps_compared} step{'s' * (found.steps_compared != 1)}"
    return f"bit-identical at the end and at all {steps} that both sides kept"


def _where(found: Comparison, differs: Difference) -> str:
    rank = f" of rank {differs.rank}" if _has_ranks(found) and differs.stage not in UNHOOKED else ""
    match differs.stage:
        case Stage.STEPS:
            return _steps_where(found, differs)
        case Stage.ARTIFACT:
            return f"the file {differs.site} differs"
        case Stage.INIT:
            return f"the weights{rank} differ before {'the first step' if not differs.step else f'step {differs.step}'}"
        case Stage.UPDATE if found.equal_until == differs.step:
            return f"the final weights or loss{rank} differ"
        case _:
            verb = "differs" if differs.stage is Stage.FORWARD else "differ"
            return f"{_FIRST[differs.stage]}{rank} first {verb} at step {differs.step}"


def _steps_where(found: Comparison, differs: Difference) -> str:
    a, b = (_trainings(side) for _, side in _sides(found))
    if not differs.step:
        return f"A has {len(a)} rank{'s' * (len(a) != 1)}, B {len(b)}"
    if differs.rank >= len(a):
        return f"one side printed no loss of step {differs.step}"
    end = f"A ended after step {a[differs.rank].steps}, B after step {b[differs.rank].steps}"
    return f"rank {differs.rank}: {end}" if _has_ranks(found) else end


def _until(found: Comparison, differs: Difference) -> str:
    if found.equal_until is None or differs.stage in (Stage.ARTIFACT, Stage.INIT):
        return ""
    return f" (equal {'up to' if differs.stage is Stage.STEPS else 'at'} step {found.equal_until})"


def losses_line(found: Comparison) -> str:
    """Return that the losses agree though something differs, ``""`` where they do not or none were kept."""
    if found.verdict is Likeness.SAME or not found.curve or any(pair.a != pair.b for pair in found.curve):
        return ""
    return f"the losses agree at all {len(found.curve)} steps that both sides kept"


def stages_line(found: Comparison) -> str:
    """Return which stages were compared."""
    if not found.stages:
        return "compared: the end alone"
    return f"compared: {', '.join(found.stages)}, at {found.steps_compared} steps, and the end"


def environment_lines(found: Comparison) -> list[str]:
    """Return what is not the same of both environments."""
    return words.changes(found.environment, MOST_CHANGES, "(--format json)")


def weights_line(found: Comparison) -> str:
    """Return how many tensors ended unlike, ``""`` where none do."""
    if not found.weights:
        return ""
    more = f"; the first {MOST_WEIGHTS}" if len(found.weights) > MOST_WEIGHTS else ""
    return f"weights that ended unlike: {len(found.weights)} of {found.weights_compared}{more}"


def weights(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of the first tensors that ended unlike."""
    rows = []
    for pair in found.weights[:MOST_WEIGHTS]:
        shape = "x".join(map(str, pair.shape)) or "()"
        rows.append([str(pair.rank), str(pair.place), pair.dtype, shape, digits(pair.a), digits(pair.b)])
    return _table(WEIGHTS, rows, _has_ranks(found))
