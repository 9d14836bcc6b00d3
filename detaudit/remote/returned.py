"""What came back of a run: its archive, as a result like that of a run which was started here."""

import copy
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path

import msgspec

from detaudit import __version__, private, wire
from detaudit.auditor.evidence import environment, event_logs, folded, machine
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

_LOGS = (f"*{wire.LOG_SUFFIX}", f"*{wire.OPS_SUFFIX}", f"*{wire.LOG_SUFFIX}{folded.SUFFIX}")
"""Files of which the auditor reads paths."""


class Reader:
    """Reads what came with each run: what is read of one is used for the next. ``out`` has the results of the audit."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._known: dict[bytes, Block] = {}
        self._files = Collector()

    def result(self, spec: RunSpec, attempt: Attempt, folder: Path, logs: Callable[[], None] = lambda: None) -> Result:
        """Return the result of a run, whose ``folder`` becomes that of ``spec``: paths are as if it had run here.

        ``logs`` is to bring its event logs if they are needed and not there. Raises StorageError if anything fails.
        """
        folders = {attempt.cwd: str(spec.cwd), attempt.place: str(self._out)}
        try:
            private.make_folder(spec.folder.parent)
            shutil.move(folder, spec.folder)
            whole = all(_rename(path, folders) for pattern in _LOGS for path in spec.folder.rglob(pattern))
        except OSError as error:
            raise StorageError.of(f"write to {spec.folder}", error) from error
        if not whole:
            hint = f"Install detaudit {attempt.plan.detaudit} here, as on the machines of the workers."
            raise StorageError(f"the trees of run {attempt.run} cannot be read by detaudit {__version__}", hint)
        processes = folded.read_run(spec.folder, self._known, logs)
        run = msgspec.structs.replace(attempt.result, log_dir=spec.log_dir)
        if run.through:
            cut(processes, run.through)
        record = compared(spec, processes, self._unhooked(spec, attempt))
        return Result(run, processes, record, attempt.threads, _place(attempt, processes))

    def _unhooked(self, spec: RunSpec, attempt: Attempt) -> tuple[Training, ...]:
        """Return what needs no event log, with names of files that all runs share."""
        outputs = kept(spec.folder)
        files = self._files.named(outputs.files)
        if files:
            keep(msgspec.structs.replace(outputs, files=files), spec.folder)
        saved = as_training(files)
        others = [part for part in attempt.unhooked if part.framework != Stage.SAVED.value]
        return (*others, *([saved] if saved is not None else []))


def _place(attempt: Attempt, processes: Sequence[event_logs.Process]) -> Place:
    """Return where a run was done. A machine without an identity is known by its name."""
    facts = copy.deepcopy(attempt.machine)
    environment.add_processes(facts, processes)
    host = str(facts.get("host", ""))
    return Place(str(facts.get("id") or host), host, machine.relevant(facts), attempt.refused, attempt.machine)


def _rename(path: Path, folders: Mapping[str, str]) -> bool:
    """Replace folders at the beginning of texts in a file; the longest path is looked for first.

    It is one of JSON lines, or the trees of an event log that is elsewhere, and stays as it is. Return whether it can
    be read.
    """
    changes = [
        (msgspec.json.encode(old)[:-1] + end, msgspec.json.encode(new)[:-1] + end)
        for old, new in sorted(folders.items(), key=lambda one: -len(one[0]))
        if old not in ("", "/", new)
        for end in (b"/", b'"')
    ]

    def change(text: bytes) -> bytes:
        return reduce(lambda found, one: found.replace(*one), changes, text)

    if path.name.endswith(folded.SUFFIX):
        return folded.rename(path.with_name(path.name.removesuffix(folded.SUFFIX)), change)
    if changes:
        half = path.with_name(path.name + ".part")
        with open(path, "rb") as lines, open(half, "wb", opener=private.opener) as file:
            file.writelines(map(change, lines))
        half.replace(path)
    return True
