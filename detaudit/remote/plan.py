"""What is to be run anywhere: the code, and the environment that it starts in."""

import contextlib
import hashlib
import io
import os
import resource
import secrets
import signal
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from detaudit import __version__, wire
from detaudit.config.options import RunOptions, declaration, read, values_of, written
from detaudit.config.recipes import Recipe
from detaudit.errors import ConfigError, UsageError, WorkspaceError
from detaudit.launch import RESULTS
from detaudit.launch.plan import Settings
from detaudit.launch.slots import DEVICES
from detaudit.launch.target import Target, outer_environment
from detaudit.launch.workspace import MOST_ENTRIES, is_venv, walk
from detaudit.model.fact import encode, now
from detaudit.model.stage import Records
from detaudit.notebooks.cells import code_of

# What is to be run, whatever machine runs it: the file that `detaudit plan` writes.


SCHEMA_VERSION = "1.0"
"""Of plans, and of what workers leave: a different one is refused, because a run has to be the same everywhere."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one audit. Each has a number, from 1; those of a recipe follow on those of the one before.

    ``python`` is the interpreter that the user named, ``""`` for the one that a machine finds; ``options`` are the
    declared ones that are not as by default. ``variables`` are set in every run, ``passed`` are names of those that
    each machine has a value for. ``sources`` are the digests of the Python files, and of the code of the notebooks,
    below the working directory, by relative path.
    """

    schema_version: str
    detaudit: str
    created: str
    nonce: str
    command: tuple[str, ...]
    recipes: tuple[Recipe, ...]
    runs: int
    arguments: tuple[str, ...] = ()
    script: str = ""
    module: str = ""
    python: str = ""
    variables: dict[str, str] = {}
    passed: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    options: dict[str, Any] = {}
    records: Records = Records.LOGS

    @property
    def id(self) -> str:
        """What names this plan, and no other: a digest of all that is in it."""
        return hashlib.blake2b(encode(self), digest_size=8).hexdigest()

    @property
    def total(self) -> int:
        """The number of runs of all recipes."""
        return self.runs * len(self.recipes)

    def recipe_and_number(self, run: int) -> tuple[Recipe, int]:
        """Return the recipe of a run, and its number among the runs of that. Raises UsageError for no run of it."""
        if not 1 <= run <= self.total:
            raise UsageError(f"the plan has no run {run}", f"It has runs 1 to {self.total}; an --index begins at 0.")
        recipe, number = divmod(run - 1, self.runs)
        return self.recipes[recipe], number + 1

    def settings(self, target: Target, out: Path, cwd: Path) -> Settings:
        """Return the settings of the planned audit, with results in ``out`` and no mark."""
        return Settings(
            **values_of(read(self.options)),
            target=target,
            recipes=self.recipes,
            runs=self.runs,
            out=out,
            mark="",
            cwd=cwd,
            command=self.command,
        )


def plan_of(
    settings: Settings,
    *,
    python: str | None,
    variables: Mapping[str, str],
    passed: tuple[str, ...],
    records: Records = Records.LOGS,
) -> Plan:
    """Return the plan of an audit with these settings.

    Raises UsageError for what cannot be planned: a time, a script that other machines would not find, or trees of runs
    that are ended after a step.
    """
    target, until = settings.target, settings.until
    if until is not None and records is Records.TREES:
        message = "--records trees is of whole runs, and --until ends them: their steps are in the event logs"
        raise UsageError(message, "Leave out one of the two.")
    if until is not None and until.step is None:
        raise UsageError(f"a plan cannot end its runs after a time ({until})", "Name a step, as in --until 400.")
    if os.path.isabs(target.script) and Path(target.script).is_relative_to(settings.cwd):
        hint = f"Name it from there: {os.path.relpath(target.script, settings.cwd)}"
        raise UsageError("other machines look for the script in their own working directory", hint)
    return Plan(
        schema_version=SCHEMA_VERSION,
        detaudit=__version__,
        created=now(),
        nonce=secrets.token_hex(4),
        command=settings.command,
        recipes=settings.recipes,
        runs=settings.runs,
        arguments=target.arguments,
        script=target.script,
        module=target.module,
        python=python or "",
        variables=dict(variables),
        passed=passed,
        sources=sources(settings.cwd),
        options=planned(settings),
        records=records,
    )


def planned(options: RunOptions) -> dict[str, Any]:
    """Return the options of a plan, as they are written."""
    return {name: text for name, text in written(options).items() if declaration(name).planned}


_NO_CODE = ("__pycache__", ".git", ".ipynb_checkpoints", "node_modules")


