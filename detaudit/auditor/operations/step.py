"""Record the operations that one step of a script calls: the script is run once, and ended after that step."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from detaudit import wire
from detaudit.auditor.evidence.event_logs import Process, trainings
from detaudit.auditor.evidence.event_records import UNREADABLE
from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Runner
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings, plan_group
from detaudit.model.operations import LeftOut, LeftOutCalls, ScriptStep

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
    found = [(log, *read(log)) for log in _logs(spec.folder, result.processes)]
    whole = [(log, noted, end) for log, noted, end in found if end is not None]
    trained = [training for _, training in trainings(result.processes)]
    about = ScriptStep(
        command=settings.target.words,
        step=step,
        steps=max((one.steps for one in trained), default=0),
        frameworks=tuple(dict.fromkeys(one.framework for one in trained)),
        processes=len(whole),
        log_dir=str(spec.folder),
        errors=() if whole else result.run.errors,
    )
    if not whole:
        return None, about
    log, noted, end = whole[0]
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
    found: defaultdict[LeftOut, dict[str, int]] = defaultdict(dict)
    for reason, op, calls in end.left_out:
        found[reason][op] = calls
    for reason in LeftOut:
        if reason in found:
            yield LeftOutCalls(reason=reason, calls=sum(found[reason].values()), operations=tuple(found[reason]))


def device(noted: tuple[Noted, ...]) -> str:
    """Return the device of the calls: of several, the first that is not the CPU."""
    devices = [storage.device.partition(":")[0] for call in noted for storage in call.storages]
    return next((one for one in devices if one != "cpu"), "cpu")


def discard(log: Path) -> None:
    """Remove the inputs of the calls in a log, which may be large."""
    for call in read(log)[0]:
        for storage in filter(None, (one.file for one in call.storages)):
            (log.parent / storage).unlink(missing_ok=True)
