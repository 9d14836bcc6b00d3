"""What reports say about the machines that did the runs of one recipe."""

from collections import defaultdict
from collections.abc import Sequence

from detaudit.model import Group, Machine
from detaudit.model.number import count
from detaudit.report import marks
from detaudit.report.blocks import Heading, Items, Table
from detaudit.report.messages.wording import both

_MOST_FACTS = 8


def sentence(group: Group) -> str:
    """Return that each machine repeats its own result, and which have the same."""
    found = _by_result(group.machines)
    groups = f"{count(len(found), 'group')} across: {both([_named(machines) for machines in found])}"
    return f"the same on each machine, {groups}"


def disagreeing(group: Group) -> str:
    """Return which machines disagree with themselves, ``""`` if none does."""
    found = [machine for machine in group.machines if len(machine.results) > 1]
    if not found:
        return ""
    verb = "disagrees with itself" if len(found) == 1 else "each disagree with themselves"
    return f"{_named(found)} {verb}"


def blocks(group: Group) -> tuple[Heading | Table | Items, ...]:
    """Return the table of the machines, and in what they differ; nothing for a single machine."""
    found = table(group)
    if found is None:
        return ()
    lines = differences(group.machines)
    return (Heading("machines"), found, *([Items(lines)] if lines else []))


def table(group: Group) -> Table | None:
    """Return a row for each machine, None for a single one."""
    letters = marks.letters(group)
    rows = [
        [
            str(machine.id),
            machine.host or "-",
            _numbers(machine.runs),
            ", ".join(dict.fromkeys(letters[run] for run in machine.runs if run in letters)) or "-",
        ]
        for machine in group.machines
    ]
    return Table(("MACHINE", "HOST", "RUNS", "RESULTS"), rows) if rows else None


def differences(machines: Sequence[Machine]) -> list[str]:
    """Return the facts in which machines differ: what all with one result share and others do not comes first."""
    names = sorted(
        {name for machine in machines for name in machine.facts}, key=lambda name: (_rank(machines, name), name)
    )
    lines = []
    for name in names[:_MOST_FACTS]:
        values: defaultdict[str, list[Machine]] = defaultdict(list)
        for machine in machines:
            values[machine.facts.get(name, "none")].append(machine)
        lines.append(f"{name}: " + "; ".join(f"{value} ({_machines(found)})" for value, found in values.items()))
    more = len(names) - len(lines)
    return [*lines, *([f"and {more:,} more in audit.json"] if more > 0 else [])]


def _rank(machines: Sequence[Machine], name: str) -> bool:
    """Return whether a fact does not go along with the results: several have the same, or one has several."""
    pairs = {(machine.facts.get(name), machine.results) for machine in machines}
    return len(pairs) != len({value for value, _ in pairs}) or len(pairs) != len({results for _, results in pairs})


def _by_result(machines: Sequence[Machine]) -> list[list[Machine]]:
    found: defaultdict[tuple[int, ...], list[Machine]] = defaultdict(list)
    for machine in machines:
        if machine.results:
            found[machine.results].append(machine)
    return list(found.values())


def _named(machines: Sequence[Machine]) -> str:
    hosts = [machine.host for machine in machines if machine.host]
    shown = f" ({', '.join(dict.fromkeys(hosts))})" if hosts else ""
    return f"{_machines(machines)}{shown}"


def _machines(machines: Sequence[Machine]) -> str:
    return f"machine{'s' * (len(machines) > 1)} {_numbers([machine.id for machine in machines])}"


def _numbers(found: Sequence[int]) -> str:
    """Return numbers with their ranges joined: ``1-3, 7``."""
    parts: list[list[int]] = []
    for number in sorted(found):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
