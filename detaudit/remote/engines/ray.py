"""Ray as an engine, `--engine ray[:ADDRESS]`: the nodes of a cluster that runs do one job at a time each."""

import contextlib
import importlib.util
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO

import msgspec

from detaudit import __version__
from detaudit.errors import EngineError, UsageError
from detaudit.launch import processes
from detaudit.launch.processes import shielded
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.engines import Queue
from detaudit.remote.engines.in_worker import described, result_in
from detaudit.remote.engines.ray_driver import (
    Answer,
    Cancel,
    Do,
    Ended,
    Failed,
    Nodes,
    NotDone,
    Request,
    read,
    without_reports,
    write,
)

START_S = 60.0
"""Seconds that the cluster has to answer."""

SILENT_S = 60.0
"""Seconds without a message after which the cluster has failed; without its centre, Ray waits for ever."""

CLOSE_S = 30.0
"""Seconds that all jobs have to end."""

_DRIVER = "detaudit.remote.engines.ray_driver"


def connect(argument: str, python: str) -> "RayEngine":
    """Connect to the cluster at an address, the one of this machine if it is empty.

    Raises UsageError if Ray is not installed or the cluster has no node with a CPU, EngineError if it does not answer.
    """
    del python  # it comes with each job
    if importlib.util.find_spec("ray") is None:
        hint = "Run `pip install 'detaudit[ray]'` where detaudit is installed."
        raise UsageError("--engine ray needs a package that is not installed: ray", hint)
    engine = RayEngine(_Driver([sys.executable, "-m", _DRIVER, argument or "auto"]))
    try:
        engine.await_nodes()
    except BaseException:
        engine.close()
        raise
    return engine


class _Driver:
    """The process that is connected to the cluster, and two threads: neither of its pipes can make an audit wait."""

    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end
        self._process = subprocess.Popen(
            command,
            cwd="/",  # Ray adds the folder to the path of its workers
            env=without_reports(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        processes.keep(self._process.pid)
        self.answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        """None after the last."""
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        for target, pipe in ((self._write, self._process.stdin), (self._read, self._process.stdout)):
            threading.Thread(target=target, args=(pipe,), daemon=True).start()

    def ask(self, request: Request | None) -> None:
        """Send a request; None ends the process, once its jobs have ended."""
        self._requests.put(request)

    def why(self) -> str:
        """Return how the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ": ".join(filter(None, [f"Ray's driver ended ({described(self._process.returncode or 0)})", last]))

    def end(self, seconds: float) -> None:
        """End the process, and with it its jobs, for which it has this time."""
        self.ask(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._process.kill()  # then the cluster ends its jobs
        self._process.wait()
        processes.forget(self._process.pid)
        self._errors.close()

    def _write(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError), pipe:
            while (request := self._requests.get()) is not None:
                write(pipe, request)  # type: ignore[arg-type]

    def _read(self, pipe: IO[bytes]) -> None:
        answers = msgspec.msgpack.Decoder(Answer)
        with pipe:
            while (data := read(pipe)) is not None:  # type: ignore[arg-type]
                self.answers.put(answers.decode(data))
        self.answers.put(None)


class RayEngine:
    """The Engine of a cluster. A job gets one CPU and all GPUs of its node; what else runs there is Ray's affair."""

    def __init__(self, driver: _Driver) -> None:
        self._driver, self._queue = driver, Queue()
        self._nodes: dict[str, str] = {}
        self._busy: dict[str, str] = {}
        """The jobs of nodes, also those that are being ended."""
        self._names: dict[str, str] = {}
        """The names of the nodes of jobs that are wanted."""
        self._returned: list[Returned] = []
        self._failure, self._heard, self._closed = "", time.monotonic(), False
        self.at_once, self.places = 0, frozenset[str]()

    def await_nodes(self) -> None:
        """Wait for the first message. Raises as ``connect``."""
        hint = "Run `ray status` on this machine, which has to be a node of the cluster."
        try:
            answer = self._driver.answers.get(timeout=START_S)
        except queue.Empty:
            raise EngineError("the Ray cluster does not answer within a minute", hint) from None
        self._take(answer)
        if self._failure:
            raise EngineError(f"cannot connect to a Ray cluster: {self._failure}", hint)
        self.at_once, self.places = len(self._nodes), frozenset(self._nodes.values())
        if not self._nodes:
            raise UsageError("no node of the Ray cluster has a CPU", "Start one with `ray start --num-cpus`.")

    def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
        """See Engine.submit."""
        self._queue.add(job, avoid)
        self._start()

    def poll(self) -> list[Returned]:
        """See Engine.poll."""
        self._listen()
        self._start()
        returned, self._returned = self._returned, []
        return returned

    def cancel(self, job: str) -> None:
        """See Engine.cancel."""
        self._queue.remove(job)
        if self._names.pop(job, None) is not None:
            self._driver.ask(Cancel(job))

    def failure(self) -> str:
        """See Engine.failure."""
        self._listen()
        if not self._failure and time.monotonic() - self._heard > SILENT_S:
            self._failure = "nothing was heard of the Ray cluster for a minute"
        return self._failure

    def close(self) -> None:
        """See Engine.close. The cluster itself stays."""
        if not self._closed:
            self._closed = True
            with shielded():
                self._driver.end(CLOSE_S if self.at_once else 0)

    def _listen(self) -> None:
        while not self._driver.answers.empty():
            self._take(self._driver.answers.get())

    def _take(self, answer: Answer | None) -> None:
        self._heard = time.monotonic()
        if answer is None:
            self._failure = self._failure or self._driver.why()
        elif isinstance(answer, Nodes):
            self._nodes = answer.names
        elif isinstance(answer, Failed):
            self._failure = answer.why
        else:
            self._busy = {node: job for node, job in self._busy.items() if job != answer.job}
            name = self._names.pop(answer.job, None)
            if name is not None:  # else it was cancelled
                self._returned.append(Returned(answer.job, _result(answer), name))

    def _start(self) -> None:
        names = frozenset(self._nodes.values())
        for node, name in self._nodes.items():
            job = self._queue.take(name, names) if node not in self._busy else None
            if job is not None:
                self._busy[node], self._names[job.id] = job.id, name
                self._driver.ask(Do(job.id, node, msgspec.msgpack.encode(job)))


def _result(answer: Ended | NotDone) -> bytes | Lost | Refused:
    if isinstance(answer, Ended):
        return result_in(answer.done)
    if answer.lost:
        return Lost(answer.why)
    hint = f"Install detaudit {__version__} beside Ray on each node." if answer.missing.startswith("detaudit") else ""
    return Refused(f"Ray cannot do the job: {answer.why}", hint)
