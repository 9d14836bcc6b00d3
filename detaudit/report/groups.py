"""What is said of the runs of a recipe."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from detaudit.model import (
    FITTED,
    NAMED,
    UNHOOKED,
    VERDICTS,
    AppliedRecipe,
    Audit,
    Change,
    Check,
    Comparison,
    Group,
    Machine,
    RankRecord,
    Report,
    Run,
    Source,
    Stage,
    Status,
    Verdict,
    digits,
    evidence,
    exit_code,
    is_inference,
)
from detaudit.model.audit import FLAG_OUTCOMES
from detaudit.model.difference import Probe, ProbeDifference
from detaudit.model.fact import both, count, duration, every, shortened, shown_first
from detaudit.model.outputs import LISTED, MOST_SHOWN
from detaudit.model.outputs import names as output_names
from detaudit.model.problems import OutputsOpen
from detaudit.model.stage import STATUSES
from detaudit.report.document import (
    DIGEST,
    FINAL_LOSS,
    PART,
    RANK,
    RUNS,
    STEPS,
    SUM_OF_WEIGHTS,
    TIME,
    Cell,
    Column,
    Heading,
    Items,
    Stderr,
    Table,
    without,
)

# Which runs of a recipe have the same result, and the letters that mark them.


_FIRST, _LETTERS = ord("A"), 26


def results(group: Group) -> dict[int, int | None]:
    """Return the number of the result of each run, None for one that was ended before others, or is not compared.

    Reports of older versions have none: there, runs with the same fingerprints share one.
    """
    compared = [run for run in group.runs if run.counts and run not in group.shorter]
    numbers: dict[int, int | None] = {run.id: None for run in group.runs}
    if any(run.result is not None for run in group.runs):
        return numbers | {run.id: run.result for run in compared}
    seen: dict[tuple[object, ...], int] = {}
    return numbers | {
        run.id: seen.setdefault((run.ranks, run.first_difference), len(seen) + 1) for run in compared if run.ranks
    }


def ordered(group: Group) -> list[int]:
    """Return the numbers of the results: that of the first run, then the most frequent."""
    counts = Counter(result_number for result_number in results(group).values() if result_number is not None)
    return sorted(counts, key=lambda number: (number != 1, -counts[number], number))


def letters_of(group: Group) -> dict[int, str]:
    """Return the letters of the runs, by their numbers; none if all have the same result, or each one of its own."""
    numbers = {run: number for run, number in results(group).items() if number is not None}
    names = {number: _name(index) for index, number in enumerate(ordered(group))}
    if group.distinct_results == 1 or len(names) == len(numbers):
        return {}
    return {run: names[number] for run, number in numbers.items()}


def _name(index: int) -> str:
    """Return ``A`` to ``Z``, then ``AA``, ``AB`` and so on."""
    before, last = divmod(index, _LETTERS)
    return (_name(before - 1) if before else "") + chr(_FIRST + last)


def number(name: str) -> int:
    """Return the place of a letter: 0 for ``A``."""
    position = 0
    for letter in name:
        position = position * _LETTERS + ord(letter) - _FIRST + 1
    return position - 1


# What reports say about the machines that did the runs of one recipe.


_MOST_FACTS = 8


def machines_sentence(group: Group) -> str:
    """Return that each machine repeats its own result, and which have the same."""
    machine_groups = _by_result(group.machines)
    groups = f"{count(len(machine_groups), 'group')} across: {both([_named(machines) for machines in machine_groups])}"
    return f"the same on each machine, {groups}"


def disagreeing(group: Group) -> str:
    """Return which machines disagree with themselves, ``""`` if none does."""
    machines = [machine for machine in group.machines if len(machine.results) > 1]
    if not machines:
        return ""
    verb = "disagrees with itself" if len(machines) == 1 else "each disagree with themselves"
    return f"{_named(machines)} {verb}"


def blocks(group: Group) -> tuple[Heading | Table | Items, ...]:
    """Return the table of the machines, and in what they differ; nothing for a single machine."""
    table = machines_table(group)
    if table is None:
        return ()
    lines = machine_differences(group.machines)
    return (Heading("machines"), table, *([Items(lines)] if lines else []))


_MACHINES = (Column("MACHINE", left=True), Column("HOST", left=True), RUNS, Column("RESULTS", left=True))


def machines_table(group: Group) -> Table | None:
    """Return a row for each machine, None for a single one."""
    letters = letters_of(group)
    rows = [
        [
            str(machine.id),
            machine.host or "-",
            _numbers(machine.runs),
            ", ".join(dict.fromkeys(letters[run] for run in machine.runs if run in letters)) or "-",
        ]
        for machine in group.machines
    ]
    return Table(_MACHINES, rows) if rows else None


def machine_differences(machines: Sequence[Machine]) -> list[str]:
    """Return the facts in which machines differ: what all with one result share and others do not comes first."""
    names = sorted(
        {name for machine in machines for name in machine.facts}, key=lambda name: (_rank(machines, name), name)
    )
    lines = []
    for name in names[:_MOST_FACTS]:
        values: defaultdict[str, list[Machine]] = defaultdict(list)
        for machine in machines:
            values[machine.facts.get(name, "none")].append(machine)
        lines.append(f"{name}: " + "; ".join(f"{value} ({_machines(members)})" for value, members in values.items()))
    more = len(names) - len(lines)
    return [*lines, *([f"and {more:,} more in audit.json"] if more > 0 else [])]


def _rank(machines: Sequence[Machine], name: str) -> bool:
    """Return whether a fact does not go along with the results: several have the same, or one has several."""
    pairs = {(machine.facts.get(name), machine.results) for machine in machines}
    return len(pairs) != len({value for value, _ in pairs}) or len(pairs) != len({results for _, results in pairs})


def _by_result(machines: Sequence[Machine]) -> list[list[Machine]]:
    by_results: defaultdict[tuple[int, ...], list[Machine]] = defaultdict(list)
    for machine in machines:
        if machine.results:
            by_results[machine.results].append(machine)
    return list(by_results.values())


def _named(machines: Sequence[Machine]) -> str:
    hosts = [machine.host for machine in machines if machine.host]
    shown = f" ({', '.join(dict.fromkeys(hosts))})" if hosts else ""
    return f"{_machines(machines)}{shown}"


def _machines(machines: Sequence[Machine]) -> str:
    return f"machine{'s' * (len(machines) > 1)} {_numbers([machine.id for machine in machines])}"


def _numbers(numbers: Sequence[int]) -> str:
    """Return numbers with their ranges joined: ``1-3, 7``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


