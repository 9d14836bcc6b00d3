"""The culprit of a trace, repeated and judged, and a script that shows it."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import msgspec
from msgspec import structs

from detaudit import private, store, wire
from detaudit.launch import Launcher
from detaudit.launch.local import BUSY
from detaudit.launch.plan import GroupPlan
from detaudit.model import (
    MOST_RESULTS,
    Condition,
    Culprit,
    How,
    ModeEffect,
    Obstacle,
    Operation,
    Replay,
    ReplayedPass,
    ReplayVerdict,
    Series,
)
from detaudit.runner import Observer
from detaudit.runs.formats import npy, npz
from detaudit.trace.operations import Call, Saved, Storage
from detaudit.trace.tracer import ReplayRequest

# Judge the results of an operation that was repeated under several conditions; pure.


@dataclass(frozen=True)
class Repeated:
    """The results of one condition, or the ``error`` of the first repeat.

    ``counts`` says for each byte that memory was filled with, in hexadecimal, how often each digest came out; if it was
    left as it is, for ``""``.
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    threads: int = 0
    error: str = ""

    @property
    def results(self) -> set[str]:
        """All digests that came out."""
        return {digest for counts in self.counts.values() for digest in counts}

    @property
    def varies(self) -> bool:
        """Whether two results differ although memory was filled with the same byte."""
        return any(len(counts) > 1 for counts in self.counts.values())


_NOTHING = Repeated()


def judged(outcomes: Mapping[Condition, Repeated]) -> ReplayedPass:
    """Return what the results under each condition show."""
    verdict = _verdict(outcomes)
    series = [
        one for condition in Condition if condition in outcomes for one in _series(condition, outcomes[condition])
    ]
    return ReplayedPass(verdict=verdict, mode=_mode(verdict, outcomes), series=tuple(series))


def _verdict(outcomes: Mapping[Condition, Repeated]) -> ReplayVerdict:
    """Return the verdict.

    Memory that is filled with the same byte is the same in each repeat, so what differs in spite of it is a race, or
    with one thread, none. What differs only if the byte does, in one process, is read from that memory.
    """
    plain, loaded, filled, one = (
        outcomes.get(condition, _NOTHING)
        for condition in (Condition.AS_RECORDED, Condition.LOADED, Condition.FILLED, Condition.ONE_THREAD)
    )
    if not plain.results:
        return ReplayVerdict.INCONCLUSIVE
    if one.varies:
        return ReplayVerdict.VARIES
    if filled.varies:
        return ReplayVerdict.RACES
    if len(filled.results) > 1 or len(one.results) > 1:
        return ReplayVerdict.MEMORY
    if plain.varies or loaded.varies:
        return ReplayVerdict.RACES
    same = len(plain.results | loaded.results | filled.results) == 1
    return ReplayVerdict.DETERMINISTIC if same else ReplayVerdict.PER_PROCESS


def _mode(verdict: ReplayVerdict, outcomes: Mapping[Condition, Repeated]) -> ModeEffect | None:
    mode = outcomes.get(Condition.DETERMINISTIC)
    if mode is None or verdict is ReplayVerdict.INCONCLUSIVE:
        return None
    if mode.error:
        return ModeEffect.RAISES
    if verdict is ReplayVerdict.PER_PROCESS:  # one process with this mode shows nothing
        return None
    if len(mode.results) > 1:
        return ModeEffect.NO_EFFECT
    return ModeEffect.FIXES if mode.results and verdict is not ReplayVerdict.DETERMINISTIC else None


def _series(condition: Condition, repeated: Repeated) -> Iterator[Series]:
    for fill, results in (repeated.counts or {"": {}}).items():
        counts = sorted(results.values(), reverse=True)
        yield Series(
            condition=condition,
            fill=fill,
            threads=repeated.threads,
            repeats=sum(counts),
            distinct=len(counts),
            counts=tuple(counts[:MOST_RESULTS]),
            error=repeated.error,
        )


# Write a script that repeats one operation on its recorded inputs, with nothing of the user's in it.


SCRIPT, INPUTS = "repro.py", "inputs.npz"
_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8}
"""Bytes of an element of the dtypes that both NumPy and torch have."""

_FILLED = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0 "


def write(folder: Path, saved: Saved, output_index: int, replayed_pass: ReplayedPass) -> str:
    """Write a script and its inputs into a folder, and return its path. Raises StorageError."""
    call, reads_memory = saved.call, replayed_pass.verdict is ReplayVerdict.MEMORY
    private.make_folder(folder)
    store.write(folder / INPUTS, npz.written(dict(_arrays(saved))))
    parts = _of_torch(call) if call.framework == "torch" else _of_tensorflow(call)
    template = resources.files(__package__).joinpath(f"repro_{call.framework}.txt").read_text("utf-8")
    text = Template(template).substitute(
        parts,
        op=call.op,
        place=output_index,
        prefix=_FILLED if reads_memory else "",
        fills="(0xAA, 0x55, 0x00)" if reads_memory else "()",
    )
    store.write(folder / SCRIPT, text.encode())
    return str(folder)


