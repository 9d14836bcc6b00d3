"""Notice that a script was edited between the start of a bisection and its resumption."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from detaudit.auditor import store
from detaudit.auditor.evidence.event_logs import Process, display_path
from detaudit.errors import UsageError

FILE = "sources.json"


def note(out: Path, cwd: Path, ran_in: Path, processes: Iterable[Process]) -> None:
    """Keep the digests of the user's source files that the first run loaded, which ``ran_in`` a copy of ``cwd``."""
    files = {file for process in processes if process.settings for file in process.settings.files}
    digests = {str(cwd / display_path(file, ran_in)): "" for file in sorted(files)}
    store.write(out / FILE, json.dumps({file: _digest(file) for file in digests}, indent=1).encode())


def refuse_edited(out: Path) -> None:
    """Raise UsageError if one of these files is not what it was."""
    try:
        noted = json.loads((out / FILE).read_bytes())
    except (OSError, ValueError):
        return  # no run had finished
    known: Mapping[str, object] = noted if isinstance(noted, dict) else {}
    edited = [file for file, digest in known.items() if _digest(file) != digest]
    if edited:
        more = f" and {len(edited) - 1} more" * (len(edited) > 1)
        raise UsageError(
            f"cannot resume: {edited[0]}{more} changed since this bisection began, and its runs are of the old version",
            "Start it again without --resume, or restore the file.",
        )


def _digest(file: str) -> str:
    try:
        return hashlib.blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()
    except (OSError, ValueError):
        return ""
