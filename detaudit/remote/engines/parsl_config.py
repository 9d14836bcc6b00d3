"""Read the configuration of Parsl that a user names, and make it one that detaudit can rely on."""

import os
import runpy
import shlex
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from detaudit import wire
from detaudit.errors import ConfigError, UnknownNameError, UsageError

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
        found = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        hint = f"Correct it, until `python {path}` works."
        raise ConfigError(f"{_place(path, error)}: {_text(error)}", hint) from error
    if "config" not in found:
        raise ConfigError(f"{path} defines no config", _EXAMPLE)
    config = found["config"]
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
