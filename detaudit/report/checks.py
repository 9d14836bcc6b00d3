"""What is said of checks and comparisons."""

import shlex
from collections.abc import Iterator

from detaudit.model import (
    NAMED,
    UNHOOKED,
    Check,
    CheckedAudit,
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Difference,
    Gate,
    GateName,
    GateStatus,
    LossPair,
    RankRecord,
    Stage,
    digits,
)
from detaudit.model.check import MatchesBaseline, RunsMatch
from detaudit.model.fact import brief, count, duration, shortened
from detaudit.model.stage import STAGES
from detaudit.report import groups
from detaudit.report.document import (
    DIGEST,
    FINAL_LOSS,
    RANK,
    RUNS,
    STEPS,
    SUM_OF_WEIGHTS,
    TIME,
    Block,
    Cell,
    Column,
    Heading,
    Items,
    Mood,
    Stderr,
    Table,
)

# What reports say about a check: its gates, and why some did not pass.


_RESULT = Column("RESULT", left=True, comfort=12)
_GATES = (Column("AUDIT", left=True, comfort=16), Column("GATE", left=True, comfort=16), _RESULT, RUNS, TIME)
_MOODS = {
    GateStatus.PASSED: Mood.GOOD,
    GateStatus.FAILED: Mood.BAD,
    GateStatus.INCOMPARABLE: Mood.UNCLEAR,
    GateStatus.INCONCLUSIVE: Mood.UNCLEAR,
}
MOST_CHANGES = 12


def table(check: Check) -> Table:
    """Return a table of the gates; the first one of each audit has its runs, and the time that they took."""
    rows = []
    for one in check.audits:
        runs = one.audit.groups[0].runs if one.audit.groups else ()
        took = duration(sum(run.wall_s for run in runs))
        first = (one.name, f"{len(runs):,}", took)
        if not one.gates:
            rows.append((one.name, "-", "interrupted", first[1], took))
        for gate in one.gates:
            rows.append((first[0], gate.name, Cell(status(gate), _MOODS[gate.status]), first[1], first[2]))
            first = ("", "", "")
    return Table(_GATES, rows)


def status(gate: Gate) -> str:
    """Return a gate's status, and whether it is only a warning."""
    warning = gate.status is not GateStatus.PASSED and not gate.blocking
    return f"{gate.status} (warning)" if warning else gate.status


def sentence(check: Check) -> str:
    """Return how many gates have each status, the worst first."""
    statuses = [gate.status for one in check.audits for gate in one.gates]
    order = (GateStatus.FAILED, GateStatus.INCOMPARABLE, GateStatus.INCONCLUSIVE, GateStatus.PASSED)
    return ", ".join(f"{statuses.count(status):,} {status}" for status in order if status in statuses) or "no gate ran"


def gate_details(check: Check) -> Iterator[list[Block]]:
    """Yield what is known of the gates, each below its heading; see details_of_gates."""
    for one, gate, blocks in details_of_gates(check):
        yield [Heading(f"{one.name}, {gate.name}: {status(gate)}"), *blocks]


def details_of_gates(check: Check) -> Iterator[tuple[CheckedAudit, Gate, list[Block]]]:
    """Yield what is known about each gate that did not pass, or that passed with a reservation.

    That is a changed environment, a step after which runs were ended, or how rare a difference would go unnoticed.
    """
    for one in check.audits:
        for gate in one.gates:
            ended = isinstance(gate.detail, RunsMatch | MatchesBaseline) and gate.detail.through is not None
            sure = surety(one, gate)
            if gate.status is not GateStatus.PASSED or gate.environment_changes or ended or sure:
                changes = groups.changes(gate.environment_changes, MOST_CHANGES, "in check.json")
                lines = [gate.detail.text(), *sure, *_sources(one, gate), *changes]
                stderr = _stderr(one, gate)
                yield one, gate, [Items(lines), *([stderr] if stderr else [])]


def surety(one: CheckedAudit, gate: Gate) -> list[str]:
    """Return how rare a difference the matching runs of a gate would have caught."""
    if gate.name is not GateName.REPEATABLE or gate.status is not GateStatus.PASSED:
        return []
    return [line for group in one.audit.groups if (line := groups.evidence_line(group))]


def _sources(one: CheckedAudit, gate: Gate) -> list[str]:
    """Return the lines of the user's code that may be why runs differ."""
    if gate.name is not GateName.REPEATABLE or gate.status is not GateStatus.FAILED:
        return []
    return [line for group in one.audit.groups for line in groups.source_lines(group.sources)]


def _stderr(one: CheckedAudit, gate: Gate) -> Stderr | None:
    """Return the last lines of a run that failed, below the first gate of its audit."""
    if gate.status is not GateStatus.INCONCLUSIVE or gate is not one.gates[0]:
        return None
    return next(filter(None, map(groups.stderr, one.audit.groups)), None)


def lock_lines(check: Check) -> list[str]:
    """Return what changed in the lock file."""
    return [change.text() for change in check.lock_changes]


# What reports say about a comparison: both recordings, the losses, the first difference, the final weights.


