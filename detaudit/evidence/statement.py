"""The statement of an archive, in the format of in-toto: what it is about, what was used, and what it says.

It follows from the other members alone, so that nothing of it can be edited without being noticed.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from detaudit.evidence.archive import Member
from detaudit.evidence.materials import DIFF, Hashed, Materials, Report, audits
from detaudit.model import Audit, Check, Comparison, Group
from detaudit.model.fact import encode

NAME = "statement.json"

TYPE = "https://in-toto.io/Statement/v1"
"""https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md"""

PREDICATE = "urn:detaudit:evidence:1"
"""The type of what the statement says."""

NOTE = (
    "The hashes detect accidents and edits that leave them as they are. Whoever can write this file can write other "
    "hashes: only a signature detects a forger."
)


def statement(report: Report, materials: Materials, members: Mapping[str, Member]) -> bytes:
    """Return the statement on a report, from all other members of its archive."""
    said = {
        "_type": TYPE,
        "subject": list(_subjects(report, members)),
        "predicateType": PREDICATE,
        "predicate": {
            "note": NOTE,
            "verdict": _verdict(report),
            "judgedBy": {"name": "detaudit", "version": judge(report, materials), "layout": report.schema_version},
            "command": list(report.command),
            "started": "" if isinstance(report, Comparison) else report.started,
            "ended": "" if isinstance(report, Comparison) else report.ended,
            "materials": list(_materials(materials, members)),
            "packagesHashed": "later" if materials.later else "when the audit ended",
            "machine": materials.machine,
            "variables": materials.variables,
            "budget": {"seconds": materials.budget.seconds, "bytes": materials.budget.bytes},
            "notHashed": [{"name": one.name, "why": one.why} for one in materials.unhashed],
            "members": [
                {"name": name, "digest": {"sha256": one.sha256}, "annotations": {"size": one.size}}
                for name, one in sorted(members.items())
            ],
        },
    }
    return msgspec.json.format(encode(said), indent=2) + b"\n"


def judge(report: Report, materials: Materials) -> str:
    """Return the version of detaudit that judged."""
    audit = next(iter(audits(report).values()), None)
    return str((audit.environment if audit is not None else materials.machine).get("detaudit", ""))


def _subjects(report: Report, members: Mapping[str, Member]) -> Iterator[dict[str, Any]]:
    """Yield the report, then what the runs wrote: each content of a file once, with the runs that wrote it."""
    for name in ("results/audit.json", "results/check.json", "compare.json"):
        if name in members:
            yield {"name": name, "digest": {"sha256": members[name].sha256}}
    files: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for folder, audit in audits(report).items():
        for group in audit.groups:
            for run in group.runs:
                hashes = {file.path: file.sha256 for file in (*run.artifacts, *run.saved) if file.sha256}
                for path, digest in hashes.items():
                    files[path, digest].append("/".join(filter(None, (folder, group.recipe.name, str(run.id)))))
    for (path, digest), runs in sorted(files.items()):
        yield {"name": path, "digest": {"sha256": digest}, "annotations": {"runs": runs}}


def _materials(materials: Materials, members: Mapping[str, Member]) -> Iterator[dict[str, Any]]:
    for kind, files in (("code", materials.code), ("data", materials.data)):
        yield from (_file(kind, file) for file in files)
    if materials.git is not None:
        git = materials.git
        yield {
            "name": "git",
            "digest": {"gitCommit": git.commit},
            "annotations": {"kind": "git", "changed": bool(git.diff), "untracked": list(git.untracked)},
        }
        if git.diff:
            kept = {"member": f"results/{DIFF}"} if f"results/{DIFF}" in members else {}
            yield {"name": "git diff", "digest": {"sha256": git.diff}, "annotations": {"kind": "git", **kept}}
    for package in materials.packages:
        purl = f"pkg:pypi/{package.name}@{package.version}"
        yield {"name": package.name, "uri": purl, "annotations": {"kind": "package", "record": package.record}}


def _file(kind: str, file: Hashed) -> dict[str, Any]:
    hashed = "later" if file.later else "after the run that loaded it" if kind == "code" else "when the audit ended"
    return {
        "name": file.name,
        "digest": {"sha256": file.sha256},
        "annotations": {"kind": kind, "size": file.size, "hashed": hashed},
    }


# What the report says, with its statistics, and what it is silent about.


def _verdict(report: Report) -> dict[str, Any]:
    if isinstance(report, Check):
        return {
            "verdict": report.verdict,
            "audits": [
                {"name": one.name, **_of_audit(one.audit), "gates": [_gate(gate) for gate in one.gates]}
                for one in report.audits
            ],
        }
    if isinstance(report, Audit):
        return _of_audit(report)
    return {
        "verdict": report.verdict,
        "sides": [report.a.name, report.b.name],
        "stepsCompared": report.steps_compared,
        "stages": list(report.stages),
        "firstDifference": None if report.first_difference is None else report.first_difference.where(),
    }


def _gate(gate: Any) -> dict[str, Any]:
    return {"name": gate.name, "status": gate.status, "detail": gate.detail.text()}


def _of_audit(audit: Audit) -> dict[str, Any]:
    return {
        "verdict": audit.verdict,
        "interrupted": audit.interrupted,
        "recipes": [_of_group(group) for group in audit.groups],
    }


def _of_group(group: Group) -> dict[str, Any]:
    confidence, share, first = group.confidence, group.differing_share, group.first_difference
    return {
        "recipe": group.recipe.name,
        "seed": group.recipe.seed,
        "flags": list(group.recipe.flags),
        "verdict": group.verdict,
        "reason": group.reason.text() if group.reason is not None else "",
        "runs": len(group.runs),
        "runsCompared": group.compared,
        "differentResults": group.distinct_results,
        "confidence": None if confidence is None else msgspec.to_builtins(confidence),
        "differingShare": None if share is None else msgspec.to_builtins(share),
        "firstDifference": first.where() if first is not None else None,
        "throughStep": group.through,
        "compared": {"stages": list(group.stages), "outputs": group.outputs_compared},
        "notCompared": _not_compared(group),
    }


def _not_compared(group: Group) -> list[str]:
    silent = [f"the stage {stage}" for stage in _STAGES if stage not in group.stages]
    if group.weights_sampled:
        silent.append("weights between the steps 1, 2, 4, 8, …")
    if not group.outputs_compared:
        silent.append("files, printed text and the exit status")
    if group.through is not None:
        silent.append(f"steps after {group.through}")
    return silent


_STAGES = ("init", "rng", "batch", "forward", "backward", "reduce", "hyperparameters", "update", "state", "output")