# What reports say about probes.


def probe_sentence(group: Group) -> str:
    """Return which probe is the first to differ, ``""`` if none does."""
    first_probe_difference = group.first_probe_difference
    if first_probe_difference is None:
        return ""
    rank = f" on rank {first_probe_difference.rank}" if first_probe_difference.rank or several_ranks(group) else ""
    last = f"; last to match: {_probe(first_probe_difference.last_match)}" if first_probe_difference.last_match else ""
    but = "the results match, but probes differ; " if group.distinct_results == 1 else ""
    return f"{but}first probe to differ{rank}: {_probe(first_probe_difference)}{_how(first_probe_difference)}{last}"


def _how(difference: ProbeDifference) -> str:
    a, b = difference.runs
    if difference.missing is not None:
        return f", missing in run {difference.missing}"
    if any(difference.values):
        one, other = (value or "no single value" for value in difference.values)
        return f": {one} in run {a}, {other} in run {b}"
    return f", runs {a} and {b}"


def several_ranks(group: Group) -> bool:
    """Whether any run trained in several processes or with several frameworks, so that a rank has to be named."""
    return any(sum(rank.framework not in (*FITTED, *UNHOOKED) for rank in run.ranks) > 1 for run in group.runs)


def _probe(probe: Probe) -> str:
    step = "" if probe.step is None else f", step {probe.step:,}"
    what = "gradient" if probe.gradient else "value"
    return f"{'gradient of ' if probe.gradient else ''}'{probe.name}' ({what} {probe.occurrence:,}{step})"


