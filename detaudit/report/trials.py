"""What both kinds of bisection say of a trial."""

from detaudit.model import Confidence, Group, Run, Status, digits

HEADERS = ("TRIAL", "RUNS", "SUM OF WEIGHTS", "FINAL LOSS", "DIGEST")
ALIGN = ("left", "right", "right", "right", "left", "left", "left")
_PREFIX = "trial-"


def name(group: str) -> str:
    """Return the number of a trial, by the name of its group."""
    return group.removeprefix(_PREFIX)


def cells(group: Group, runs: int, shown: Run | None) -> list[str]:
    """Return the columns of HEADERS, with the fingerprints of one of its runs."""
    rank = shown.ranks[0] if shown else None
    return [
        name(group.recipe.name),
        str(runs),
        digits(rank.sum_of_weights) if rank else "-",
        digits(rank.final_loss) if rank else "-",
        rank.digest[:8] if rank and rank.digest else "-",
    ]


def match(group: Group) -> str:
    """Return whether the runs of a trial are equal, and where they differ."""
    found = group.divergence
    if found is not None:
        return f"no: step {found.step}, {found.stage}"
    bad = next((run for run in group.runs if run.status is not Status.OK), None)
    if bad is not None:
        return f"({bad.status})"
    return "yes" if len(group.runs) > 1 else "-"


def bound(confidence: Confidence | None, runs: str) -> str:
    """Return how many of such runs may deviate, ``""`` where nothing is known."""
    if confidence is None:
        return ""
    return f"; with {confidence.level:.0%} confidence, at most {confidence.max_deviation_rate:.1%} of {runs} deviate"
