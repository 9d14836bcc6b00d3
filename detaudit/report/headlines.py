"""What stands at the top of an HTML report: the answer in one sentence, and what was audited."""

from collections.abc import Sequence
from datetime import datetime

from detaudit.model import Audit, Check, Comparison, Group, Report, Verdict, exit_code
from detaudit.model.number import count
from detaudit.report import words
from detaudit.report.messages import evidence
from detaudit.report.messages.wording import both, duration

_KINDS = {
    "run": "Audit",
    "bisect": "Bisection",
    "vary": "Bisection over variations",
    "trace": "Trace",
    "check": "Check",
    "compare": "Comparison",
}


def of_groups(groups: Sequence[Group]) -> str:
    """Return the verdicts on the recipes of an audit, the worst first."""
    if len(groups) == 1:
        return sentence(words.verdict(groups[0]), words.sentence(groups[0]))
    order = (Verdict.NONDETERMINISTIC, Verdict.MACHINE_DEPENDENT, Verdict.INCONCLUSIVE, Verdict.DETERMINISTIC)
    found = [(verdict, [one.recipe.name for one in groups if one.verdict is verdict]) for verdict in order]
    parts = [f"{verdict} with recipe{'s' * (len(names) > 1)} {both(names)}" for verdict, names in found if names]
    return capitalized("; ".join(parts)) or "Inconclusive: no run finished"


def sentence(word: str, text: str) -> str:
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
    found = []
    if isinstance(report, Audit | Check):
        found += [moment(report.started), *_runs(report)]
    return [*filter(None, found), f"exit status {exit_code(report)}"]


def _runs(report: Audit | Check) -> list[str]:
    audits = [one.audit for one in report.audits] if isinstance(report, Check) else [report]
    runs = [run for audit in audits for group in audit.groups for run in group.runs]
    total = getattr(report, "total_runs", len(runs))
    took = elapsed(report.started, report.ended)
    return [f"{count(total, 'run')} in {duration(took, '.0f')}" if took is not None else count(total, "run")]


def moment(text: str) -> str:
    """Return a time as people write it, ``""`` if it is not known."""
    found = _read(text)
    return f"{found.day} {found:%B %Y, %H:%M} UTC" if found else ""


def elapsed(started: str, ended: str) -> float | None:
    """Return the seconds between two times, None if one is not known."""
    a, b = seconds(started), seconds(ended)
    return b - a if a is not None and b is not None else None


def seconds(text: str) -> float | None:
    """Return a time in seconds since 1970, None if it is not known."""
    found = _read(text)
    return found.timestamp() if found else None


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
    shares = [evidence.share(group.differing_share)] if group.differing_share is not None else []
    return [line for line in (words.evidence_line(group), *shares) if line]


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


def environment(found: dict[str, object]) -> list[tuple[str, str]]:
    """Return the environment of an audit, without what is empty."""
    return [(name, text) for key, name in ENVIRONMENT.items() if (text := _listed(found.get(key)))]


def environments(found: Comparison) -> list[tuple[str, str]]:
    """Return what may change results, of each side if it differs."""
    a, b = found.a.environment, found.b.environment
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