def summary(group: Group) -> str:
    """Return how many names were probed, and whether all values match; ``""`` if there were none."""
    if not group.probe_count:
        return ""
    several = sum(run.finished for run in group.runs) > 1
    match = "" if not several else ", not all match" if group.first_probe_difference else ", all match"
    return f"; probes: {count(group.probe_count, 'name')}{match}"


# The table of the runs of one recipe.


_FIRST_DIFFERENCE = Column("FIRST DIFFERENCE", left=True, comfort=17)
COLUMNS = (Column("RUN"), RANK, SUM_OF_WEIGHTS, FINAL_LOSS, STEPS, TIME, DIGEST, _FIRST_DIFFERENCE)
MARKED = "runs with the same letter have the same result"
_MOST_PARTS = 16
"""Ranks or parts that a table has of each run, beside those with a difference; audit.json has all."""


def runs_table(group: Group) -> Table:
    """Return a table of the runs, without the column of ranks if no run has several."""
    marks = letters_of(group)
    rows = [row for run in group.runs for row in _rows(group, run, marks.get(run.id, ""))]
    table = Table(COLUMNS, rows, MARKED if marks else "")
    if group.through is not None:
        table = _of_ended(table)
    if calls_only(rank for run in group.runs for rank in run.ranks):
        table = of_calls(table)
    return of_parts(table) if any(len(run.ranks) > 1 for run in group.runs) else without_ranks(table)


def of_parts(table: Table) -> Table:
    """Return a table whose column of ranks is one of parts if not all in it are numbers, as for a file or a fit."""
    names = [row[list(table.columns).index(RANK)] for row in table.rows]
    return table if all(name.isdigit() for name in names if name) else _replaced(table, RANK, PART)


def without_ranks(table: Table) -> Table:
    """Return a table without its column of ranks."""
    return without(table, RANK)


def calls_only(ranks: Iterable[RankRecord]) -> bool:
    """Whether models were called and nothing was trained."""
    frameworks = {rank.framework for rank in ranks}
    return bool(frameworks) and all(map(is_inference, frameworks))


def of_calls(table: Table) -> Table:
    """Return a table for calls of models: without weights and losses, and with calls instead of steps."""
    return _replaced(without(without(table, SUM_OF_WEIGHTS), FINAL_LOSS), STEPS, Column("CALLS"))


def _of_ended(table: Table) -> Table:
    """Return a table for runs that were ended: without sums of weights, and with the losses and weights by then."""
    return _replaced(without(table, SUM_OF_WEIGHTS), FINAL_LOSS, Column("LOSS", drop=8))


def _replaced(table: Table, old: Column, new: Column) -> Table:
    return replace(table, columns=[new if column == old else column for column in table.columns])


def _rows(group: Group, run: Run, mark: str) -> Iterator[list[str]]:
    time, early = duration(run.wall_s), run in group.shorter
    shown = [
        (rank, difference)
        for index, rank in enumerate(run.ranks or (None,))
        if (difference := _difference(group, run, rank)) or index < _MOST_PARTS
    ]
    for index, (rank, difference) in enumerate(shown):
        first = index == 0
        yield [
            f"{run.id:,}" if first else "",
            rank_name(rank) if rank else "",
            digits(rank.sum_of_weights) if rank else "-",
            digits(rank.final_loss) if rank and not early else "-",
            _steps(run, rank),
            time if first else "",
            "-" if early else _marked(short_digest(rank), mark if first else ""),
            difference,
        ]
    if len(run.ranks) > len(shown):
        yield [*[""] * (len(COLUMNS) - 1), f"(and {len(run.ranks) - len(shown):,} more)"]


