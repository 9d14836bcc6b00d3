"""Where two runs first differ."""

from detaudit.model import Difference, Divergence, Stage


def where(step: int, stage: Stage, site: str | None = None) -> str:
    """Return ``at step 1 (batch)``, or in which file or returned value."""
    match stage:
        case Stage.ARTIFACT | Stage.SAVED:
            return f"in {site or 'a file'}"
        case Stage.RETURNED:
            return f"in the returned value{f' {site}' if site else ''}"
        case Stage.STEPS:
            return f"at step {step}"
        case _:
            named = f"{stage}: {site}" if site else stage
            return f"{f'at step {step}' if step else 'before the first step'} ({named})"


def in_table(found: Difference | Divergence) -> str:
    """Return it for a cell of a table."""
    if found.stage in (Stage.ARTIFACT, Stage.SAVED) and found.site:
        return found.site
    if found.stage is Stage.RETURNED:
        return f"returned{' ' if found.site else ''}{found.site or ''}"
    return f"step {found.step}, {found.stage}"
