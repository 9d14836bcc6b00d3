"""The processes of a scan of operations, and of one step of a script."""

import fnmatch
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from detaudit import private, store, wire
from detaudit.errors import AuditNotFoundError, ScanError, UnknownNameError
from detaudit.launch import EnoughError, Launcher, RunOutcome, RunSpec
from detaudit.launch.plan import Settings, plan_group
from detaudit.model import SCHEMA_VERSION
from detaudit.model.fact import now
from detaudit.model.operations import LeftOut, LeftOutCalls, OpCrash, OpResult, OpScan, OpSkipped, ScriptStep
from detaudit.ops import answers, judge
from detaudit.ops.answers import Answers, Crashed, Item, Pass, passes
from detaudit.runner import Limits, Observer, Runner
from detaudit.runs.log import Process, display_path, trainings
from detaudit.runs.log_records import UNREADABLE

# Follow a process of a scan by the lines that it writes.


STALLED_S = 120.0
"""Seconds without a line after which the operation under way is ended."""


class Watcher:
    """Is notified of the progress of a scan; does nothing by itself."""

    def progress(self, name: str, done: int, of: int) -> None:
        """Note how many of its items a pass has done."""


class Progress:
    """Follows the lines of a process, and ends it if none comes for STALLED_S."""

    def __init__(self, path: Path, name: str, of: int, watcher: Watcher) -> None:
        self._path, self._name, self._of, self._watcher = path, name, of, watcher
        self._size, self._since = -1, time.monotonic()
        self._read = self._count = 0

    def tick(self) -> None:
        """Look at the file. Raises EnoughError if it stalled."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == self._size:
            if time.monotonic() - self._since > STALLED_S:
                raise EnoughError
            return
        self._size, self._since = size, time.monotonic()
        self._watcher.progress(self._name, self._ended() if size else 0, self._of)

    def _ended(self) -> int:
        """Return how many operations have ended, of which only the lines are read that came since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            lines, _, rest = file.read().rpartition(b"\n")
            self._read = file.tell() - len(rest)
        self._count += sum(line.startswith((b'{"end"', b'{"crashed"')) for line in lines.split(b"\n"))
        return self._count


# Record the operations that one step of a script calls: the script is run once, and ended after that step.


MOST_BYTES = 256 << 20
"""Inputs of a step that are saved; of what comes after that, floating-point numbers are drawn at random."""


class Storage(msgspec.Struct, frozen=True):
    """The memory of tensors: where its bytes are, next to the log, ``""`` if they are to be drawn."""

    device: str
    file: Annotated[str, Meta(pattern=r"^[^/\x00]*\Z")]


class Noted(msgspec.Struct, frozen=True, tag_field="k", tag="noted"):
    """A call, which the step made so many times."""

    op: str
    dtype: str
    count: int
    backward: bool
    storages: tuple[Storage, ...]
    file: str = ""
    line: int = 0


class End(msgspec.Struct, frozen=True, tag_field="k", tag="step"):
    """The end of a step: what of it was left out, as (reason, operation, calls)."""

    step: int
    complete: bool
    left_out: tuple[tuple[LeftOut, str, int], ...]
    compiled: int
    settings: dict[str, Any]


_DECODER = msgspec.json.Decoder(Noted | End)
_OURS = (b'{"k":"noted"', b'{"k":"step"')


def read(log: Path) -> tuple[tuple[Noted, ...], End | None]:
    """Return the calls in a log, and the end of their step if it is complete."""
    lines = list(_lines(log))
    end = next((one for one in lines if isinstance(one, End) and one.complete), None)
    return tuple(one for one in lines if isinstance(one, Noted)), end


def _lines(log: Path) -> Iterator[Noted | End]:
    with log.open("rb") as file:
        for raw in file:
            if raw.startswith(_OURS):
                try:
                    yield _DECODER.decode(raw)
                except UNREADABLE:
                    return