def sources(cwd: Path) -> dict[str, str]:
    """Return the digests of the code below a folder, by relative path; that of environments does not count."""
    digests: dict[str, str] = {}
    for entry in islice(walk(cwd, cwd / RESULTS, skipped=_NO_CODE), MOST_ENTRIES):
        if entry.name.endswith((".py", ".ipynb")) and entry.is_file():
            path = Path(entry.path)
            try:
                data = code_of(path)
            except OSError:  # no notebook, whatever its name says
                data = path.read_bytes()
            digests[os.path.relpath(entry.path, cwd)] = hashlib.blake2b(data, digest_size=8).hexdigest()
    return dict(sorted(digests.items()))


_DECODER = msgspec.json.Decoder(Plan)


def read_plan(data: bytes, location: str) -> Plan:
    """Return the plan in a file. Raises ConfigError for anything else, and for a plan of another version."""
    again = "Write it with `detaudit plan`, by the detaudit that the workers have."
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        version = msgspec.json.decode(fields.get("schema_version", msgspec.Raw(b"null")))
        if version != SCHEMA_VERSION:
            raise ConfigError(f"{location} has schema version {version}; this detaudit reads {SCHEMA_VERSION}", again)
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{location} is not a plan: {error}", again) from error


def to_file(plan: Plan) -> bytes:
    """Return a plan as the text of a file."""
    return msgspec.json.format(encode(plan), indent=2) + b"\n"


def other_sources(plan: Plan, cwd: Path) -> list[str]:
    """Return the files of a plan's code that a working directory lacks, or has with another content."""
    ours = sources(cwd)
    return [name for name, digest in plan.sources.items() if ours.get(name) != digest]


# The code of an audit as one archive, for machines that share no folder with this one.


MOST_BYTES = 256 * 2**20
"""Bytes of files that are sent to a machine with every run."""

_LEFT_OUT = (".git", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache")


@dataclass(frozen=True)
class Snapshot:
    """A compressed tar of a repository, its SHA-256, and the working directory in it."""

    data: bytes
    digest: str
    cwd: str


def snapshot(root: Path, cwd: Path, results: Path) -> Snapshot:
    """Return the files below ``root``, without ``results`` and environments, as they are for a run that starts in cwd.

    Raises WorkspaceError if they are too many bytes, or cannot be read.
    """
    buffer, total = io.BytesIO(), 0
    try:
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as tar:
            for entry in walk(root, results, _LEFT_OUT):
                if entry.name in _LEFT_OUT or is_venv(entry):
                    continue
                total += entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
                if total > MOST_BYTES:
                    raise WorkspaceError(
                        f"{root} has more than {MOST_BYTES // 2**20} MiB of files, too many to send to other machines",
                        "Move data out of the repository, or use a shared folder with `detaudit plan` and "
                        "`detaudit worker`.",
                    )
                tar.add(entry.path, os.path.join(root.name, os.path.relpath(entry.path, root)), recursive=False)
    except (OSError, tarfile.TarError) as error:
        raise WorkspaceError(f"the code in {root} cannot be read: {error}", "Make all files readable.") from error
    data = buffer.getvalue()
    return Snapshot(data, hashlib.sha256(data).hexdigest(), os.path.join(root.name, os.path.relpath(cwd, root)))


# The state that a run starts from: the same on every machine, with nothing of what called the worker.


OWN = (
    *("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "USER"),
    *("CONDA_PREFIX", "VIRTUAL_ENV"),
    *(DEVICES, "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
)
"""The variables that a run has from its machine. All others come from the plan, its recipe or the recorder.

A scheduler hands out devices by the last four; a plan does not know which.
"""

UNSET = "DETAUDIT_UNSET_"
"""A variable of this name stands for one that is not set, because their number moves addresses."""

STACK = 8 * 2**20
"""Bytes of stack, as on a desktop. Schedulers often lift the limit, which moves the addresses of everything else."""


def planned_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return what a plan takes over of the environment in which it is made: settings that change results."""
    return {name: env[name] for name in sorted(env) if wire.affects_determinism(name) and name not in OWN}


def variables(plan: Plan, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of the runs of a plan on this machine, before any recipe: ``env``, filtered and filled.

    It has the same names on every machine.
    """
    env = outer_environment() if env is None else env
    names = dict.fromkeys((*OWN, *plan.passed))
    own = {name if name in env else UNSET + name: env.get(name, "") for name in names if name not in plan.variables}
    path = {"PYTHONPATH": env["PYTHONPATH"]} if "PYTHONPATH" in env else {}
    return {**path, **own, **plan.variables}


def reset_process() -> None:
    """Undo what a scheduler changed in this process and its children would inherit: signals, priority, the stack."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    with contextlib.suppress(OSError):  # to raise the priority takes a privilege
        os.setpriority(os.PRIO_PROCESS, 0, 0)
