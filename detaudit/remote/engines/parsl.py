"""Parsl as an engine, `--engine parsl:CONFIG.py`: it gets machines from a scheduler, and chooses one for each job."""

import atexit
import contextlib
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from detaudit import __version__, private
from detaudit.errors import ConfigError, StorageError, UsageError
from detaudit.launch import RESULTS, orphans, processes
from detaudit.launch.processes import Reaper
from detaudit.launch.shield import shielded
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.engines.in_worker import Done, described, result_in
from detaudit.remote.engines.parsl_config import adapt, at_once, read_config, same_environment
from detaudit.remote.engines.parsl_worker import OF_JOBS, do_job

CLOSE_S = 30.0
"""Seconds that Parsl has to end its blocks, of which a scheduler may take some."""

GRACE_S = 10.0
"""Seconds that jobs on this machine then have to end their runs and to remove their files."""

_MOST_SHOWN = 300
"""Characters of an error."""


def connect(argument: str, python: str) -> "ParslEngine":
    """Start Parsl with the configuration in a file. Its workers run in the environment that this names.

    Raises UsageError, UnknownNameError or ConfigError if it cannot, ImportError if Parsl is not installed.
    """
    del python  # it comes with each job
    with same_environment():
        try:
            from parsl.config import Config
            from parsl.dataflow.dflow import DataFlowKernel
            from parsl.executors.high_throughput.errors import ManagerLost, WorkerLost
        except ImportError as error:
            raise UsageError(
                f"--engine parsl needs a package that is not installed: {error}",
                "Run `pip install 'detaudit[parsl]'` where detaudit is installed.",
            ) from error
        config = read_config(argument, Config)
        mark, folder = secrets.token_hex(4), _new_folder()
        adapt(config, mark, folder)
        reaper = Reaper(mark)
        try:
            kernel = DataFlowKernel(config)
        except BaseException as error:
            _end_processes(mark, reaper)
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, Exception):
                message = f"Parsl cannot start with {argument}: {_one_line(error)}"
                raise ConfigError(message, "Correct its config.") from error
            raise
    for executor in config.executors:
        orphans.keep(executor.interchange_proc.pid)
    return ParslEngine(kernel, config, (ManagerLost, WorkerLost), mark, reaper, folder, at_once(config))


@dataclass
class ParslEngine:
    """See Engine. Parsl chooses the machines, so a job may come to one that it is to avoid.

    ``lost`` are the errors by which Parsl says that a machine was lost; ``mark`` is that of all its processes here.
    """

    kernel: Any
    config: Any
    lost: tuple[type[BaseException], ...]
    mark: str
    reaper: Reaper
    folder: Path
    at_once: int
    places: frozenset[str] = frozenset()
    _futures: dict[str, "Future[Done]"] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
        """See Engine.submit."""
        arguments = msgspec.msgpack.encode(job), str(self._flag(job.id))
        with self._lock:
            self._futures[job.id] = self.kernel.submit(
                do_job, app_args=arguments, executors="all", cache=False, ignore_for_cache=[], app_kwargs={}
            )

    def poll(self) -> list[Returned]:
        """See Engine.poll."""
        with self._lock:
            ended = {job: future for job, future in self._futures.items() if future.done()}
            for job in ended:
                del self._futures[job]
        return [self._returned(job, future) for job, future in ended.items()]

    def cancel(self, job: str) -> None:
        """See Engine.cancel. The worker looks for a file in the folder that Parsl shares with it."""
        with self._lock:
            found = self._futures.pop(job, None)
        if found is not None:
            self._stop(job)

    def failure(self) -> str:
        """See Engine.failure."""
        for executor in self.config.executors:
            status = executor.interchange_proc.poll()
            if status is not None:
                return f"Parsl's interchange ended ({described(status)}); its log is in {self.kernel.run_dir}"
            if executor.bad_state_is_set:
                return f"Parsl gave up: {_one_line(executor.executor_exception)}"
        return ""

    def close(self) -> None:
        """See Engine.close. Where Parsl does not end its blocks any more, their scheduler is asked to."""
        if self._closed:
            return
        self._closed = True
        with shielded():
            for job in list(self._futures):
                self.cancel(job)
            failed = bool(self.failure())
            if not any(executor.interchange_proc.poll() is not None for executor in self.config.executors):
                _in_time(self.kernel.cleanup)
            if failed:
                _in_time(self._cancel_blocks)
            atexit.unregister(self.kernel.atexit_cleanup)
            _end_processes(self.mark, self.reaper)
            if not failed:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _cancel_blocks(self) -> None:
        for executor in self.config.executors:
            executor.provider.max_blocks = 0  # or lost ones would be replaced
            executor.provider.cancel(list(executor.blocks_to_job_id.values()))

    def _flag(self, job: str) -> Path:
        return Path(self.kernel.run_dir, f"cancelled-{job}")

    def _stop(self, job: str) -> None:
        with contextlib.suppress(OSError):
            self._flag(job).touch(0o600)

    def _returned(self, job: str, future: "Future[Done]") -> Returned:
        error = future.exception()
        if error is None:
            done = future.result()
            return Returned(job, result_in(done), done.where)
        if isinstance(error, self.lost):
            self._stop(job)  # its worker may be there, and only out of reach
            return Returned(job, Lost(_one_line(error)), str(getattr(error, "hostname", "")))
        if self.failure():
            return Returned(job, Lost(_one_line(error)))
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("detaudit"):
            hint = f"Install detaudit {__version__} in the environment that worker_init activates."
            return Returned(job, Refused(f"detaudit is not there where Parsl's workers run: {error}", hint))
        return Returned(job, Refused(f"Parsl cannot do the job: {type(error).__name__}: {_one_line(error)}"))


def _one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())[:_MOST_SHOWN]


def _new_folder() -> Path:
    """Return a new folder in which Parsl writes. It has to be one that the machines of a cluster share."""
    results = Path(RESULTS).resolve()
    try:
        private.make_folder(results)
        return Path(tempfile.mkdtemp(prefix="parsl-", dir=results))
    except OSError as error:
        raise StorageError.of(f"write to {results}", error, "another working directory") from error


def _in_time(action: Callable[[], object]) -> None:
    """Call what may wait for ever, or fail because something is broken."""

    def call() -> None:
        with contextlib.suppress(Exception):
            action()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(CLOSE_S)


def _end_processes(mark: str, reaper: Reaper) -> None:
    """Wait for the processes of Parsl on this machine, end those that stay, and then the reaper."""
    with contextlib.suppress(psutil.Error):
        psutil.wait_procs([*processes.marked(mark), *processes.marked(OF_JOBS + mark)], timeout=GRACE_S)
    processes.kill_marked(mark)
    processes.kill_marked(OF_JOBS + mark)
    reaper.__exit__(None, None, None)
    orphans.bury()