def _arrays(saved: Saved) -> Iterator[tuple[str, bytes]]:
    for index, storage in enumerate(saved.call.storages):
        dtype, size = _dtype(storage)
        yield f"memory{index}", npy.written(dtype, (storage.bytes // size,), saved.bytes_of(storage.file))
    for index, tensor in enumerate(saved.call.inputs):
        yield f"in{index}", npy.written(tensor.dtype, tensor.shape, saved.bytes_of(tensor.file))


def _dtype(storage: Storage) -> tuple[str, int]:
    """Return as which dtype memory is saved, and the bytes of an element."""
    size = _SIZES.get(storage.dtype, 0)
    return (storage.dtype, size) if size and storage.bytes % size == 0 else ("uint8", 1)


def _of_torch(call: Call) -> dict[str, object]:
    arguments = [f"    {expression(one)}," for one in call.args]
    arguments += [f"    {name}={expression(one)}," for name, one in call.kwargs["dict"]]
    devices = {f"memory{index}": storage.device for index, storage in enumerate(call.storages)}
    return {
        "threads": call.settings["threads"],
        "imports": "".join(f"import {name}\n" for name in call.modules),
        "libraries": "".join(f"torch.ops.load_library({path!r})\n" for path in call.libraries),
        "devices": devices,
        "arguments": "\n".join(f"    {line}" for line in arguments),
    }


def expression(value: Any) -> str:
    """Return an argument of an operation of torch as Python, from the JSON that the recorder made of it."""
    if isinstance(value, list):
        return f"[{', '.join(map(expression, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    ((kind, payload),) = value.items()
    match kind:
        case "tensor":
            shape, stride = tuple(payload["shape"]), tuple(payload["stride"])
            view = (
                f'view("memory{payload["storage"]}", torch.{payload["dtype"]}, {shape}, {stride}, {payload["offset"]})'
            )
            return f"{view}{''.join(f'.{bit}()' if bit == 'conj' else '._neg_view()' for bit in payload['bits'])}"
        case "float":
            number = float.fromhex(payload)
            return repr(number) if number == number and abs(number) != float("inf") else f'float("{number}")'
        case "complex":
            return repr(complex(*map(float.fromhex, payload)))
        case "device":
            return f'torch.device("{payload}")'
        case _:
            return f"torch.{payload}"


def _of_tensorflow(call: Call) -> dict[str, object]:
    return {
        "intra": call.settings["intra"],
        "inter": call.settings["inter"],
        "node": call.node.replace("\\", "\\\\"),
        "inputs": [(tensor.kind, tensor.dtype) for tensor in call.inputs],
    }


# Replay the culprit of a trace: repeat an operation on its recorded inputs, many times, in processes of its own.


_TIMEOUT_S = 600.0
_UNLIMITED = 10.0**9

FILLS = (0xAA, 0x55, 0x00)
"""Bytes that memory is filled with: as floating-point numbers, a negative one, a positive one and zero."""

_JOB = Path(wire.__file__).resolve().parent / "recorder" / "replay"
_ALONE = (wire.ENV_LOGS, wire.ENV_FLAGS, wire.ENV_STAGES, wire.ENV_UNTIL, wire.ENV_WATCH)
_WITHOUT_CACHES = "glibc.malloc.tcache_count=0"


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
    """Replays one operation, in the environment of the first run of ``plan``."""

    request: ReplayRequest
    plan: GroupPlan
    launcher: Launcher
    observer: Observer

    def replayed(self, culprit: Culprit, output_index: int, saved: Saved | None) -> Culprit:
        """Return a culprit with what its operation does by itself; unchanged unless its output alone differs.

        The inputs that were saved are discarded: they may be as large as memory.
        """
        operation = culprit.operation
        if operation is None or culprit.how is not How.OUTPUT or operation.collective:
            return culprit
        try:
            replay = self._replay(self.request, operation, output_index, saved)
        finally:
            if saved is not None:
                saved.discard()
        return structs.replace(culprit, operation=structs.replace(operation, replay=replay))

    def _replay(self, request: ReplayRequest, operation: Operation, output_index: int, saved: Saved | None) -> Replay:
        if saved is None:
            return Replay(obstacle=Obstacle.NOT_RECORDED)
        if saved.call.obstacle is not None:
            return Replay(obstacle=saved.call.obstacle, detail=saved.call.detail)
        self.observer.group_started(f"replay of {operation.name}", len(Condition))
        results = {}
        for number, condition in enumerate(Condition, 1):
            self.observer.run_started(number, _TIMEOUT_S)
            results[condition] = self._repeat(request, condition, output_index, saved)
            if condition is Condition.AS_RECORDED and results[condition].failed:
                return Replay(obstacle=Obstacle.FAILED, detail=results[condition].failed)
        own = judged(dict(_passes(results, "own")))
        gradients = dict(_passes(results, "gradient"))
        usual = gradients.get(Condition.AS_RECORDED)
        gradient = judged(gradients) if usual is not None and not usual.error else None
        written = write(request.repro, saved, output_index, own) if request.repro else None
        return Replay(own=own, gradient=gradient, saved_to=written)

    def _repeat(self, replay_request: ReplayRequest, condition: Condition, output_index: int, saved: Saved) -> _Result:
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
                "place": output_index,
            },
            "repeats": replay_request.repeats,
            "seconds": replay_request.seconds or _UNLIMITED,
            "busy": str(BUSY),
            "result": str(result),
        }
        private.make_folder(live)
        store.write(request, json.dumps(asked).encode())
        argv = (saved.call.python, str(_JOB), str(request))
        timeout = _TIMEOUT_S if replay_request.seconds else None
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
        pass_: _Pass | None = getattr(result, name)
        if pass_ is not None and (pass_.counts or pass_.error):
            yield condition, Repeated(pass_.counts, result.threads, pass_.error)
