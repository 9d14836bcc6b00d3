"""The part of the Ray engine that imports Ray: a process of its own, because Ray ends the process it is in at failures.

As a program, `python -m detaudit.remote.engines.ray_driver ADDRESS`, it reads messages on stdin and writes others to
stdout, each after its size. It ends, with all jobs, when stdin closes.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import msgspec

from detaudit.remote.engines.in_worker import END_S, Done

PERIOD_S = 1.0
"""Seconds between two messages about the nodes of the cluster."""

REACH_S = 5.0
"""Seconds that the cluster's centre has to accept a connection."""

_SIZE = 8
"""Bytes of a size, the first the highest."""

_MOST_SHOWN = 300
"""Characters of an error."""


class Do(msgspec.Struct, frozen=True, tag=True):
    """Do an encoded job on this node."""

    job: str
    node: str
    data: bytes


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """End a job. It is still answered."""

    job: str


class Nodes(msgspec.Struct, frozen=True, tag=True):
    """The names of the nodes that can do jobs, by their ids."""

    names: dict[str, str]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The process of a job ended, like this."""

    job: str
    done: Done


class NotDone(msgspec.Struct, frozen=True, tag=True):
    """Nothing will come of a job: Ray lost its worker or node, or (not ``lost``) a worker cannot do it."""

    job: str
    lost: bool
    why: str
    missing: str = ""
    """A module that is not there."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Nothing will come of any job."""

    why: str


Request = Do | Cancel
Answer = Nodes | Ended | NotDone | Failed


def write(file: BinaryIO, message: Request | Answer) -> None:
    """Write a message."""
    data = msgspec.msgpack.encode(message)
    file.write(len(data).to_bytes(_SIZE, "big") + data)
    file.flush()


def read(file: BinaryIO) -> bytes | None:
    """Return an encoded message, None at the end of a file."""
    size = file.read(_SIZE)
    data = file.read(int.from_bytes(size, "big")) if len(size) == _SIZE else b""
    return data if data and len(data) == int.from_bytes(size, "big") else None


class Driver:
    """Gives jobs to ``ray``, the module, and answers each with one message on ``out``."""

    def __init__(self, ray: Any, out: BinaryIO) -> None:
        self._ray, self._out, self._lock = ray, out, threading.Lock()
        self._task = ray.remote(_function())
        self._under_way: dict[str, tuple[Any, threading.Thread]] = {}
        self._devices: dict[str, float] = {}

    def answer(self, message: Answer) -> None:
        """Write a message, in any thread."""
        with self._lock:
            write(self._out, message)

    def nodes(self) -> Nodes:
        """Return the nodes that have a CPU, and remember their GPUs: a job gets all that its node has."""
        alive = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        self._devices = {node["NodeID"]: node["Resources"].get("GPU", 0) for node in alive}
        return Nodes({node["NodeID"]: node["NodeName"] or node["NodeManagerAddress"] for node in alive})

    def begin(self, message: Do) -> None:
        """Begin a job on its node, as soon as that has a CPU and all its GPUs free. Ray never repeats it."""
        there = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(message.node, soft=False)
        task = self._task.options(
            num_cpus=1,
            num_gpus=self._devices.get(message.node, 0),
            max_retries=0,
            scheduling_strategy=there,
        )
        job = task.remote(message.data)
        thread = threading.Thread(target=self._wait, args=(message.job, job), daemon=True)
        self._under_way[message.job] = job, thread
        thread.start()

    def cancel(self, job: str) -> None:
        """End a job: its worker is interrupted."""
        if job in self._under_way:
            self._ray.cancel(self._under_way[job][0], force=False)

    def end(self) -> None:
        """End all jobs, in bounded time."""
        for job in list(self._under_way):
            self.cancel(job)
        for _, thread in list(self._under_way.values()):
            thread.join(END_S)

    def _wait(self, name: str, job: Any) -> None:
        errors = self._ray.exceptions
        answer: Ended | NotDone
        try:
            answer = Ended(name, Done(*self._ray.get(job)))
        except errors.RayTaskError as error:
            cause = error.cause
            missing = cause.name or "" if isinstance(cause, ModuleNotFoundError) else ""
            answer = NotDone(name, False, f"{type(cause).__name__}: {one_line(cause)}", missing)
        except Exception as error:  # noqa: BLE001 - Ray has twenty for a worker, a node or an object that is lost
            answer = NotDone(name, True, one_line(error))
        self.answer(answer)
        self._under_way.pop(name, None)


def _function() -> Callable[[bytes], tuple[object, ...]]:
    """Return what workers call. It travels as code, so that what is not installed there is missed in the call."""

    def do_job(data: bytes) -> tuple[object, ...]:
        from detaudit.remote.engines.in_worker import do

        return tuple(do(data))

    return do_job


def one_line(error: BaseException) -> str:
    """Return the text of an error, shortened."""
    return " ".join(str(error).split())[:_MOST_SHOWN]


def _report_nodes(driver: Driver, ended: threading.Event) -> None:
    while not ended.wait(PERIOD_S):
        try:
            driver.answer(driver.nodes())
        except Exception as error:  # noqa: BLE001 - without the cluster's centre
            driver.answer(Failed(one_line(error)))
            return


def _connected(address: str) -> Any:
    import ray
    import ray.exceptions
    import ray.util.scheduling_strategies

    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()  # Ray itself would try for minutes
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    return ray


def without_reports(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a driver: nothing is reported to Ray's makers, and no folder is sent to the cluster."""
    return {**env, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


def main(address: str) -> int:
    """Do what stdin says, by the cluster at this address."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints is no message
    try:
        ray = _connected(address)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is said
        write(out, Failed(one_line(error)))
        return 1
    driver, ended = Driver(ray, out), threading.Event()
    driver.answer(driver.nodes())
    threading.Thread(target=_report_nodes, args=(driver, ended), daemon=True).start()
    requests = msgspec.msgpack.Decoder(Request)
    while (data := read(sys.stdin.buffer)) is not None:
        request = requests.decode(data)
        if isinstance(request, Do):
            driver.begin(request)
        else:
            driver.cancel(request.job)
    ended.set()
    driver.end()
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
