"""What came back of a run: its archive, as a result like that of a run which was started here."""

import copy
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from detaudit import private
from detaudit.auditor.evidence import environment, event_logs, machine
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.evidence.written import Collector, as_training, keep, kept
from detaudit.auditor.judge.machines import Place
from detaudit.auditor.judge.run_status import compared
from detaudit.auditor.judge.through import cut
from detaudit.auditor.runs.runner import Result
from detaudit.errors import StorageError
from detaudit.launch import RunSpec
from detaudit.model import Stage, Training
from detaudit.remote.archive import Attempt

_LOGS = ("*.jsonl", "*.ops")
"""Files of which the auditor reads paths."""


class Reader:
    """Reads what came with each run: what is read of one is used for the next. ``out`` has the results of the audit."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._known: dict[bytes, Block] = {}
        self._files = Collector()

    def result(self, spec: RunSpec, attempt: Attempt, folder: Path) -> Result:
        """Return the result of a run, whose ``folder`` becomes that of ``spec``: paths are as if it had run here.

        Raises StorageError if that fails.
        """
        try:
            private.make_folder(spec.folder.parent)
            shutil.move(folder, spec.folder)
            for pattern in _LOGS:
                for path in spec.folder.rglob(pattern):
                    _rename(path, {attempt.cwd: str(spec.cwd), attempt.place: str(self._out)})
        except OSError as error:
            raise StorageError.of(f"write to {spec.folder}", error) from error
        processes = event_logs.read_run(spec.folder, self._known)
        run = msgspec.structs.replace(attempt.result, log_dir=spec.log_dir)
        if run.through:
            cut(processes, run.through)
        record = compared(spec, processes, self._unhooked(spec, attempt))
        return Result(run, processes, record, attempt.threads, _place(attempt, processes))

    def _unhooked(self, spec: RunSpec, attempt: Attempt) -> tuple[Training, ...]:
        """Return what needs no event log, with names of files that all runs share."""
        files = tuple(self._files.named({file.path: file.contents for file in kept(spec.folder)}).values())
        if files:
            keep(files, spec.folder)
        saved = as_training(files)
        others = [part for part in attempt.unhooked if part.framework != Stage.SAVED.value]
        return (*others, *([saved] if saved is not None else []))


def _place(attempt: Attempt, processes: Sequence[event_logs.Process]) -> Place:
    """Return where a run was done. A machine without an identity is known by its name."""
    facts = copy.deepcopy(attempt.machine)
    environment.add_processes(facts, processes)
    host = str(facts.get("host", ""))
    return Place(str(facts.get("id") or host), host, machine.relevant(facts), attempt.refused, attempt.machine)


def _rename(path: Path, folders: Mapping[str, str]) -> None:
    """Replace folders at the beginning of texts in a file of JSON lines; the longest path is looked for first."""
    changes = [
        (msgspec.json.encode(old)[:-1] + end, msgspec.json.encode(new)[:-1] + end)
        for old, new in sorted(folders.items(), key=lambda one: -len(one[0]))
        if old not in ("", "/", new)
        for end in (b"/", b'"')
    ]
    if not changes:
        return
    half = path.with_name(path.name + ".part")
    with open(path, "rb") as lines, open(half, "wb", opener=private.opener) as file:
        for line in lines:
            for old, new in changes:
                line = line.replace(old, new)
            file.write(line)
    half.replace(path)
