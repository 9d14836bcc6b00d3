"""The page of an audit: what its recipes gave, its runs, where they first differ, and what their losses say."""

from collections.abc import Sequence
from dataclasses import dataclass

from detaudit.model import Audit, Excerpt, FlagOutcome, Group
from detaudit.model.audit import FLAG_OUTCOMES
from detaudit.model.figures import Figures
from detaudit.report import groups
from detaudit.report.html import captions as captions
from detaudit.report.html.figures import GroupView, Part, figure_parts


def views_of(audit: Audit, figures: Figures) -> list[GroupView]:
    """Return the groups of an audit that have runs."""
    return [GroupView(group, figures.of(audit, group)) for group in audit.groups if group.runs]


def overview(audit: Audit, figures: Figures) -> Part | None:
    """Return the verdict on each recipe, None if there is one."""
    shown = views_of(audit, figures)
    return Part("recipes", "Recipes", "recipes.html", shown) if len(shown) > 1 else None


@dataclass(frozen=True)
class Why:
    """What is known of why the runs of some recipes differ; ``names`` is empty if there is one recipe."""

    names: Sequence[str]
    texts: Sequence[str]
    sources: Sequence[str]
    excerpts: Sequence[Excerpt]


def why(audit: Audit) -> Part | None:
    """Return why runs differ, once for the recipes of which the same is known; None if nothing is."""
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Group]] = {}
    for group in audit.groups:
        texts = tuple(line for line in (groups.where(group), groups.probe_sentence(group)) if line)
        if texts or group.sources:
            known.setdefault((texts, tuple(groups.source_lines(group.sources))), []).append(group)
    several = len(audit.groups) > 1
    reasons = [
        Why([one.recipe.name for one in groups] if several else [], texts, sources, groups[0].excerpts)
        for (texts, sources), groups in known.items()
    ]
    return Part("why", "Why runs differ", "why.html", reasons) if reasons else None


def parts(audit: Audit, figures: Figures) -> list[Part]:
    """Return the other parts of the page."""
    shown = views_of(audit, figures)
    flags_ = [flags_part(audit)] if any(group.recipe.flags for group in audit.groups) else []
    runs = [Part("runs", "Runs", "runs.html", shown, captions.RUNS)] if shown else []
    return [*runs, *figure_parts(shown), *flags_]


def flags_part(audit: Audit) -> Part:
    """Return the part with what became of each flag, a column for each recipe."""
    titles: dict[str, str] = {}
    for group in audit.groups:
        titles |= {flag: "" for flag in group.recipe.flags if flag not in titles}
        titles |= {flag.id: flag.title for flag in group.flags if flag.title}
    columns = [(group.recipe.name, {flag.id: flag.state for flag in group.flags}) for group in audit.groups]
    data = {
        "columns": [name for name, _ in columns],
        "rows": [(flag, title, [_state(states.get(flag)) for _, states in columns]) for flag, title in titles.items()],
    }
    return Part("flags", "Flags", "flags.html", data, captions.FLAGS)


def _state(state: FlagOutcome | None) -> tuple[str, str]:
    if state is None:
        return "not set", "mut"
    moods = {FlagOutcome.APPLIED: "same", FlagOutcome.OVERRIDDEN: "diff", FlagOutcome.FAILED: "diff"}
    return FLAG_OUTCOMES.get(state, state), moods.get(state, "mut")
