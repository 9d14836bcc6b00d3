"""What a flag costs: only what pairs of runs showed, with its range."""

from detaudit.model import Alternative, NeededFlag
from detaudit.model.fact import count


def sentence(flag: NeededFlag | Alternative) -> str:
    """Return what a flag costs, ``""`` if too few runs with it and without it took turns to say."""
    if flag.cost is None or flag.cost_range is None or flag.cost_runs is None:
        return ""
    least, most = flag.cost_range
    pairs = count(flag.cost_runs[0], "pair of runs", "pairs of runs")
    if round(least, 2) <= 1 <= round(most, 2):
        return f"no measurable cost ({pairs}: {least:.2f}x to {most:.2f}x the time)"
    return f"cost: training takes {flag.cost:.2f}x as long with it ({pairs}: {least:.2f}x to {most:.2f}x)"
