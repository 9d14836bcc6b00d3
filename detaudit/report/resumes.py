"""What reports say about a training that was stopped and resumed: the answer, each stop, and what was lost."""

from collections.abc import Iterator

from detaudit.model import Resumption, Verdict
from detaudit.model.fact import both, count
from detaudit.model.resume import LOST, PLACES, Place, ResumedPoint, ResumeStatus
from detaudit.report import traces
from detaudit.report.document import Cell, Column, Mood, Table

_COLUMNS = (
    Column("STOPPED", left=True, comfort=28),
    Column("AFTER STEP", comfort=10),
    Column("RESUMED AFTER", comfort=13),
    Column("STEPS", comfort=6),
    Column("RESULT", left=True, comfort=12),
)
_RESULTS = {
    ResumeStatus.MATCHES: Cell("bit-identical", Mood.GOOD),
    ResumeStatus.DIFFERS: Cell("differs", Mood.BAD),
    ResumeStatus.ANEW: Cell("began anew", Mood.UNCLEAR),
    ResumeStatus.UNUSABLE: Cell("unusable", Mood.UNCLEAR),
}


def table(resumption: Resumption) -> Table | None:
    """Return a table of the stops, None if there was none."""
    rows = [
        (
            PLACES[one.place],
            f"{one.stopped_after:,}",
            "-" if one.resumed_after is None else f"{one.resumed_after:,}",
            f"{one.resumed_steps:,}",
            _RESULTS[one.status],
        )
        for one in resumption.points
    ]
    return Table(_COLUMNS, rows) if rows else None


def answer(resumption: Resumption) -> traces.Answer:
    """Return the answer: in a word or two, and in one sentence."""
    points, verdict = resumption.points, resumption.verdict
    differing = [one for one in points if one.status is ResumeStatus.DIFFERS]
    if differing:
        kinds = list(dict.fromkeys(lost.what for one in differing for lost in one.lost))
        lost = f" lost {both(LOST[kind] for kind in kinds)}" if kinds else " ends with a different result"
        return traces.Answer("differs", f"a resumed run{lost}")
    if verdict is Verdict.DETERMINISTIC:
        matching = sum(one.status is ResumeStatus.MATCHES for one in points)
        runs = "a run that was resumed" if matching == 1 else f"{count(matching, 'resumed run')}"
        return traces.Answer("matches", f"{runs}, bit-identical to an uninterrupted one")
    if not points:
        return traces.Answer("inconclusive", "the uninterrupted runs must match each other first")
    if all(one.status is ResumeStatus.ANEW for one in points):
        return traces.Answer("inconclusive", "nothing was resumed: each resumed run began anew")
    return traces.Answer("inconclusive", "no stop between checkpoints, or right after one, could be judged")


def lines(resumption: Resumption) -> Iterator[str]:
    """Yield what came of each stop, what was lost, and what the checkpoint has."""
    for one in resumption.points:
        yield one.text()
        yield from (f"  lost: {text}" for text in lost(one))
    checkpoints = [file.text() for one in resumption.points for file in one.checkpoints]
    yield from dict.fromkeys(checkpoints)


def lost(point: ResumedPoint) -> Iterator[str]:
    """Yield what was lost at a stop."""
    yield from (one.text() for one in point.lost)
    if point.status is ResumeStatus.DIFFERS and not point.lost:
        yield "what was recorded does not name it"


def restored(resumption: Resumption) -> tuple[list[str], list[str]]:
    """Return what a change that restores does, and the lines of its diff; both are empty if there is none."""
    change = resumption.restored
    return ([change.text()], change.diff.splitlines()) if change is not None else ([], [])


def notes(resumption: Resumption) -> list[str]:
    """Return which stops were not tried, and how many runs it took."""
    tried = {one.place for one in resumption.points}
    missing = [PLACES[place] for place in (Place.BETWEEN, Place.AT, Place.BEFORE) if place not in tried]
    if not resumption.points or Place.BY_ITSELF in tried:
        missing = []
    only = ["only the stop of --stop was tried"] if Place.BY_ITSELF in tried else []
    why = "the script saves when it is stopped" if Place.WHEN_STOPPED in tried else "there was no such step"
    untried = [f"not tried: {both(missing)}, as {why}"] if missing else []
    return [*only, *untried, f"{count(resumption.total_runs, 'run')} in total"]
