"""The table of all results, on the terminal and as docs/lab/benchmarks.md with its charts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.catalogue import FOLDER, MEASUREMENTS, SECTIONS, Measurement, about
from benchmarks.chart import chart
from benchmarks.rows import Machine, Result, Row, number

DOCS = FOLDER.parent / "docs" / "lab"
WIDEST = 220
COLUMNS = ("benchmark", "relative to", "goal", "median", "range", "turns", "also measured")

HEAD = """\
# Benchmarks

Each figure is the ratio of two things that took turns on one machine (A, B, A, B, …), because times themselves depend
on the machine: the median over all turns, the lowest and the highest. A goal is about the median; **bold** figures miss
theirs. What was *also measured* depends on the machine. In the charts, a thin line is the range, and an upright
line the goal.

`make bench` measures what takes minutes and writes this page; `make bench-long` what takes hours. Either can be
interrupted: each result is kept in `benchmarks/results/` once it is there, and `python -m benchmarks NAME…` measures
one again (`--list` names all). Simulated trainings of an hour are in [horizon.md](horizon.md), results on labeled
scripts in [measurements.md](measurements.md).
"""


def cells(row: Row) -> list[str]:
    """Return what the table says of a row."""
    goal = str(row.goal) if row.goal else ""
    median = number(row.median)
    median = median if row.goal is None or row.goal.is_met(row.median) else f"**{median}**"
    missed = [figure.goal is not None and not figure.goal.is_met(figure.value) for figure in row.also]
    also = ", ".join(f"**{one}**" if bold else str(one) for one, bold in zip(row.also, missed, strict=True))
    return [row.what, row.over, goal, median, row.range, f"{len(row.ratios)}", also]


def unmeasured(measurement: Measurement) -> list[str]:
    """Return what the table says where there is no result."""
    return [measurement.what, f"not measured: `python -m benchmarks {measurement.name}`", *[""] * (len(COLUMNS) - 2)]


def print_table(results: Mapping[str, Result], *, whole: bool) -> None:
    """Print one table of all rows; if it is ``whole``, also what was not measured."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDEST)
    table = Table(*(column.upper() for column in COLUMNS), box=None, header_style="bold", pad_edge=False)
    for measurement in MEASUREMENTS:
        for row in results[measurement.name].rows if measurement.name in results else ():
            table.add_row(*(cell.replace("**", "") for cell in cells(row)), style="yellow" if row.missed else None)
        if whole and measurement.name not in results:
            table.add_row(*(cell.replace("`", "") for cell in unmeasured(measurement)), style="dim")
    console.print(table)


def section(module: str, results: Mapping[str, Result], machines: list[Machine]) -> str:
    """Return a section of the page: how it is measured, the chart, the table, and where it was measured."""
    own = [one for one in MEASUREMENTS if one.module == module]
    lines: list[Sequence[str]] = [COLUMNS, ("---", "---", "---:", "---:", "---:", "---:", "---")]
    sources = []
    for one in own:
        if one.name not in results:
            lines.append(unmeasured(one))
            continue
        result = results[one.name]
        lines += [cells(row) for row in result.rows]
        letter = chr(ord("A") + machines.index(result.machine))
        sources.append(
            f"`python -m benchmarks {one.name}` measured commit {result.commit} on {result.date}, in "
            f"{result.took_s / 60:.1f} min on machine {letter}. Just before, other processes used {result.busy:.0%} of "
            "its cores."
        )
    table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
    measured = any(one.name in results for one in own)
    picture = [f"![{SECTIONS[module]}](benchmarks/{module}.svg)"] if measured else []
    return "\n\n".join([f"## {SECTIONS[module]}", about(module), *picture, table, *sources]) + "\n"


def machines_of(results: Mapping[str, Result]) -> list[Machine]:
    """Return the machines of all results, in the order of the table."""
    found: list[Machine] = []
    for measurement in MEASUREMENTS:
        if measurement.name in results and results[measurement.name].machine not in found:
            found.append(results[measurement.name].machine)
    return found


def page(results: Mapping[str, Result]) -> str:
    """Return the whole page."""
    machines = machines_of(results)
    described = [f"- Machine {chr(ord('A') + place)}: {machine}" for place, machine in enumerate(machines)]
    sections = [section(module, results, machines) for module in SECTIONS]
    return "\n".join([HEAD, *(["\n".join(described) + "\n"] if described else []), *sections])


def write(results: Mapping[str, Result], docs: Path = DOCS) -> None:
    """Write docs/lab/benchmarks.md, and a chart for each section that has results."""
    (docs / "benchmarks.md").write_text(page(results))
    charts = docs / "benchmarks"
    charts.mkdir(exist_ok=True)
    for module, heading in SECTIONS.items():
        found = [results[one.name] for one in MEASUREMENTS if one.module == module and one.name in results]
        rows = [row for result in found for row in result.rows]
        if rows:
            (charts / f"{module}.svg").write_text(chart(heading, rows))
        else:
            (charts / f"{module}.svg").unlink(missing_ok=True)
