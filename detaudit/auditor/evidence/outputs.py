"""What left a run: its files and its printed text, put together after its end and kept in its folder."""

import getpass
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from detaudit.auditor import store
from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.evidence.event_records import UNREADABLE
from detaudit.launch import RunSpec
from detaudit.model import Artifact
from detaudit.model.encoding import encode
from detaudit.model.outputs import File, OutputRules, Outputs, RunFacts
from detaudit.outputs import compare, text

KEPT = "outputs.json"
"""What left a run, in its folder."""


def facts(spec: RunSpec, started: float, ended: float, processes: Iterable[Process] = ()) -> RunFacts:
    """Return what a run is known by. ``started`` and ``ended`` are in seconds since 1970."""
    temporary = spec.env.get("TMPDIR", "")
    folders = {str(spec.cwd), os.path.realpath(spec.cwd), str(spec.live), str(spec.folder), temporary}
    names = {*folders, socket.gethostname(), _user(), spec.mark} - {"", "/"}
    return RunFacts(
        started=started,
        ended=ended,
        pids=frozenset(process.hello.pid for process in processes),
        names=tuple(sorted(names, key=lambda name: (-len(name), name))),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def of_run(
    folder: Path, files: Sequence[File], known: RunFacts, exit_code: int | None, rules: OutputRules, unread: str = ""
) -> Outputs:
    """Return what left the run whose logs are in ``folder``."""
    stdout, stderr = text.load(folder)
    return Outputs(
        files=tuple(files),
        stdout=stdout,
        stderr=stderr,
        facts=known,
        exit_code=exit_code,
        unread=unread,
        rules=rules,
    )


def keep(outputs: Outputs, folder: Path) -> None:
    """Write what left a run to its folder. Raises StorageError if that fails."""
    store.write(folder / KEPT, encode(outputs))


def kept(folder: Path) -> Outputs | None:
    """Return what left a run, None if nothing was kept."""
    try:
        return msgspec.json.decode((folder / KEPT).read_bytes(), type=Outputs)
    except (OSError, *UNREADABLE):
        return None


def listed(outputs: Outputs) -> tuple[Artifact, ...]:
    """Return the files that are compared, as reports list them."""
    return tuple(
        Artifact(path=file.path, by=file.by, digest=compare.digest(file), sha256=file.sha256) for file in outputs.files
    )
