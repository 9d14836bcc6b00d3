"""Divide this machine between runs at once, and do work in threads."""

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from detaudit import wire
from detaudit.errors import UsageError
from detaudit.launch import CancelledError, Launcher, RunOutcome, RunSpec, Slot
from detaudit.launch.processes import shielded

# Do several things at once that each launch a run, and hand back what comes of them.


R = TypeVar("R")


class Pool(Generic[R]):
    """Takes work under a number, and hands back what finished as it comes.

    The work launches its runs here. With ``threads``, each work has a thread of its own, and signals reach the main
    thread alone; so ``cancel`` ends runs by their ticks. Without, it is done where ``next`` is called.
    """

    def __init__(self, launcher: Launcher, *, threads: bool) -> None:
        self._launcher, self._threaded = launcher, threads
        self._cancelled = threading.Event()
        self._later: deque[tuple[int, Callable[[], R]]] = deque()
        self._threads: dict[int, threading.Thread] = {}
        self._ended: queue.SimpleQueue[tuple[int, R | BaseException]] = queue.SimpleQueue()

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """See Launcher.launch. Raises CancelledError if the run is not wanted any more."""

        def check_cancelled() -> None:
            if self._cancelled.is_set():
                raise CancelledError
            tick()

        if self._cancelled.is_set():
            raise CancelledError
        return self._launcher.launch(spec, check_cancelled)

    def submit(self, number: int, work: Callable[[], R]) -> None:
        """Begin this work, under a number that no other work has."""
        if not self._threaded:
            self._later.append((number, work))
            return
        self._threads[number] = threading.Thread(target=self._do, args=(number, work))
        self._threads[number].start()

    def next(self) -> tuple[int, R]:
        """Wait for any work to finish, and return its number and its result; raise what it raised."""
        if not self._threaded:
            number, work = self._later.popleft()
            return number, work()
        number, outcome = self._ended.get()
        self._threads.pop(number).join()
        if isinstance(outcome, BaseException):
            raise outcome
        return number, outcome

    def cancel(self) -> list[tuple[int, R]]:
        """End all that is under way, wait until nothing of it is left, and return what finished nevertheless."""
        with shielded():
            self._cancelled.set()
            for thread in self._threads.values():
                thread.join()
        self._threads.clear()
        self._later.clear()
        self._cancelled.clear()
        finished = []
        while not self._ended.empty():
            number, outcome = self._ended.get()
            if not isinstance(outcome, BaseException):
                finished.append((number, outcome))
        return finished

    def _do(self, number: int, work: Callable[[], R]) -> None:
        try:
            self._ended.put((number, work()))
        except BaseException as error:  # noqa: BLE001
            self._ended.put((number, error))


# Divide this machine between several runs at once.


DEVICES = "CUDA_VISIBLE_DEVICES"
"""The variable that says which GPUs a process may use; also of torch on AMD."""

