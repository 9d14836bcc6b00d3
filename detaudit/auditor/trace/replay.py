"""Replay the culprit of a trace: repeat an operation on its recorded inputs, many times, in processes of its own."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import psutil
from msgspec import structs

from detaudit import private, wire
from detaudit.auditor import store
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.trace import repro
from detaudit.auditor.trace.replay_call import Saved
from detaudit.auditor.trace.replay_verdict import Repeated, judged
from detaudit.launch import Launcher
from detaudit.launch.load import BUSY
from detaudit.launch.plan import GroupPlan
from detaudit.model import Condition, Culprit, How, Obstacle, Operation, Replay

REPEATS, SECONDS = 200, 4.0
"""Repeats of a pass under each condition, and what they may take, unless the user names their number."""

_TIMEOUT_S = 600.0
_UNLIMITED = 10.0**9

FILLS = (0xAA, 0x55, 0x00)
"""Bytes that memory is filled with: as floating-point numbers, a negative one, a positive one and zero."""

_JOB = Path(wire.__file__).resolve().parent / "recorder" / "replay"
_ALONE = (wire.ENV_LOGS, wire.ENV_FLAGS, wire.ENV_STAGES, wire.ENV_UNTIL, wire.ENV_WATCH)
_WITHOUT_CACHES = "glibc.malloc.tcache_count=0"


@dataclass(frozen=True)
class ReplayRequest:
    """How to replay: so many ``repeats`` of a pass under each condition, or as many as so many ``seconds`` allow.

    The first repeat takes no time of it, because it may import modules. ``seconds`` is None if there is no limit.
    ``repro`` is the folder for a script that shows it.
    """

    repeats: int = REPEATS
    seconds: float | None = SECONDS
    repro: Path | None = None


class _Pass(msgspec.Struct, frozen=True):
    """The results of a forward or a backward pass, by the byte that memory was filled with."""

    counts: dict[str, dict[str, int]]
    error: str


class _Result(msgspec.Struct, frozen=True):
    """What a process wrote: its results, or the error for which there are none."""

    failed: str = ""
    threads: int = 0
    own: _Pass | None = None
    gradient: _Pass | None = None


@dataclass(frozen=True)
class Replays:
    """Replays one operation, in the environment of the first run of ``plan``; not if there is no ``request``."""

    request: ReplayRequest | None
    plan: GroupPlan
    launcher: Launcher
    observer: Observer

    @property
    def most_bytes(self) -> int:
        """How many bytes of inputs fit into memory, with room for copies and results; 0 if nothing is replayed."""
        return int(psutil.virtual_memory().available // 8) if self.request else 0

    def replayed(self, found: Culprit, place: int, saved: Saved | None) -> Culprit:
        """Return a culprit with what its operation does by itself; unchanged unless its output alone differs.

        The inputs that were saved are discarded: they may be as large as memory.
        """
        operation = found.operation
        if self.request is None or operation is None or found.how is not How.OUTPUT or operation.collective:
            return found
        try:
            replay = self._replay(self.request, operation, place, saved)
        finally:
            if saved is not None:
                saved.discard()
        return structs.replace(found, operation=structs.replace(operation, replay=replay))

    def _replay(self, wanted: ReplayRequest, operation: Operation, place: int, saved: Saved | None) -> Replay:
        if saved is None:
            return Replay(obstacle=Obstacle.NOT_RECORDED)
        if saved.call.obstacle is not None:
            return Replay(obstacle=saved.call.obstacle, detail=saved.call.detail)
        self.observer.group_started(f"replay of {operation.name}", len(Condition))
        results = {}
        for number, condition in enumerate(Condition, 1):
            self.observer.run_started(number, _TIMEOUT_S)
            results[condition] = self._repeat(wanted, condition, place, saved)
            if condition is Condition.AS_RECORDED and results[condition].failed:
                return Replay(obstacle=Obstacle.FAILED, detail=results[condition].failed)
        own = judged(dict(_passes(results, "own")))
        gradients = dict(_passes(results, "gradient"))
        usual = gradients.get(Condition.AS_RECORDED)
        gradient = judged(gradients) if usual is not None and not usual.error else None
        written = repro.write(wanted.repro, saved, place, own) if wanted.repro else None
        return Replay(own=own, gradient=gradient, saved_to=written)

    def _repeat(self, wanted: ReplayRequest, condition: Condition, place: int, saved: Saved) -> _Result:
        usual = self.plan.spec(1)
        live, folder = usual.live, self.plan.folder.parent / "replay" / condition
        request, result = live / "request.json", live / "result.json"
        env = {name: value for name, value in usual.env.items() if name not in _ALONE}
        if filled := condition in (Condition.FILLED, Condition.ONE_THREAD, Condition.DETERMINISTIC):
            env["GLIBC_TUNABLES"] = ":".join(filter(None, [env.get("GLIBC_TUNABLES", ""), _WITHOUT_CACHES]))
        if condition is Condition.DETERMINISTIC:
            env.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else torch refuses, whatever the operation
        asked = {
            "call": saved.raw,
            "folder": str(saved.folder),
            "condition": {
                "threads": 1 if condition is Condition.ONE_THREAD else 0,
                "fills": FILLS if filled else (),
                "deterministic": condition is Condition.DETERMINISTIC,
                "load": _cpus() if condition in (Condition.LOADED, Condition.DETERMINISTIC) else 0,
                "place": place,
            },
            "repeats": wanted.repeats,
            "seconds": wanted.seconds or _UNLIMITED,
            "busy": str(BUSY),
            "result": str(result),
        }
        private.make_folder(live)
        store.write(request, json.dumps(asked).encode())
        argv = (saved.call.python, str(_JOB), str(request))
        timeout = _TIMEOUT_S if wanted.seconds else None
        spec = replace(usual, argv=argv, cwd=live, env=env, folder=folder, load=0, expected="", timeout=timeout)
        outcome = self.launcher.launch(spec, lambda: None)
        try:
            return msgspec.json.decode((folder / result.name).read_bytes(), type=_Result)
        except (OSError, msgspec.DecodeError):
            return _Result(failed=f"exit status {outcome.exit_code}")


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _passes(results: dict[Condition, _Result], name: str) -> Iterator[tuple[Condition, Repeated]]:
    for condition, result in results.items():
        found: _Pass | None = getattr(result, name)
        if found is not None and (found.counts or found.error):
            yield condition, Repeated(found.counts, result.threads, found.error)
