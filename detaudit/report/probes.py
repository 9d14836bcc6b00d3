"""What reports say about probes."""

from detaudit.model import FITTED, UNHOOKED, Group
from detaudit.model.number import count
from detaudit.probe import Probe, ProbeDifference


def sentence(group: Group) -> str:
    """Return which probe is the first to differ, ``""`` if none does."""
    found = group.first_probe_difference
    if found is None:
        return ""
    rank = f" on rank {found.rank}" if found.rank or several_ranks(group) else ""
    last = f"; last to match: {_probe(found.last_match)}" if found.last_match else ""
    but = "the results match, but probes differ; " if group.distinct_results == 1 else ""
    return f"{but}first probe to differ{rank}: {_probe(found)}{_how(found)}{last}"


def _how(found: ProbeDifference) -> str:
    a, b = found.runs
    if found.missing is not None:
        return f", missing in run {found.missing}"
    if any(found.values):
        one, other = (value or "no single value" for value in found.values)
        return f": {one} in run {a}, {other} in run {b}"
    return f", runs {a} and {b}"


def several_ranks(group: Group) -> bool:
    """Whether any run trained in several processes or with several frameworks, so that a rank has to be named."""
    return any(sum(rank.framework not in (*FITTED, *UNHOOKED) for rank in run.ranks) > 1 for run in group.runs)


def _probe(found: Probe) -> str:
    step = "" if found.step is None else f", step {found.step:,}"
    what = "gradient" if found.gradient else "value"
    return f"{'gradient of ' if found.gradient else ''}'{found.name}' ({what} {found.occurrence:,}{step})"


def summary(group: Group) -> str:
    """Return how many names were probed, and whether all values match; ``""`` if there were none."""
    if not group.probe_count:
        return ""
    several = sum(run.finished for run in group.runs) > 1
    match = "" if not several else ", not all match" if group.first_probe_difference else ", all match"
    return f"; probes: {count(group.probe_count, 'name')}{match}"
