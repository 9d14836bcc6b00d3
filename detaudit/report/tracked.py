"""What a tracker shows of a report and of each of its runs."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from detaudit.model import (
    Audit,
    Bisection,
    Check,
    CheckedAudit,
    Gate,
    Group,
    Number,
    RankRecord,
    Run,
    Status,
    VariationBisection,
)
from detaudit.model.fact import encode
from detaudit.model.figures import NO_FIGURES, Figures, LossSamples
from detaudit.model.problems import errors
from detaudit.notebooks.cells import location_of
from detaudit.report import groups, markdown
from detaudit.report.findings import findings, script_of
from detaudit.report.plain import line

# What an experiment tracker shows of one run of an audit.


MOST_RANKS = 8
"""Ranks of a run that have metrics of their own."""

Points = Sequence[tuple[int, float]]
"""Values by step, ascending."""


@dataclass(frozen=True)
class TrackedRun:
    """A run of the script with a recipe, or of a trial. ``seconds`` is how long it took."""

    recipe: str
    number: int
    status: Status
    seconds: float
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    curves: Mapping[str, Points] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What no other run of its audit has, nor one that was interrupted and done again under this number."""
        return f"{self.recipe}/{self.number}/{self.seconds}"

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.recipe}, run {self.number}"


def tracked_run(group: Group, run: Run, samples: Sequence[LossSamples]) -> TrackedRun:
    """Return what a tracker shows of a run. All text is plain."""
    recipe = group.recipe
    return TrackedRun(
        recipe=line(recipe.name),
        number=run.id,
        status=run.status,
        seconds=run.wall_s,
        params={"recipe": line(recipe.name), "seed": str(recipe.seed)},
        tags={name: line(text) for name, text in _tags(group, run) if text},
        metrics={name: value for name, value in _run_metrics(run) if value is not None},
        curves=dict(_curves([one for one in samples if one.run == run.id])),
    )


def _tags(group: Group, run: Run) -> Iterator[tuple[str, str]]:
    yield "status", run.status
    yield "flags", ", ".join(group.recipe.flags)
    yield "error", errors(run.errors)
    if run.first_difference is not None:
        yield "first_difference", run.first_difference.cell()
    for suffix, rank in _ranks(run):
        yield f"digest{suffix}", rank.digest or ""


def _run_metrics(run: Run) -> Iterator[tuple[str, float | None]]:
    yield "duration_s", run.wall_s
    yield "steps", run.steps
    yield "result", run.result
    for suffix, rank in _ranks(run):
        yield f"sum_of_weights{suffix}", _number(rank.sum_of_weights)
        yield f"final_loss{suffix}", _number(rank.final_loss)


def _ranks(run: Run) -> Iterator[tuple[str, RankRecord]]:
    """Yield the fingerprints of a run, each with the end of its names: empty if there is only one."""
    for rank in run.ranks[:MOST_RANKS]:
        yield "" if len(run.ranks) == 1 else _suffix(groups.rank_name(rank)), rank


def _suffix(rank: str) -> str:
    return f".rank_{rank}" if rank.isdecimal() else f".{rank}"


def _curves(samples: Sequence[LossSamples]) -> Iterator[tuple[str, Points]]:
    for one in samples:
        suffix = "" if len(samples) == 1 else _suffix(str(one.rank))
        losses = zip(one.steps, map(_number, one.losses), strict=True)
        yield f"loss{suffix}", [(step, loss) for step, loss in losses if loss is not None]
        if one.distances:
            distances = zip(one.steps, one.distances, strict=True)
            yield f"loss_distance{suffix}", [(step, apart) for step, apart in distances if apart is not None]


def _number(value: Number) -> float | None:
    return None if value is None else float(value)


# What an experiment tracker shows of a report: an audit, or each audit of a check, and its runs.


IN_ARTIFACTS = "The whole report is among the artifacts: report.html."
"""The end of a description that is too long."""

