"""Where two runs first differ."""

from detaudit.model import Difference, Divergence, Stage
from detaudit.model.outputs import EXIT_STATUS
from detaudit.report.messages import outputs
from detaudit.report.messages.wording import both, shortened

_MOST_RANKS = 8


def place(step: int, call: bool = False) -> str:
    """Return ``at step 1``; ``call`` says that steps are calls of models."""
    return f"at {'call' if call else 'step'} {step:,}"


def where(step: int, stage: Stage, site: str | None = None, *, call: bool = False, at_end: bool = False) -> str:
    """Return ``at step 1 (batch)``, or in which file or returned value."""
    match stage:
        case Stage.ARTIFACT | Stage.SAVED | Stage.PRINTED:
            return f"in {site or ('printed text' if stage is Stage.PRINTED else 'a file')}"
        case Stage.EXIT:
            return f"in the {site or EXIT_STATUS}"
        case Stage.RETURNED:
            return f"in the returned value{f' {site}' if site else ''}"
        case Stage.STEPS:
            return place(step, call)
        case Stage.OUTPUT if at_end:
            return f"after step {step:,} ({stage})"
        case _:
            named = f"{stage}: {site}" if site else stage
            return f"{place(step, call) if step else 'before the first step'} ({named})"


def where_of(found: Difference | Divergence) -> str:
    """Return the same of a difference, with the values of what left two runs."""
    if found.output is not None:
        return outputs.where(found.output)
    return where(found.step, found.stage, found.site, call=found.call, at_end=found.at_end)


def in_table(found: Difference | Divergence) -> str:
    """Return it for a cell of a table."""
    if found.output is not None:
        return outputs.in_table(found.output)
    if found.stage is Stage.ARTIFACT and found.site:
        return found.site
    if found.stage is Stage.RETURNED:
        return f"returned{' ' if found.site else ''}{found.site or ''}"
    after = "after " if found.at_end and found.stage is Stage.OUTPUT else ""
    return f"{after}{'call' if found.call else 'step'} {found.step:,}, {found.stage}"


def ranks(found: Difference) -> str:
    """Return ``rank 3``, or ``ranks 0 and 2`` if several first differ at the same step and stage."""
    if not found.also:
        return f"rank {found.rank}"
    names = [f"{rank:,}" for rank in found.ranks]
    return f"ranks {both(names) if len(names) <= _MOST_RANKS else shortened(names, most=_MOST_RANKS)}"