def record(settings: Settings, step: int, launcher: Launcher, observer: Observer) -> tuple[Path | None, ScriptStep]:
    """Run the script until a step is over; return the log with its calls, None if there is none, and what it has."""
    runner = Runner(settings, launcher, observer)
    recipe = settings.recipes[0]
    observer.group_started(f"step {step}", 1)
    spec = plan_group(settings, recipe, runner.space, runner.refused(recipe.flags)).spec(1)
    asked = {"level": "step", "first": step, "last": step, "bytes": MOST_BYTES}
    spec = replace(spec, env={**spec.env, wire.ENV_WATCH: json.dumps(asked)})
    result = runner.run(1, spec, Limits(last_step=step))
    recordings = [(log, *read(log)) for log in _logs(spec.folder, result.processes)]
    complete = [(log, noted, end) for log, noted, end in recordings if end is not None]
    trained = [training for _, training in trainings(result.processes)]
    about = ScriptStep(
        command=settings.target.words,
        step=step,
        steps=max((one.steps for one in trained), default=0),
        frameworks=tuple(dict.fromkeys(one.framework for one in trained)),
        processes=len(complete),
        log_dir=str(spec.folder),
        errors=() if complete else result.run.errors,
    )
    if not complete:
        return None, about
    log, noted, end = complete[0]
    about = msgspec.structs.replace(
        about,
        calls=sum(one.count for one in noted),
        operations=len({one.op for one in noted}),
        distinct=len(noted),
        drawn=sum(not all(one.file for one in call.storages) for call in noted),
        compiled=end.compiled,
        left_out=tuple(left_out(end)),
    )
    return (log if noted else None), about


def _logs(folder: Path, processes: Iterable[Process]) -> Iterator[Path]:
    """Yield the instrumentation logs of a run, in the order of its processes."""
    for process in processes:
        yield from sorted((folder / wire.LOGS).glob(f"{process.hello.pid}.*{wire.OPS_SUFFIX}"))


def left_out(end: End) -> Iterator[LeftOutCalls]:
    """Yield what was left out for each reason."""
    counts: defaultdict[LeftOut, dict[str, int]] = defaultdict(dict)
    for reason, op, calls in end.left_out:
        counts[reason][op] = calls
    for reason in LeftOut:
        if reason in counts:
            yield LeftOutCalls(reason=reason, calls=sum(counts[reason].values()), operations=tuple(counts[reason]))


def device(noted: tuple[Noted, ...]) -> str:
    """Return the device of the calls: of several, the first that is not the CPU."""
    devices = [storage.device.partition(":")[0] for call in noted for storage in call.storages]
    return next((one for one in devices if one != "cpu"), "cpu")


def discard(log: Path) -> None:
    """Remove the inputs of the calls in a log, which may be large."""
    for call in read(log)[0]:
        for storage in filter(None, (one.file for one in call.storages)):
            (log.parent / storage).unlink(missing_ok=True)


# Scan a framework's operations: start the processes of each pass, go on where one died, and judge the results.


START = Path(__file__).resolve().parents[1] / "scanner" / "start.py"

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
            discard(Path(self.request.log))
        return self.result()

    def result(self, interrupted: bool = False) -> OpScan:
        """Return the report of what was repeated so far."""
        listed = self._read_list()
        evidence = self._evidence()
        done = {one.name: answers.read(self._lines(one.name)) for one in self._passes(listed)}
        crashed = {(one.op, one.dtype): one for pass_ in done.values() for one in pass_.crashed}
        skipped = {(one.op, one.dtype): one for pass_ in done.values() for one in pass_.skipped}
        return OpScan(
            schema_version=SCHEMA_VERSION,
            framework=self.request.framework,
            version=listed.framework.version if listed.framework else "",
            device=self.request.device,
            dtypes=self.request.dtypes or tuple(dict.fromkeys(one.case.dtype for one in evidence)),
            threads=listed.framework.threads if listed.framework else 0,
            started=self.request.started,
            wall_s=self._seconds(),
            operations=len({one.case.op for one in evidence}),
            cases=len(evidence),
            differing=tuple(self._called(one.result()) for one in evidence if one.differs),
            refused=tuple(self._called(one.result()) for one in evidence if one.error and not one.differs),
            thread_dependent=tuple(dict.fromkeys(one.case.op for one in evidence if one.thread_dependent)),
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
    def _noted(self) -> tuple[Noted, ...]:
        return read(Path(self.request.log))[0]

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
        if not (listed := self._read_list()).items:
            self._lines("list").unlink(missing_ok=True)
            spec = self._spec("list", "list", {"lists": self.request.dtypes})
            outcome = self._launch(spec, Progress(self._lines("list"), "list", 0, self.watcher))
            listed = self._read_list()
            if outcome.exit_code != 0 or not listed.items:
                raise ScanError(
                    f"cannot list the operations of {self.request.framework}: {_last_line(spec.folder)}",
                    f"Check that {self.request.python} imports {self.request.framework} and that there is a device "
                    f"{self.request.device}, or choose another --python or --device.",
                )
        return listed

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
        full_job = {"framework": request.framework, "device": request.device, "lines": str(self._lines(lines)), **job}
        if request.log:
            full_job["log"] = request.log
        store.write(path, msgspec.json.encode(full_job))
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