_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Jobs:
    """The slots of the runs that go at once, each with an equal share of the machine.

    A run always has the same slot: number 1 the first, and so on in turn. ``cores`` is how many CPUs all have together.
    If ``measured``, only as many go at once as the threads of the first run leave cores for, and they share all CPUs.
    ``options`` are those of the command line. ``remote``: each slot is another machine, and shares nothing.
    """

    slots: tuple[Slot, ...] = (Slot(),)
    cores: int = 1
    measured: bool = False
    options: tuple[str, ...] = ()
    remote: bool = False

    @property
    def apart(self) -> bool:
        """Whether each run needs a copy of the working folder, because others may go on beside it."""
        return bool(self.slots[0].name) and not self.remote

    @property
    def varied_settings(self) -> frozenset[str]:
        """The variables that differ between slots."""
        return frozenset({DEVICES} if len(self.slots) > 1 and self.slots[0].devices else ())

    def slot_index(self, number: int) -> int:
        """Return which slot a run has, from 0."""
        return (number - 1) % len(self.slots)

    def at_once(self, threads: int) -> int:
        """Return how many runs go at once if the first one had so many threads."""
        return max(1, min(len(self.slots), self.cores // max(1, threads))) if self.measured else len(self.slots)

    def on_devices(self, spec: RunSpec, number: int) -> RunSpec:
        """Return ``spec`` with the devices of its slot. Every environment has the same size."""
        if not self.slots[0].devices:
            return spec
        names = [",".join(slot.devices) for slot in self.slots]
        name = names[self.slot_index(number)]
        pad = spec.env.get(wire.ENV_PAD, "") + "x" * (max(map(len, names)) - len(name))
        return replace(spec, env={**spec.env, DEVICES: name, wire.ENV_PAD: pad})

    def without_devices(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return variables without the one for devices if it differs between slots, or is to be replaced."""
        return {name: value for name, value in env.items() if name != DEVICES or not self.slots[0].devices}


ALONE = Jobs()


def divide(
    jobs: int | None, devices: tuple[str, ...], runs: int, cpus: Sequence[int], quota: float | None = None
) -> Jobs:
    """Return the slots for so many ``runs`` on these CPUs, and on these devices if any are named.

    ``jobs`` is None for as many as fit. Raises UsageError if the devices cannot be divided between them.
    """
    requested_jobs = (len(devices) or len(cpus)) if jobs is None else jobs
    each = _devices_each(requested_jobs, devices)
    measured = jobs is None and not devices
    share = 0 if measured or requested_jobs == 1 else max(1, len(cpus) // requested_jobs)
    count = min(requested_jobs, runs)
    options = [] if jobs == 1 else ["--jobs", "auto" if jobs is None else str(jobs)]
    options += ["--devices", ",".join(devices)] if devices else []
    slots = tuple(
        Slot(
            name=f"{index:0{len(str(count - 1))}}" if requested_jobs > 1 else "",
            cpus=tuple(cpus[(index * share + one) % len(cpus)] for one in range(share)),
            devices=devices[index * each : (index + 1) * each],
        )
        for index in range(count)
    )
    cores = len(cpus) if quota is None else max(1, min(len(cpus), int(quota)))
    return Jobs(slots, cores, measured, tuple(options))


def _devices_each(jobs: int, devices: tuple[str, ...]) -> int:
    duplicate = next((name for name in devices if devices.count(name) > 1), None)
    if duplicate is not None:
        raise UsageError(f"--devices names {duplicate!r} twice", "Name each device once.")
    if devices and jobs > len(devices):
        raise UsageError(
            f"--jobs {jobs} needs {jobs} devices, and --devices names {len(devices)}",
            f"Use --jobs {len(devices)}, or name more devices.",
        )
    if len(devices) % jobs:
        raise UsageError(
            f"--devices names {len(devices)}, which {jobs} runs cannot share equally",
            "Name as many devices for each run.",
        )
    return len(devices) // jobs


def cpu_quota(cgroup: Path = _CGROUP) -> float | None:
    """Return how many CPUs a container may use at a time, None if it may use all that it sees.

    ``cgroup`` is the mount of all controllers, or one group: of version 2, or of version 1 and its controller ``cpu``.
    """
    with contextlib.suppress(OSError, ValueError, ArithmeticError):
        limit, period = (cgroup / "cpu.max").read_text().split()
        return int(limit) / int(period) if limit != "max" else None
    for folder in (cgroup / "cpu", cgroup):
        with contextlib.suppress(OSError, ValueError, ArithmeticError):
            limit, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            return int(limit) / int(period) if int(limit) > 0 else None
    return None


@contextlib.contextmanager
def on_cpus(cpus: tuple[int, ...]) -> Iterator[None]:
    """Start processes on these CPUs inside this block, on those of this thread if there are none.

    CPUs belong to the calling thread, and a process gets those of the thread that starts it.
    """
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
