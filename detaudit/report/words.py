"""What the reporters for people share: rows and sentences."""

from collections.abc import Iterator, Sequence

from detaudit.model import (
    NAMED,
    UNHOOKED,
    Change,
    Difference,
    Divergence,
    Group,
    RankRecord,
    Recipe,
    Run,
    Stage,
    Status,
    Verdict,
    digits,
)
from detaudit.report import probes

COLUMNS = ("RUN", "RANK", "SUM OF WEIGHTS", "FINAL LOSS", "STEPS", "TIME", "DIGEST", "FIRST DIFFERS FROM")
MOST_SOURCES = 5
MOST_FILES = 5
LEFT = {"DIGEST", "FIRST DIFFERS FROM"}


def table(group: Group) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of a group; the rank is left out where no run has two."""
    rows = [row for run in group.runs for row in _rows(group, run)]
    if any(len(run.ranks) > 1 for run in group.runs):
        return list(COLUMNS), rows
    return [c for c in COLUMNS if c != "RANK"], [row[:1] + row[2:] for row in rows]


def _rows(group: Group, run: Run) -> Iterator[list[str]]:
    time = f"{run.wall_s:.1f} s"
    for place, rank in enumerate(run.ranks or (None,)):
        first = place == 0
        yield [
            str(run.id) if first else "",
            rank_name(rank) if rank else "",
            digits(rank.sum_of_weights) if rank else "-",
            digits(rank.final_loss) if rank else "-",
            _steps(run, rank),
            time if first else "",
            rank.digest[:8] if rank and rank.digest else "-",
            _difference(group, run, rank),
        ]


def _difference(group: Group, run: Run, rank: RankRecord | None) -> str:
    if run.status is not Status.OK:
        return f"({run.status})" if rank is None or rank.rank == 0 else ""
    base = next(r.id for r in group.runs if r.status is Status.OK)
    found = run.differs
    if found is None or (rank is not None and found.rank != rank.rank):
        return ""
    return f"run {base}: {_place(found)}"


def _place(found: Difference | Divergence) -> str:
    if found.stage is Stage.ARTIFACT and found.site:
        return found.site
    if found.stage is Stage.RETURNED:
        return f"returned{' ' if found.site else ''}{found.site or ''}"
    return f"step {found.step}, {found.stage}"


def rank_name(record: RankRecord) -> str:
    """Return what a rank is called in a table: its number, or what it was taken from."""
    return record.framework if record.framework in UNHOOKED else str(record.rank)


def _steps(run: Run, record: RankRecord | None) -> str:
    if record is not None and record.framework in NAMED:
        return "-"
    return str(record.steps if record else run.steps)


def heading(group: Group) -> str:
    """Return the line above a group's table."""
    return held(group.recipe)


def held(recipe: Recipe) -> str:
    """Return what a recipe holds still, in a few words."""
    if not recipe.flags:
        return f"{recipe.name}: the script as it stands"
    return f"{recipe.name}: {len(recipe.flags)} flag{'s' * (len(recipe.flags) > 1)}, seed {recipe.seed}"


def first_failure(group: Group) -> Run | None:
    """Return the first run that failed with some last words: mostly the others died of the same."""
    return next((run for run in group.runs if run.status is not Status.OK and run.stderr_tail), None)


def last_words(run: Run) -> list[str]:
    """Return the end of what a run wrote to stderr."""
    return [f"the end of what run {run.id} wrote to stderr:", *(f"  | {line}" for line in run.stderr_tail)]


def sources_lines(group: Group) -> list[str]:
    """Return the lines of the user's code that may be the reason, the first few."""
    lines = [f"{source.file}:{source.line}: {source.what}" for source in group.sources[:MOST_SOURCES]]
    more = len(group.sources) - MOST_SOURCES
    return lines + ([f"and {more} more in audit.json"] if more > 0 else [])


_STATES = {
    "applied": "applied",
    "overridden": "applied, then set otherwise by the script",
    "not-reached": "not needed, what they set was never imported",
    "unavailable": "not available here",
    "failed": "failed",
}


