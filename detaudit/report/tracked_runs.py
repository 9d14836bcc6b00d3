"""What an experiment tracker shows of one run of an audit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from detaudit.model import Group, Number, RankRecord, Run, Status
from detaudit.model.figures import LossSamples
from detaudit.report import run_table
from detaudit.report.messages import differences, problems
from detaudit.report.plain import line

MOST_RANKS = 8
"""Ranks of a run that have metrics of their own."""

Points = Sequence[tuple[int, float]]
"""Values by step, ascending."""


@dataclass(frozen=True)
class TrackedRun:
    """A run of the script with a recipe, or of a trial. ``seconds`` is how long it took."""

    recipe: str
    number: int
    status: Status
    seconds: float
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    curves: Mapping[str, Points] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What no other run of its audit has, nor one that was interrupted and done again under this number."""
        return f"{self.recipe}/{self.number}/{self.seconds}"

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.recipe}, run {self.number}"


def tracked_run(group: Group, run: Run, samples: Sequence[LossSamples]) -> TrackedRun:
    """Return what a tracker shows of a run. All text is plain."""
    recipe = group.recipe
    return TrackedRun(
        recipe=line(recipe.name),
        number=run.id,
        status=run.status,
        seconds=run.wall_s,
        params={"recipe": line(recipe.name), "seed": str(recipe.seed)},
        tags={name: line(text) for name, text in _tags(group, run) if text},
        metrics={name: value for name, value in _metrics(run) if value is not None},
        curves=dict(_curves([one for one in samples if one.run == run.id])),
    )


def _tags(group: Group, run: Run) -> Iterator[tuple[str, str]]:
    yield "status", run.status
    yield "flags", ", ".join(group.recipe.flags)
    yield "error", problems.errors(run.errors)
    if run.first_difference is not None:
        yield "first_difference", differences.in_table(run.first_difference)
    for suffix, rank in _ranks(run):
        yield f"digest{suffix}", rank.digest or ""


def _metrics(run: Run) -> Iterator[tuple[str, float | None]]:
    yield "duration_s", run.wall_s
    yield "steps", run.steps
    yield "result", run.result
    for suffix, rank in _ranks(run):
        yield f"sum_of_weights{suffix}", _number(rank.sum_of_weights)
        yield f"final_loss{suffix}", _number(rank.final_loss)


def _ranks(run: Run) -> Iterator[tuple[str, RankRecord]]:
    """Yield the fingerprints of a run, each with the end of its names: empty if there is only one."""
    for rank in run.ranks[:MOST_RANKS]:
        yield "" if len(run.ranks) == 1 else _suffix(run_table.rank_name(rank)), rank


def _suffix(rank: str) -> str:
    return f".rank_{rank}" if rank.isdecimal() else f".{rank}"


def _curves(samples: Sequence[LossSamples]) -> Iterator[tuple[str, Points]]:
    for one in samples:
        suffix = "" if len(samples) == 1 else _suffix(str(one.rank))
        losses = zip(one.steps, map(_number, one.losses), strict=True)
        yield f"loss{suffix}", [(step, loss) for step, loss in losses if loss is not None]
        if one.distances:
            distances = zip(one.steps, one.distances, strict=True)
            yield f"loss_distance{suffix}", [(step, apart) for step, apart in distances if apart is not None]


def _number(value: Number) -> float | None:
    return None if value is None else float(value)