_RECORDINGS = (Column("RECORDING", left=True), RANK, SUM_OF_WEIGHTS, FINAL_LOSS, STEPS, DIGEST)
_LOSSES = (Column("STEP"), Column("LOSS A"), Column("LOSS B"), Column("DIFFERENCE", drop=12))
_WEIGHTS = (
    RANK,
    Column("WEIGHT"),
    Column("TYPE", left=True, drop=3),
    Column("SHAPE", left=True, drop=4),
    Column("SUM A"),
    Column("SUM B"),
)

NEAR = 2
MOST_WEIGHTS = 10
MOST_COMPARED_CHANGES = 20
MOST_CODE = 8


def heading(comparison: Comparison) -> list[str]:
    """Return what is compared, a line for each side, with the commands if they differ."""
    differ = bool(comparison.a.command and comparison.b.command) and comparison.a.command != comparison.b.command
    return [
        f"{letter}: {side.name}{_state(side)} (recipe {groups.recipe_summary(side.recipe)})"
        + (f", recorded by: {shlex.join(side.command)}" if differ else "")
        for letter, side in _sides(comparison)
    ]


def _state(side: ComparedSide) -> str:
    """Return what a side has beside its commit: the working tree says on which one it stands."""
    if not side.changed:
        return ""
    return f" at {side.commit[:10]} with {count(len(side.changed), 'changed file')}"


def repeats(comparison: Comparison) -> list[str]:
    """Return whether each side repeats itself, and how rare a difference would be noticed; nothing of recordings."""
    said = {
        letter: f"{groups.verdict(side.group)}, {groups.verdict_sentence(side.group)}"
        + "".join(f"; {line}" for line in [groups.evidence_line(side.group)] if line)
        for letter, side in _sides(comparison)
        if side.group is not None and side.group.runs
    }
    if len(said) == 2 and len({*said.values()}) == 1:
        return [f"each side: {said['A']}"]
    return [f"{letter}: {line}" for letter, line in said.items()]


def code_line(comparison: Comparison) -> str:
    """Return which of the files that the runs loaded differ, ``""`` of recordings, or if none does."""
    if not comparison.code:
        return ""
    return f"code that was loaded and differs: {shortened(comparison.code, most=MOST_CODE)}"


def _sides(comparison: Comparison) -> tuple[tuple[str, ComparedSide], ...]:
    return ("A", comparison.a), ("B", comparison.b)


def recordings(comparison: Comparison) -> Table:
    """Return a table of the final fingerprints, without the column of ranks if neither side has several."""
    table = Table(_RECORDINGS, [_recording(letter, rank) for letter, side in _sides(comparison) for rank in side.ranks])
    table = groups.of_calls(table) if groups.calls_only((*comparison.a.ranks, *comparison.b.ranks)) else table
    several = max(len(comparison.a.ranks), len(comparison.b.ranks)) > 1
    return groups.of_parts(table) if several else groups.without_ranks(table)


def _recording(letter: str, rank: RankRecord) -> list[str]:
    weights, loss = digits(rank.sum_of_weights), digits(rank.final_loss)
    steps = "-" if rank.framework in (Stage.ARTIFACT, Stage.SAVED) else f"{rank.steps:,}"
    return [letter, groups.rank_name(rank), weights, loss, steps, groups.short_digest(rank)]


def _has_ranks(comparison: Comparison) -> bool:
    return max(len(_trainings(side)) for _, side in _sides(comparison)) > 1


def _trainings(side: ComparedSide) -> list[RankRecord]:
    return [record for record in side.ranks if record.framework not in UNHOOKED]


def losses(comparison: Comparison) -> Table:
    """Return a table of the losses of one rank: those around the step at which they diverge, then ever fewer.

    That is the rank in which the sides first differ, else the first whose losses do. It has no rows if all match.
    """
    differing = [pair.rank for pair in comparison.losses if pair.a != pair.b]
    if not differing:
        return Table(_LOSSES, [])
    first = comparison.first_difference
    rank = first.rank if first and first.rank in differing else differing[0]
    pairs = [pair for pair in comparison.losses if pair.rank == rank]
    turn = next(index for index, pair in enumerate(pairs) if pair.a != pair.b)
    shown = [*pairs[max(0, turn - NEAR) : turn + NEAR + 1]]
    shown += [pair for pair in pairs[turn + NEAR + 1 :] if pair.step & (pair.step - 1) == 0 or pair is pairs[-1]]
    return Table(_LOSSES, [_pair(pair) for pair in shown])


def _pair(pair: LossPair) -> list[str]:
    return [f"{pair.step:,}", digits(pair.a), digits(pair.b), brief(pair.distance)]