def _marked(digest: str, mark: str) -> str:
    return Cell(f"{digest} {mark}", mark=number(mark)) if mark else digest


def _difference(group: Group, run: Run, rank: RankRecord | None) -> str:
    left = run.first_difference is not None and run.first_difference.output is not None
    if run in group.shorter or not (run.finished or left):
        return f"({STATUSES[run.status]})" if rank is None or rank.rank == 0 else ""
    base = next((r.id for r in group.runs if r.finished), None)
    first_difference = run.first_difference
    if first_difference is None or (rank is not None and rank.rank not in first_difference.ranks):
        return ""
    return first_difference.cell() + (f" (vs run {run.reference})" if run.reference not in (None, base) else "")


def short_digest(record: RankRecord | None) -> str:
    """Return the start of a digest, ``-`` if there is none."""
    return record.digest[:8] if record is not None and record.digest else "-"


def rank_name(record: RankRecord) -> str:
    """Return a rank for a table: its number, or what was fitted or compared without a hook."""
    return record.framework if record.framework in (*FITTED, *UNHOOKED) else str(record.rank)


def _steps(run: Run, record: RankRecord | None) -> str:
    if record is not None and record.framework in NAMED:
        return "-"
    return f"{record.steps if record else run.steps:,}"


# What reports say about the runs of one recipe.


_OF_CALLS = (Stage.RNG, Stage.BATCH, Stage.OUTPUT)
MOST_SOURCES = 5
MOST_FILES = 5


def recipe_summary(recipe: AppliedRecipe) -> str:
    """Return the name of a recipe and what it sets."""
    if not recipe.flags:
        return f"{recipe.name}: no flags"
    return f"{recipe.name}: {count(len(recipe.flags), 'flag')}, seed {recipe.seed}"


def verdict(group: Group) -> str:
    """Return the verdict on a group, and how far it goes if the runs were ended early."""
    if group.verdict is not Verdict.DETERMINISTIC or group.through is None:
        return group.verdict
    return f"{group.verdict} through step {group.through:,}, where every run was ended"


def verdict_sentence(group: Group) -> str:
    """Return what the verdict on a group means."""
    match group.verdict:
        case Verdict.NONDETERMINISTIC:
            results = f"{count(group.compared, 'run')} gave {count(group.distinct_results, 'different result')}"
            return "; ".join(filter(None, [_only_outputs(group), results, disagreeing(group)]))
        case Verdict.MACHINE_DEPENDENT:
            return machines_sentence(group)
        case Verdict.INCONCLUSIVE:
            reason = _reason(group) if group.reason else "nothing to compare"
            through = f" through step {group.through:,}" if group.through is not None else ""
            matching = f"; the {group.compared:,} finished runs are bit-identical{through}"
            says_more = group.compared > 1 and not isinstance(group.reason, OutputsOpen)  # which says that they match
            return reason + (matching if says_more else "")
        case Verdict.DETERMINISTIC:
            later = ". Nothing is known of later steps" if group.through is not None else ""
            return f"{every(group.compared, 'run')} are bit-identical{later}"


def _only_outputs(group: Group) -> str:
    """Return that the trainings match if only what left the runs differs, ``""`` otherwise."""
    first_difference = group.first_difference
    if (
        first_difference is None
        or first_difference.output is None
        or all(stage in UNHOOKED for stage in first_difference.explanation.matching)
    ):
        return ""
    deciding = [one for one in group.output_differences if one.decides]
    return first_difference.output.trainings_match(output_names(deciding, first_difference.output))


def _reason(group: Group) -> str:
    """Return why a group is inconclusive, with all files that are open."""
    if isinstance(group.reason, OutputsOpen):
        others = [one for one in group.output_differences if one.open]
        return group.reason.first.open_reason(group.reason.more, output_names(others, group.reason.first))
    return group.reason.text() if group.reason else ""


