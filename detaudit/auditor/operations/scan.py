"""Scan a framework's operations: start the processes of each pass, go on where one died, and judge the results."""

import fnmatch
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from detaudit import private, wire
from detaudit.auditor import store
from detaudit.auditor.evidence.event_logs import display_path
from detaudit.auditor.operations import answers, judge, step
from detaudit.auditor.operations.answers import Answers, Crashed, Item
from detaudit.auditor.operations.passes import Pass, passes
from detaudit.auditor.operations.progress import Progress, Watcher
from detaudit.errors import AuditNotFoundError, ScanError, UnknownNameError
from detaudit.launch import Launcher, RunOutcome, RunSpec
from detaudit.model import SCHEMA_VERSION
from detaudit.model.operations import OpCrash, OpResult, OpScan, OpSkipped, ScriptStep
from detaudit.model.times import now

START = Path(__file__).resolve().parents[2] / "scanner" / "start.py"

SCAN = "scan.json"
"""The file with the Request, in the results folder."""

SECONDS = "seconds.txt"
"""The file with how long each process took."""

FIRST = "first"
"""The pass that enlarges the samples."""

_PREFIXES = ("torch.Tensor.", "torch.", "tensorflow.", "tf.")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to scan: a resumed scan has the same.

    If it is what one step of a ``script`` calls, the calls are in ``log``, ``""`` if there are none.
    """

    python: str
    framework: str
    device: str
    patterns: tuple[str, ...]
    dtypes: tuple[str, ...]
    repeats: int
    samples: tuple[int, ...] = ()
    started: str = msgspec.field(default_factory=now)
    script: ScriptStep | None = None
    log: str = ""


@dataclass
class Scanner:
    """One scan. ``env`` are the variables of the user, ``mark`` finds its processes."""

    request: Request
    out: Path
    mark: str
    launcher: Launcher
    env: Mapping[str, str]
    cpus: int
    watcher: Watcher = field(default_factory=Watcher)

    def run(self) -> OpScan:
        """Do every pass that is not done, and return the report. Raises ScanError if the framework does not load."""
        if self.request.script is not None and not self.request.log:
            return self.result()
        private.make_folder(self.out / "kept")
        listed = self._listed()
        items = [item for item in listed.items if _wanted(item[0], self.request.patterns)]
        if not items:
            script = self.request.script
            source = self.request.framework if script is None else f"step {script.step} of {' '.join(script.command)}"
            raise UnknownNameError(
                f"no operation of {source} matches {', '.join(self.request.patterns)}",
                "Patterns are as in a shell: --op '*scatter*'.",
            )
        for one in self._passes(listed):
            differing = judge.differing(self._evidence()) if one.again else set()
            self._do(one, [item for item in items if item in differing] if one.again else items)
        if self.request.log:
            step.discard(Path(self.request.log))
        return self.result()

    def result(self, interrupted: bool = False) -> OpScan:
        """Return the report of what was repeated so far."""
        listed = self._read_list()
        found = self._evidence()
        done = {one.name: answers.read(self._lines(one.name)) for one in self._passes(listed)}
        crashed = {(one.op, one.dtype): one for pass_ in done.values() for one in pass_.crashed}
        skipped = {(one.op, one.dtype): one for pass_ in done.values() for one in pass_.skipped}
        return OpScan(
            schema_version=SCHEMA_VERSION,
            framework=self.request.framework,
            version=listed.framework.version if listed.framework else "",
            device=self.request.device,
            dtypes=self.request.dtypes or tuple(dict.fromkeys(one.case.dtype for one in found)),
            threads=listed.framework.threads if listed.framework else 0,
            started=self.request.started,
            wall_s=self._seconds(),
            operations=len({one.case.op for one in found}),
            cases=len(found),
            differing=tuple(self._called(one.result()) for one in found if one.differs),
            refused=tuple(self._called(one.result()) for one in found if one.error and not one.differs),
            thread_dependent=tuple(dict.fromkeys(one.case.op for one in found if one.thread_dependent)),
            crashed=tuple(OpCrash(op=one.op, dtype=one.dtype, exit_code=one.exit_code) for one in crashed.values()),
            skipped=tuple(OpSkipped(op=one.op, dtype=one.dtype, error=one.error) for one in skipped.values()),
            interrupted=interrupted,
            script=self.request.script,
        )

    def _called(self, result: OpResult) -> OpResult:
        """Return a result with where the script makes the call."""
        if not self.request.log:
            return result
        call = self._noted[result.sample]
        file = display_path(call.file, Path.cwd())
        return msgspec.structs.replace(result, calls=call.count, file=file, line=call.line)

    @cached_property
    def _noted(self) -> tuple[step.Noted, ...]:
        return step.read(Path(self.request.log))[0]

    def _passes(self, listed: Answers) -> tuple[Pass, ...]:
        threads = listed.framework.threads if listed.framework else 1
        return passes(self.request.framework, self.request.device, threads, self.cpus, self.request.repeats)

    def _evidence(self) -> list[judge.Evidence]:
        done = [(answers.read(self._lines(one.name)).cases, one.fill) for one in self._passes(self._read_list())]
        return judge.collected(done)

    def _lines(self, name: str) -> Path:
        return self.out / f"{name}.jsonl"

    def _seconds(self) -> float:
        """Return how long the processes took, of resumed scans too."""
        times = self.out / SECONDS
        return sum(map(float, times.read_text().split())) if times.exists() else 0.0

    def _read_list(self) -> Answers:
        return answers.read(self._lines("list"))

    def _listed(self) -> Answers:
        """Return the operations of the framework, which are listed once."""
        if not (found := self._read_list()).items:
            self._lines("list").unlink(missing_ok=True)
            spec = self._spec("list", "list", {"lists": self.request.dtypes})
            outcome = self._launch(spec, Progress(self._lines("list"), "list", 0, self.watcher))
            found = self._read_list()
            if outcome.exit_code != 0 or not found.items:
                raise ScanError(
                    f"cannot list the operations of {self.request.framework}: {_last_line(spec.folder)}",
                    f"Check that {self.request.python} imports {self.request.framework} and that there is a device "
                    f"{self.request.device}, or choose another --python or --device.",
                )
        return found

    def _do(self, one: Pass, items: list[Item]) -> None:
        """Do a pass, in as many processes as it takes: an operation that ends one is not repeated.

        One that was under way when a scan was interrupted is.
        """
        path = self._lines(one.name)
        while todo := [item for item in items if item not in (done := answers.read(path)).finished]:
            sizes = {} if one.name == FIRST else answers.read(self._lines(FIRST)).sizes()
            job = {
                "items": todo,
                "phases": one.phases,
                "sizes": sizes,
                "samples": self.request.samples or None,
                "keep": str(self.out / "kept"),
            }
            spec = self._spec(f"{one.name}-{len(done.finished)}", one.name, job, one)
            outcome = self._launch(spec, Progress(path, one.name, len(items), self.watcher))
            if outcome.exit_code == 0:
                return
            broken = answers.read(path).broken
            if broken is None:
                raise ScanError(f"a process of the scan failed: {_last_line(spec.folder)}", f"Its logs: {spec.folder}.")
            crashed = Crashed(*broken, exit_code=outcome.exit_code)
            store.append(path, b"\n" + msgspec.json.encode({"crashed": crashed}) + b"\n")  # the last may be cut off

    def _spec(self, folder: str, lines: str, job: Mapping[str, object], one: Pass | None = None) -> RunSpec:
        """Return how to start a process, after writing its job."""
        request = self.request
        path = self.out / f"{lines}.job.json"
        whole = {"framework": request.framework, "device": request.device, "lines": str(self._lines(lines)), **job}
        if request.log:
            whole["log"] = request.log
        store.write(path, msgspec.json.encode(whole))
        env = {**self.env, wire.ENV_MARK: self.mark, "PYTHONHASHSEED": "0"}
        if one is not None:
            env |= {**dict(one.env), "MALLOC_PERTURB_": str(one.fill)}
        return RunSpec(
            argv=(request.python, str(START), str(path)),
            cwd=self.out,
            env=env,
            folder=self.out / "runs" / folder,
            live=self.out / "live",
            mark=self.mark,
            load=one.load if one is not None else 0,
        )

    def _launch(self, spec: RunSpec, progress: Progress) -> RunOutcome:
        if spec.folder.exists():  # of an interrupted scan
            shutil.rmtree(spec.folder)
        outcome = self.launcher.launch(spec, progress.tick)
        store.append(self.out / SECONDS, f"{outcome.wall_s:.1f}\n".encode())
        return outcome


def read_request(folder: Path) -> Request:
    """Read what the scan in this folder is about. Raises AuditNotFoundError if there is none."""
    try:
        return msgspec.json.decode((folder / SCAN).read_bytes(), type=Request)
    except (OSError, msgspec.MsgspecError) as error:
        raise AuditNotFoundError(f"no scan in {folder}", "Pass the results folder of `detaudit ops`.") from error


def _wanted(op: str, patterns: Iterable[str]) -> bool:
    """Return whether an operation matches one of the patterns, which may begin as in code: ``torch.Tensor.put_``.

    ``aten.put_.default`` is named ``put_`` too.
    """
    names = {op, op.removeprefix("aten.").rpartition(".")[0] if op.startswith("aten.") else op}
    return any(fnmatch.fnmatchcase(name, _bare(pattern)) for pattern in patterns for name in names)


def _bare(pattern: str) -> str:
    prefix = next((one for one in _PREFIXES if pattern.startswith(one)), "")
    return pattern.removeprefix(prefix)


def _last_line(folder: Path) -> str:
    """Return the last line that a process wrote on stderr."""
    try:
        lines = (folder / "stderr.log").read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