def stages_line(group: Group) -> str:
    """Return what was compared and what was not seen, ``""`` where nothing was."""
    if not group.stages:
        return ""
    unseen = [s for s in Stage if s not in (*group.stages, *UNHOOKED, Stage.STEPS)]
    large = " (large weights: at steps 1, 2, 4, 8, … and at the end)" if group.sparse else ""
    missing = f"; not recorded: {', '.join(unseen)}" if unseen else ""
    seen = ", ".join(stage for stage in group.stages if stage not in UNHOOKED)
    compared = "; ".join(filter(None, [seen + large, *_outside(group)]))
    return f"compared: {compared}{missing}{probes.count(group)}"


def _outside(group: Group) -> list[str]:
    files = group.whole.artifacts if group.whole else ()
    names = [f"{file.path} ({file.by})" for file in files[:MOST_FILES]]
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    printed = ["losses from stdout (--loss-pattern)"] if Stage.STDOUT in group.stages else []
    returned = ["what the test returned"] if Stage.RETURNED in group.stages else []
    return printed + returned + ([f"weights from {', '.join(names)}{more}"] if names else [])


def replicas_line(group: Group) -> str:
    """Return whether the ranks of a distributed run agree with each other, ``""`` where there are none."""
    found = group.replicas
    if found is None:
        return ""
    if found.differs is None:
        return f"replicas: the {found.ranks} ranks of each run hold equal weights at every step"
    return (
        f"replicas: in run {found.run}, the weights of rank {found.differs.rank} differ from those of rank 0 at step "
        f"{found.differs.step}: they are sharded, or not synchronised"
    )


def varied_line(group: Group) -> str:
    """Return what was not alike in the runs, and what could not vary, ``""`` where they were to be alike."""
    lines = []
    if group.varied:
        lines.append(f"varied from run to run, after the first: {', '.join(one.id for one in group.varied)}")
    lines += [f"not varied: {name} ({reason})" for name, reason in group.not_varied.items()]
    return "; ".join(lines)


def flags_line(group: Group) -> str:
    """Return which flags of the recipe took effect."""
    by_state = {state: [flag.id for flag in group.flags if flag.state == state] for state in _STATES}
    return "; ".join(f"{_STATES[state]}: {', '.join(ids)}" for state, ids in by_state.items() if ids)


def sentence(group: Group) -> str:
    """Return the verdict on a group with what it rests on."""
    if group.verdict is Verdict.NONDETERMINISTIC:
        return f"{group.compared} runs, {group.distinct} different results"
    if group.verdict is Verdict.INCONCLUSIVE:
        agree = f"; the {group.compared} that finished are bit-identical" if group.compared > 1 else ""
        return f"{group.reason}{agree}"
    bound = group.confidence
    rate = f"{bound.max_deviation_rate:.1%}" if bound else "100%"
    level = f"{bound.level:.0%}" if bound else "0%"
    return (
        f"{group.compared} runs, all bit-identical. With {level} confidence, at most {rate} of runs deviate; "
        "more runs narrow that"
    )


def where(group: Group) -> str:
    """Return where the first difference enters, ``""`` where there is none."""
    found = group.divergence
    if found is None:
        return ""
    a, b = found.runs
    several = probes.several_ranks(group) and found.stage not in UNHOOKED
    rank = f", rank {found.rank}" if several else ""
    return f"runs {a} and {b} first differ at {_place(found)}{rank}: {found.cause}"


def changes(environment: Sequence[Change], most: int | None = None, rest: str = "") -> list[str]:
    """Return what is not the same of two environments, of more than ``most`` only so many; the rest is in ``rest``."""
    lines = [f"{one.name}: {one.a or 'none'} → {one.b or 'none'}" for one in environment[:most]]
    more = len(environment) - len(lines)
    return lines + ([f"and {more} more {rest}"] if more > 0 else [])
