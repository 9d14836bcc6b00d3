"""What the reporters for people share about probes."""

from detaudit.model import UNHOOKED, Group, Status
from detaudit.probe import Probe


def sentence(group: Group) -> str:
    """Return which probe is the first to differ, ``""`` where none does."""
    found = group.probe
    if found is None:
        return ""
    a, b = found.runs
    rank = f" of rank {found.rank}" if found.rank or several_ranks(group) else ""
    if found.missing is not None:
        how = f", which run {found.missing} does not have"
    elif any(found.values):
        how = f": {found.values[0] or 'no single value'} in run {a}, {found.values[1] or 'no single value'} in run {b}"
    else:
        how = f" between runs {a} and {b}"
    last = f"; {_probe(found.agrees)} still agrees" if found.agrees else ""
    but = "the results agree all the same, but " if group.distinct == 1 else ""
    return f"{but}the first probe that differs{rank} is {_probe(found)}{how}{last}"


def several_ranks(group: Group) -> bool:
    """Whether any run has several processes or frameworks that trained, so that it must be said which is meant."""
    return any(sum(rank.framework not in UNHOOKED for rank in run.ranks) > 1 for run in group.runs)


def _probe(found: Probe) -> str:
    what = "gradient" if found.gradient else "value"
    step = "" if found.step is None else f", step {found.step}"
    return f"{'the gradient of ' * found.gradient}'{found.name}' (its {_ordinal(found.occurrence)} {what}{step})"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def count(group: Group) -> str:
    """Return how many names were watched, and whether all agree; ``""`` where none was."""
    if not group.probes:
        return ""
    several = sum(run.status is Status.OK for run in group.runs) > 1
    agree = "" if not several else ", not all agree" if group.probe else ", all agree"
    return f"; probes: {group.probes} name{'s' * (group.probes > 1)}{agree}"