def evidence_line(group: Group) -> str:
    """Return how rare a difference matching runs would have caught, ``""`` if the group is not deterministic."""
    if group.verdict is not Verdict.DETERMINISTIC or group.confidence is None:
        return ""
    earlier = sum(one.runs for one in group.earlier)
    return evidence.would_catch(group.confidence, group.compared + earlier, group.through, earlier)


def where(group: Group) -> str:
    """Return where two runs first differ and what that points to, ``""`` if all match."""
    first_difference = group.first_difference
    if first_difference is None:
        return ""
    a, b = first_difference.runs
    several = several_ranks(group) and first_difference.stage not in UNHOOKED and not first_difference.difference.of_fit
    location = first_difference.where()
    location += f" on {first_difference.difference.rank_text()}" if several else ""
    return f"runs {a} and {b} first differ {location}: {first_difference.explanation.text(first_difference.stage)}"


def source_lines(sources: Sequence[Source]) -> list[str]:
    """Return the first lines of the user's code that may be why."""
    lines = [source.with_place() for source in shown_first(sources, MOST_SOURCES)]
    more = len(sources) - len(lines)
    return lines + ([f"and {more:,} more in audit.json"] if more > 0 else [])


def stderr(group: Group) -> Stderr | None:
    """Return the last lines of the first run that failed with any: most others fail with the same."""
    run = next((run for run in group.runs if run.status is not Status.OK and run.stderr_tail), None)
    return Stderr(f"last lines of stderr from run {run.id}:", run.stderr_tail) if run else None


def stderr_lines(group: Group) -> list[str]:
    """Return the same as lines of text."""
    tail = stderr(group)
    return [tail.caption, *tail.lines] if tail else []


def details(group: Group) -> list[str]:
    """Return all that is known about a group besides its sentence and its first difference."""
    lines = [evidence_line(group), probe_sentence(group), *source_lines(group.sources), *notes(group)]
    return [line for line in lines if line] + stderr_lines(group)


def notes(group: Group) -> list[str]:
    """Return what became of the flags, what varied, what was compared, and whether the ranks match."""
    lines = (_ended_line(group), _flags_line(group), _varied_line(group), _stages_line(group), _replicas_line(group))
    return [line for line in (*lines, *_listed_differences(group), _earlier_line(group)) if line]


def _listed_differences(group: Group) -> list[str]:
    """Return what differs and does not decide, if that is all that differs; what is open, if that is not the reason."""
    if group.verdict is Verdict.NONDETERMINISTIC:
        return []
    by_kind = {kind: [one.text() for one in group.output_differences if one.kind is kind] for kind in LISTED}
    said = {f"does not decide ({LISTED[kind]})": texts for kind, texts in by_kind.items()}
    if not isinstance(group.reason, OutputsOpen):
        said["may be a result or not"] = [one.text() for one in group.output_differences if one.may_decide]
    return [f"differs, and {what}: {shortened(texts, most=MOST_SHOWN)}" for what, texts in said.items() if texts]


def _ended_line(group: Group) -> str:
    """Return which runs were ended before others, and where all were ended if they differ."""
    early = group.shorter
    if group.through is None:  # another run went to its end
        early = tuple(run for run in group.runs if run.through is not None)
    lines = [f"run {run.id} after step {run.through:,}" for run in early]
    if group.verdict is Verdict.NONDETERMINISTIC and group.through is not None:
        stopped = any(run.status is Status.STOPPED for run in group.runs)
        which = "those that finished" if stopped else "the others" if early else "every run"
        lines.append(f"{which} after step {group.through:,}")
    return f"ended early: {', '.join(lines)}" if lines else ""


