"""Parsl and its configuration."""

import atexit
import contextlib
import os
import runpy
import secrets
import shlex
import shutil
import sys
import sysconfig
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from detaudit import __version__, private, wire
from detaudit.errors import ConfigError, StorageError, UnknownNameError, UsageError
from detaudit.launch import RESULTS, processes
from detaudit.launch.processes import Reaper, shielded
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.engines.in_worker import OF_JOBS, Done, described, do_job, result_in

# Read the configuration of Parsl that a user names, and make it one that detaudit can rely on.


_POOL = "process_worker_pool.py"
_INTERCHANGE = "interchange.py"
"""The programs of Parsl, as its defaults name them: they are looked up in PATH."""

_RUN_DIR = "runinfo"
"""Parsl's default."""

_PERIOD_S = 0.5
"""How often Parsl looks whether it needs more blocks; the first ones start after this time."""

_KEEP_ENVIRONMENT = "SPT_NOENV=1"
"""A process of Parsl gives itself a name. Without this, it writes that over its variables, of which one is the mark."""

_EXAMPLE = "Assign a parsl.Config to `config` in it."


@contextmanager
def same_environment() -> Iterator[None]:
    """Undo what a block does to the environment variables of this process."""
    before = dict(os.environ)
    try:
        yield
    finally:
        if dict(os.environ) != before:
            os.environ.clear()
            os.environ.update(before)


def read_config(path: str, kind: type) -> Any:
    """Run a file of Python, and return its ``config``, which is a ``kind``.

    Raises UsageError if none is named, UnknownNameError if there is no such file, ConfigError for what is wrong in it.
    """
    if not path:
        raise UsageError("--engine parsl names no configuration", "Name a file, as in --engine parsl:cluster.py.")
    if not Path(path).is_file():
        raise UnknownNameError(f"there is no file {path}", "Name a file of Python that defines `config`.")
    try:
        namespace = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        hint = f"Correct it, until `python {path}` works."
        raise ConfigError(f"{_place(path, error)}: {_text(error)}", hint) from error
    if "config" not in namespace:
        raise ConfigError(f"{path} defines no config", _EXAMPLE)
    config = namespace["config"]
    if not isinstance(config, kind):
        raise ConfigError(f"the config in {path} is a {type(config).__name__}, not a parsl.Config", _EXAMPLE)
    _check(path, config)
    return config


def adapt(config: Any, mark: str, folder: Path) -> None:
    """Change a configuration so that no job is repeated, nothing of it is reported, and each process has the mark.

    Parsl writes to ``folder``, unless the configuration names another.
    """
    config.retries, config.retry_handler = 0, None
    config.usage_tracking, config.monitoring = 0, None
    if config.run_dir == _RUN_DIR:
        config.run_dir = str(folder)
    if config.initialize_logging is True:  # it would write each job, with the code, to its log
        config.initialize_logging = False
    if config.strategy in (None, "none"):  # it would wait for ever once the only block is lost
        config.strategy = "simple"
    config.strategy_period = min(config.strategy_period, _PERIOD_S)
    for executor in config.executors:
        marked = ["env", f"{wire.ENV_MARK}={mark}", _KEEP_ENVIRONMENT]
        executor.interchange_launch_cmd = ["setsid", *marked, *_interchange(executor)]  # no Ctrl-C reaches it
        executor.launch_cmd = f"{shlex.join(marked)} {_pool(executor)}"


def at_once(config: Any) -> int:
    """Return how many jobs the blocks of a configuration do at once. Parsl counts a node of unknown size as one."""
    total = 0
    for executor in config.executors:
        provider = executor.provider
        total += max(1, int(provider.max_blocks * provider.nodes_per_block * executor.workers_per_node))
    return total


def _check(path: str, config: Any) -> None:
    for executor in config.executors:
        if not hasattr(executor, "interchange_launch_cmd"):
            message = f"the config in {path} has a {type(executor).__name__}"
            raise ConfigError(message, "Use only HighThroughputExecutor: its workers are processes of their own.")


def _interchange(executor: Any) -> list[str]:
    command = list(executor.interchange_launch_cmd)
    return [*_program(_INTERCHANGE), *command[1:]] if command[:1] == [_INTERCHANGE] else command


def _pool(executor: Any) -> str:
    """Return the command that starts workers. Without worker_init, they are of detaudit's own environment."""
    command = str(executor.launch_cmd)
    if getattr(executor.provider, "worker_init", "") or not command.startswith(f"{_POOL} "):
        return command
    return shlex.join(_program(_POOL)) + command.removeprefix(_POOL)


def _program(name: str) -> list[str]:
    """Return the command of a program of Parsl, also if its environment is not active."""
    path = Path(sysconfig.get_path("scripts"), name)
    return [sys.executable, str(path)] if path.is_file() else [name]


def _place(path: str, error: BaseException) -> str:
    """Return where in a file an error is: the last of its lines that led there."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"{path}:{lines[-1]}" if lines else path


def _text(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg
    return " ".join(f"{type(error).__name__}: {error}".split())


# Parsl as an engine, `--engine parsl:CONFIG.py`: it gets machines from a scheduler, and chooses one for each job.


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
        processes.keep(executor.interchange_proc.pid)
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
            future = self._futures.pop(job, None)
        if future is not None:
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
    processes.bury()