_INTERRUPTED = "complete"
"""The rule that an interrupted audit breaks. It has a tag of its own."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class TrackedAudit:
    """An audit. ``id`` stays the same if it is resumed or its folder is moved; ``script`` is named as it was typed.

    ``started`` is in UTC (ISO 8601), ``""`` if it is not known. ``note`` is Markdown; all other text is plain.
    """

    id: str
    script: str
    name: str
    started: str
    interrupted: bool
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    note: str
    runs: Sequence[TrackedRun]


def tracked(report: Audit | Check, figures: Figures) -> list[TrackedAudit]:
    """Return what a tracker shows of a report, with the curves of figures that have samples."""
    if isinstance(report, Audit):
        return [_audit(report, figures)]
    audit_figures = dict(enumerate(figures.audits))
    return [_audit(one.audit, audit_figures.get(index, NO_FIGURES), one) for index, one in enumerate(report.audits)]


def _audit(audit: Audit, figures: Figures, checked: CheckedAudit | None = None) -> TrackedAudit:
    kind = groups.kind(str(audit.__struct_config__.tag))
    title = f"{kind} {checked.name}" if checked is not None else kind
    tags = {
        "kind": kind,
        "verdict": audit.verdict,
        "interrupted": "yes" if audit.interrupted else "",
        "command": " ".join(audit.command),
        **dict(_answers(audit)),
        **{f"gate.{gate.name.option}": f"{gate.status}: {gate.detail.text()}" for gate in _gates(checked)},
    }
    return TrackedAudit(
        id=_id(audit),
        script=line(script_of(audit.command) or "detaudit"),
        name=line(f"{title} {audit.started.replace('T', ' ')[:19]}"),
        started=audit.started,
        interrupted=audit.interrupted,
        params={name: line(text) for name, text in _params(audit) if text},
        tags={name: line(text) for name, text in tags.items() if text},
        metrics={name: value for name, value in _metrics(audit) if value is not None},
        note=_note(audit),
        runs=list(_runs(audit, figures)),
    )


def _note(audit: Audit) -> str:
    """Return the answers and the whole report below them, because trackers show the first lines of a description."""
    audit_findings = [one for one in findings(audit) if one.rule != _INTERRUPTED]
    answers = [markdown.prose(one.message) for one in audit_findings]
    if len(audit_findings) == 1:
        text = f"**{audit.verdict}**: {answers[0]}"
    else:
        lines = [f"- {markdown.prose(one.name)}: {answer}" for one, answer in zip(audit_findings, answers, strict=True)]
        text = "\n".join([f"**{audit.verdict}**", "", *lines])
    return f"{text}\n\n{markdown.render(audit)}"


def _runs(audit: Audit, figures: Figures) -> Iterator[TrackedRun]:
    for group in audit.groups:
        samples = figures.of(audit, group).samples
        yield from (tracked_run(group, run, samples) for run in group.runs)


def _gates(checked: CheckedAudit | None) -> Sequence[Gate]:
    return checked.gates if checked is not None else ()


def _id(audit: Audit) -> str:
    """Return 16 hex digits. The time at which a bisection started is that of its last resumption, so it is left out."""
    first = next((run for group in audit.groups for run in group.runs), None)
    of_run = (first.log_dir, first.wall_s, first.step_s, first.ranks) if first is not None else ()
    started = "" if isinstance(audit, Bisection | VariationBisection) and first is not None else audit.started
    identity = (audit.__struct_config__.tag, audit.target or audit.command, started, of_run)
    return hashlib.sha256(encode(identity)).hexdigest()[:16]


def _groups(audit: Audit) -> Iterator[tuple[str, Group]]:
    """Yield the recipes of an audit, each with the end of its names; a bisection has trials instead, so none."""
    if not isinstance(audit, Bisection | VariationBisection):
        for group in audit.groups:
            suffix = "" if len(audit.groups) == 1 else f".{_NOT_IN_NAMES.sub('_', group.recipe.name)}"
            yield suffix, group


def _answers(audit: Audit) -> Iterator[tuple[str, str]]:
    suffixes = {line(group.recipe.name): suffix for suffix, group in _groups(audit)}
    for finding in findings(audit):
        if finding.rule == _INTERRUPTED:
            continue
        suffix = suffixes.get(finding.name, "")
        yield f"answer{suffix}", finding.message
        if finding.culprit is not None:
            culprit = finding.culprit
            yield f"culprit{suffix}", f"{location_of(culprit.file, culprit.line)}: {culprit.message}"
    for suffix, group in _groups(audit):
        if suffix:
            yield f"verdict{suffix}", group.verdict
        yield f"evidence{suffix}", groups.evidence_line(group)
        yield f"first_difference{suffix}", groups.where(group)
        yield f"flags{suffix}", ", ".join(group.recipe.flags)
    if isinstance(audit, Bisection) and audit.needed is not None:
        yield "needed_flags", ", ".join(one.flag for one in audit.needed)
    if isinstance(audit, VariationBisection) and audit.sensitive_to is not None:
        yield "sensitive_to", ", ".join(one.variation for one in audit.sensitive_to)


def _params(audit: Audit) -> Iterator[tuple[str, str]]:
    yield "script", script_of(audit.command) or ""
    recipes = [group.recipe for _, group in _groups(audit)]
    yield "recipe", ", ".join(recipe.name for recipe in recipes)
    yield "seed", ", ".join(dict.fromkeys(str(recipe.seed) for recipe in recipes))
    for name in ("detaudit", "python", "system"):
        yield name, str(audit.environment.get(name) or "")
    frameworks = audit.environment.get("frameworks")
    if isinstance(frameworks, dict):
        yield from ((_NOT_IN_NAMES.sub("_", name), str(version)) for name, version in frameworks.items())


def _metrics(audit: Audit) -> Iterator[tuple[str, float | None]]:
    yield "runs", getattr(audit, "total_runs", sum(len(group.runs) for group in audit.groups))
    yield "duration_s", groups.elapsed(audit.started, audit.ended)
    for suffix, group in _groups(audit):
        yield f"distinct_results{suffix}", group.distinct_results
        if group.first_difference is not None:
            yield f"first_difference_step{suffix}", group.first_difference.step
        if group.confidence is not None:
            yield f"confidence_level{suffix}", group.confidence.level
            yield f"max_differing_rate{suffix}", group.confidence.max_differing_rate
    if isinstance(audit, Bisection | VariationBisection) and audit.evidence is not None:
        yield "matching_runs", audit.evidence.runs
        yield "miss_probability", audit.evidence.miss_probability