def _earlier_line(group: Group) -> str:
    """Return which earlier audits have runs that match these."""
    matching = [f"{one.folder} ({count(one.runs, 'run')})" for one in group.earlier if not one.differing]
    return f"matching earlier audits: {shortened(matching, most=MOST_FILES)}" if matching else ""


def _flags_line(group: Group) -> str:
    by_state = {state: [flag.id for flag in group.flags if flag.state is state] for state in FLAG_OUTCOMES}
    return "; ".join(f"{FLAG_OUTCOMES[state]}: {', '.join(ids)}" for state, ids in by_state.items() if ids)


def _varied_line(group: Group) -> str:
    lines = []
    if group.varied:
        lines.append(f"varied between runs (run 1 is the control): {', '.join(one.id for one in group.varied)}")
    lines += [f"not varied: {name} ({reason.text()})" for name, reason in group.not_varied.items()]
    return "; ".join(lines)


def _stages_line(group: Group) -> str:
    if not group.stages:
        return ""
    calls = calls_only(rank for run in group.runs for rank in run.ranks)
    others = (Stage.HYPERPARAMETERS, Stage.OUTPUT, *UNHOOKED, Stage.STEPS, *(() if group.replicas else (Stage.REDUCE,)))
    possible = _OF_CALLS if calls else [one for one in Stage if one not in others]
    missing = [stage for stage in possible if stage not in group.stages]
    end = "end" if group.through is None else "last one"
    large = f" (large weights: at steps 1, 2, 4, 8, … and at the {end})" if group.weights_sampled else ""
    not_recorded = f"; not recorded: {', '.join(missing)}" if missing else ""
    recorded = ", ".join(stage for stage in group.stages if stage not in UNHOOKED)
    compared = "; ".join(filter(None, [recorded + large, *_unhooked(group)]))
    ended = "; not compared, since the runs were ended: what they save or print, and how they end"
    return f"compared: {compared}{not_recorded}{summary(group)}{ended if group.through is not None else ''}"


def _unhooked(group: Group) -> list[str]:
    run = group.first_finished
    named = [f"{file.path} ({file.by})" for file in run.artifacts] if run else []
    saved = [f"{file.path} ({file.by})" for file in run.saved] if run else []
    printed = ["losses from stdout (--loss-pattern)"] if Stage.STDOUT in group.stages else []
    returned = ["the value returned by the test"] if Stage.RETURNED in group.stages else []
    tensors = "" if group.outputs_compared else "tensors in the "
    left = [f"the {tensors}files {shortened(saved, most=MOST_FILES)}"] if saved else []
    left += ["printed text", "the exit status"] if group.outputs_compared else []
    return printed + returned + ([f"--artifact {shortened(named, most=MOST_FILES)}"] if named else []) + left


def _replicas_line(group: Group) -> str:
    replicas = group.replicas
    if replicas is None:
        return ""
    if replicas.first_difference is None:
        return f"replicas: {every(replicas.ranks, 'rank')} of each run hold identical weights at every step"
    differs = replicas.first_difference
    return (
        f"replicas: in run {replicas.run}, the weights of rank {differs.rank} differ from those of rank 0 at step "
        f"{differs.step:,}: they are sharded or not synchronized"
    )


def changes(environment_changes: Sequence[Change], most: int | None = None, listed_in: str = "") -> list[str]:
    """Return how two environments differ, at most ``most`` changes; ``listed_in`` is where the others are."""
    lines = [f"{one.name}: {one.a or 'none'} → {one.b or 'none'}" for one in shown_first(environment_changes, most)]
    more = len(environment_changes) - len(lines)
    return lines + ([f"and {more:,} more {listed_in}"] if more > 0 else [])


# What stands at the top of an HTML report: the answer in one sentence, and what was audited.


_KINDS = {
    "run": "Audit",
    "bisect": "Bisection",
    "vary": "Bisection over variations",
    "trace": "Trace",
    "fix": "Fix",
    "resume": "Resumption",
    "check": "Check",
    "compare": "Comparison",
}