def comparison_sentence(comparison: Comparison) -> str:
    """Return where the recordings first differ, or what was compared if they do not, or why that is not known."""
    if comparison.doubts:
        return "; ".join(one.text() for one in comparison.doubts)
    if comparison.first_difference is not None:
        return (
            f"{_where(comparison, comparison.first_difference)}{_last_equal(comparison, comparison.first_difference)}"
        )
    if comparison.open is not None:
        return comparison.open.open_reason(0)
    if comparison.through is not None:
        steps = count(comparison.steps_compared, "step")
        through = f"bit-identical through step {comparison.through:,}, at {steps} recorded on both sides"
        return f"{through}; later ones are unknown"
    if not comparison.steps_compared:
        return "bit-identical at the end; no step is recorded on both sides"
    steps = "the one step" if comparison.steps_compared == 1 else f"all {count(comparison.steps_compared, 'step')}"
    return f"bit-identical at the end and at {steps} recorded on both sides"


def _where(comparison: Comparison, first: Difference) -> str:
    rank = f" of rank {first.rank}" if _has_ranks(comparison) and first.stage not in UNHOOKED else ""
    match first.stage:
        case Stage.STEPS:
            return _steps_where(comparison, first)
        case Stage.SAVED | Stage.PRINTED | Stage.EXIT if first.output is not None:
            return f"{first.output.text()} differs"
        case Stage.ARTIFACT | Stage.SAVED:
            return f"the file {first.site} differs"
        case Stage.RETURNED:
            return f"the value returned by the test differs{f' at {first.site}' if first.site else ''}"
        case Stage.INIT:
            return f"the weights{rank} differ before {f'step {first.step:,}' if first.step else 'the first step'}"
        case Stage.UPDATE if first.at_end:
            return f"the final weights or loss{rank} differ"
        case Stage.STATE if first.at_end:
            return f"the final state of a model{rank} differs"
        case Stage.OUTPUT if first.at_end:
            return f"what models returned after the last update{rank} differs"
        case _:
            verb = "differs" if first.stage is Stage.FORWARD else "differ"
            unit = "call" if first.call else "step"
            return f"{STAGES[first.stage].subject}{rank} first {verb} at {unit} {first.step:,}"


def _steps_where(comparison: Comparison, first: Difference) -> str:
    a, b = (_trainings(side) for _, side in _sides(comparison))
    if not first.step:
        return f"A has {count(len(a), 'rank')}, B has {len(b):,}"
    if first.rank >= len(a):
        return f"only one side printed a loss for step {first.step:,}"
    end = f"A ended after step {a[first.rank].steps}, B after step {b[first.rank].steps}"
    return f"rank {first.rank}: {end}" if _has_ranks(comparison) else end


def _last_equal(comparison: Comparison, first: Difference) -> str:
    if comparison.last_equal_step is None or first.stage in (*NAMED, Stage.INIT):
        return ""
    return f" (last equal: step {comparison.last_equal_step:,})"


def explanation(comparison: Comparison) -> str:
    """Return what the first difference points to, ``""`` if that is not known."""
    if comparison.first_difference is None or comparison.explanation is None:
        return ""
    return comparison.explanation.text(comparison.first_difference.stage)


def losses_line(comparison: Comparison) -> str:
    """Return that the losses match although something differs, ``""`` if they do not, or none were recorded."""
    if (
        comparison.verdict is not ComparisonVerdict.DIFFERENT
        or not comparison.losses
        or any(pair.a != pair.b for pair in comparison.losses)
    ):
        return ""
    steps = len({pair.step for pair in comparison.losses})
    return f"the losses match at {'the one step' if steps == 1 else f'all {steps:,} steps'} recorded on both sides"


def was_compared(comparison: Comparison) -> bool:
    """Whether there was something to compare: of a side that failed, there is not."""
    return bool(comparison.a.ranks and comparison.b.ranks) or not comparison.groups


def stages_line(comparison: Comparison) -> str:
    """Return which stages were compared."""
    if not comparison.stages:
        return "compared: final state only"
    return f"compared: {', '.join(comparison.stages)}, at {count(comparison.steps_compared, 'step')} and at the end"


def environment_lines(comparison: Comparison) -> list[str]:
    """Return how the environments differ."""
    return groups.changes(comparison.environment_changes, MOST_COMPARED_CHANGES, "(--format json)")


def outputs_lines(comparison: Comparison) -> list[str]:
    """Return each file and stream that differs, and whether that decides."""
    read = [one for one in comparison.output_differences if one.unread is None]
    unread = [f"not read: {one.unread.text()}" for one in comparison.output_differences if one.unread is not None]
    return [one.text() + one.reservation() for one in read] + unread


def weights_line(comparison: Comparison) -> str:
    """Return how many tensors of the final weights differ, ``""`` if none do."""
    if not comparison.differing_weights:
        return ""
    tensors = count(comparison.weights_compared, "tensor")
    return f"final weights differ in {len(comparison.differing_weights):,} of {tensors}"


def weights(comparison: Comparison) -> Table:
    """Return a table of the first tensors of the final weights that differ."""
    rows = []
    for pair in comparison.differing_weights[:MOST_WEIGHTS]:
        shape = "x".join(map(str, pair.shape)) or "()"
        rows.append([str(pair.rank), str(pair.place), pair.dtype, shape, digits(pair.a), digits(pair.b)])
    table = Table(_WEIGHTS, rows)
    return table if _has_ranks(comparison) else groups.without_ranks(table)
