"""Check an archive: its hashes, its statement, and its verdict from the logs."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from detaudit import __version__, store
from detaudit.errors import AuditNotFoundError, DetauditError
from detaudit.evidence import archive, materials, pack, recompute
from detaudit.evidence.archive import Member, NotAnArchiveError, Source
from detaudit.evidence.materials import Materials, Report
from detaudit.evidence.statement import NAME, judge, statement
from detaudit.model import Comparison

_MOST_STATEMENT = 2**28
"""Bytes of a statement or a report that are read."""


@dataclass
class Verified:
    """What a check of an archive shows: ``edited`` says what is not as it was written.

    ``taken`` is what nobody can judge again.
    """

    report: Report
    used: Materials
    edited: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def verify(path: Path, folder: Path) -> Verified:
    """Check the archive at ``path``, unpacked to the new ``folder``; nothing in it is run.

    Raises NotAnArchiveError for a file that is none, StorageError if it cannot be unpacked.
    """
    members, damaged = archive.unpack(path, folder)
    edited = [f"{name} is damaged" for name in damaged]
    said, report, used = _parts(path, folder, members)
    others = {name: member for name, member in members.items() if name != NAME}
    edited += _hashes(said, others)
    expected = statement(report, used, others)
    if expected != (folder / NAME).read_bytes():
        ours, theirs = msgspec.json.decode(expected), said
        paths = [one for one, *_ in recompute.values("", ours, theirs)]
        named = [one for one in paths if not one.startswith("predicate.members")]
        edited += [f"{NAME}: {one} is not what the other members say" for one in named]
        if not paths:
            edited.append(f"{NAME} is written differently")
    sources: dict[str, Source] = {name: folder.joinpath(*name.split("/")) for name in members}
    if not damaged and not archive.is_laid_out(path, sources, members):
        edited.append("the zip file is not as detaudit packs these members")
    verified = Verified(report, used, edited)
    _judge_again(verified, folder)
    return verified


def _parts(path: Path, folder: Path, members: dict[str, Member]) -> tuple[object, Report, Materials]:
    """Return the statement, the report, and what its runs used."""
    hint = "Name a file that --evidence or `detaudit evidence` wrote, or get it from where it is kept."
    try:
        for name, member in members.items():
            if name.endswith(".json") and name.count("/") < 2 and member.size > _MOST_STATEMENT:
                raise NotAnArchiveError(f"{name} of {path} has {member.size} bytes", hint)
        said = msgspec.json.decode((folder / NAME).read_bytes())
        if pack.COMPARISON in members:
            report: Report = msgspec.json.decode((folder / pack.COMPARISON).read_bytes(), type=Comparison)
        else:
            report = store.load_report(folder / pack.RESULTS)
        used = materials.load(folder / pack.RESULTS)
        if used is None:
            raise FileNotFoundError(f"{pack.RESULTS}/{materials.FILE}")
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnArchiveError(f"{path} is no whole archive of evidence: {_said(error, folder)}", hint) from error
    except AuditNotFoundError as error:
        raise NotAnArchiveError(f"{path} is no whole archive of evidence: {_said(error, folder)}", hint) from error
    return said, report, used


def _said(error: Exception, folder: Path) -> str:
    return str(error).replace(f"{folder}/", "")


def _hashes(said: object, members: dict[str, Member]) -> list[str]:
    """Return which members are not those that the statement lists."""
    predicate = said.get("predicate") if isinstance(said, dict) else None
    listed = predicate.get("members") if isinstance(predicate, dict) else None
    known: dict[str, object] = {}
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            known[one["name"]] = one
    wrong = []
    for name, member in sorted(members.items()):
        expected = {"name": name, "digest": {"sha256": member.sha256}, "annotations": {"size": member.size}}
        if name not in known:
            wrong.append(f"{name} is not in the statement")
        elif known[name] != expected:
            wrong.append(f"{name} has other bytes than the statement says")
    return [*wrong, *(f"{name} is missing" for name in sorted({*known} - {*members}))]


def _judge_again(verified: Verified, folder: Path) -> None:
    """Add in what the report is not what the logs show, and what they cannot show."""
    report = verified.report
    version = judge(report, verified.used)
    if version != __version__:
        verified.taken.append(f"{pack.HTML}: detaudit {version} wrote it, and this is {__version__}")
    try:
        if isinstance(report, Comparison):
            results = None
            differing, taken = recompute.edited_comparison(report, folder)
        else:
            results = folder / pack.RESULTS
            differing, taken = recompute.edited(report, results)
            verified.edited += _code(verified)
        verified.edited += differing
        verified.taken += taken
        if version == __version__ and pack.html(report, results) != (folder / pack.HTML).read_bytes():
            verified.edited.append(f"{pack.HTML} is not the page of this report")
    except (DetauditError, OSError) as error:
        verified.edited.append(f"the logs cannot be judged again: {_said(error, folder)}")


def _code(verified: Verified) -> list[str]:
    """Return in which files the report and what its runs used disagree."""
    hashes = {file.name: file.sha256 for file in verified.used.code if not file.later}
    said = {name: digest for audit in materials.audits(verified.report).values() for name, digest in audit.code.items()}
    return [f"code.{name} is not as in {materials.FILE}" for name in sorted(said) if hashes.get(name) != said[name]]


def unpacked() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder to unpack to, which is removed when it is left."""
    return tempfile.TemporaryDirectory(prefix="detaudit-verify-")