def of_groups(groups: Sequence[Group]) -> str:
    """Return the verdicts on the recipes of an audit, the worst first."""
    if len(groups) == 1:
        return headline(verdict(groups[0]), verdict_sentence(groups[0]))
    by_verdict = [(verdict, [one.recipe.name for one in groups if one.verdict is verdict]) for verdict in VERDICTS]
    parts = [f"{verdict} with recipe{'s' * (len(names) > 1)} {both(names)}" for verdict, names in by_verdict if names]
    return capitalized("; ".join(parts)) or "Inconclusive: no run finished"


def headline(word: str, text: str) -> str:
    """Return an answer in a word and its sentence."""
    return f"{capitalized(word)}: {text}"


def capitalized(text: str) -> str:
    """Return a text with a capital letter first, unless it begins with a name."""
    first = text.split(" ", 1)[0].rstrip(",:;")
    return text[:1].upper() + text[1:] if first.replace("-", "").isalpha() else text


def kind(name: str) -> str:
    """Return what a report is."""
    return _KINDS[name]


def facts(report: Report) -> list[str]:
    """Return when it was, how many runs there were, how long they took, and the exit status."""
    texts = []
    if isinstance(report, Audit | Check):
        texts += [moment(report.started), *_runs(report)]
    return [*filter(None, texts), f"exit status {exit_code(report)}"]


def _runs(report: Audit | Check) -> list[str]:
    audits = [one.audit for one in report.audits] if isinstance(report, Check) else [report]
    runs = [run for audit in audits for group in audit.groups for run in group.runs]
    total = getattr(report, "total_runs", len(runs))
    took = elapsed(report.started, report.ended)
    return [f"{count(total, 'run')} in {duration(took, '.0f')}" if took is not None else count(total, "run")]


def moment(text: str) -> str:
    """Return a time as people write it, ``""`` if it is not known."""
    date = _read(text)
    return f"{date.day} {date:%B %Y, %H:%M} UTC" if date else ""


def elapsed(started: str, ended: str) -> float | None:
    """Return the seconds between two times, None if one is not known."""
    a, b = seconds(started), seconds(ended)
    return b - a if a is not None and b is not None else None


def seconds(text: str) -> float | None:
    """Return a time in seconds since 1970, None if it is not known."""
    date = _read(text)
    return date.timestamp() if date else None


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def lede(groups: Sequence[Group]) -> list[str]:
    """Return what the verdicts rest on, if there is one recipe."""
    if len(groups) != 1:
        return []
    (group,) = groups
    shares = [evidence.share_sentence(group.differing_share)] if group.differing_share is not None else []
    return [line for line in (evidence_line(group), *shares) if line]


ENVIRONMENT = {
    "python": "Python",
    "frameworks": "Frameworks",
    "packages": "Packages",
    "cpu": "Processor",
    "cpus": "CPUs",
    "gpus": "GPUs",
    "driver": "Driver",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "system": "System",
    "libc": "C library",
    "variables": "Variables",
    "detaudit": "detaudit",
}
"""Parts of the environment that a page shows, with their names."""


def environment(entries: dict[str, object]) -> list[tuple[str, str]]:
    """Return the environment of an audit, without what is empty."""
    return [(name, text) for key, name in ENVIRONMENT.items() if (text := _listed(entries.get(key)))]


def environments(comparison: Comparison) -> list[tuple[str, str]]:
    """Return what may change results, of each side if it differs."""
    a, b = comparison.a.environment, comparison.b.environment
    rows = []
    for name in sorted({*a, *b}):
        ours, theirs = a.get(name, "none"), b.get(name, "none")
        rows.append((name, ours if ours == theirs else f"A: {ours}; B: {theirs}"))
    return rows


def _listed(value: object) -> str:
    match value:
        case None:
            return ""
        case dict():
            return ", ".join(f"{key} {one}" for key, one in value.items())
        case list() | tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
