"""What runs used: hashed when an audit ends, or later, and kept beside its report."""

import hashlib
import os
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from detaudit import redact, store, wire
from detaudit.compat import file_digest
from detaudit.errors import AuditNotFoundError, UnknownNameError, UsageError, WorkspaceError
from detaudit.launch.git import git_output
from detaudit.launch.packages import of_python
from detaudit.launch.target import training_python, which
from detaudit.launch.workspace import WORK, repository_root
from detaudit.model import Audit, Check, Comparison
from detaudit.model.fact import duration, encode
from detaudit.model.outputs import FileBudget
from detaudit.notebooks.cells import code_of, is_notebook
from detaudit.runs import environment
from detaudit.runs.log_records import Data, SettingsLine, lines_of

FILE, DIFF = "materials.json", "source.diff"
"""What runs used, and what the tree had beside its commit, in a results folder."""

MOST_GIT_S = 60.0
"""What git may take to answer, in seconds."""

MOST_DIFF = 16 * 2**20
"""Bytes of a diff that is kept; of a longer one there is only the hash."""

NATIVE = (
    *("av", "catboost", "datasets", "decord", "duckdb", "fastparquet", "h5py", "imageio-ffmpeg", "lightgbm", "lmdb"),
    *("nvidia-dali-cuda120", "onnxruntime", "opencv-python", "opencv-python-headless", "polars", "pyarrow"),
    *("rasterio", "safetensors", "soundfile", "tensorflow", "tensorflow-cpu", "tokenizers", "torchaudio"),
    *("torchcodec", "torchvision", "webdataset", "xgboost", "zarr"),
)
"""Packages that open files without telling Python."""


class Hashed(msgspec.Struct, frozen=True, kw_only=True):
    """A file and the SHA-256 of its bytes; ``size`` is null if it has changed since it was hashed.

    ``name`` is relative to the working directory, if it is in the project. ``later``: it was hashed after the audit.
    """

    name: str
    size: int | None
    sha256: str
    later: bool = False


class Unhashed(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs used, or may have used, without a hash, and why."""

    name: str
    why: str


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """An installed package. ``record`` is the SHA-256 of what its RECORD lists, ``""`` if it has none."""

    name: str
    version: str
    record: str = ""


class Git(msgspec.Struct, frozen=True, kw_only=True):
    """The commit of the project, and what its tree had beside it.

    ``diff`` is the SHA-256 of the difference of tracked files, ``""`` if there is none; ``untracked`` are other files.
    """

    commit: str
    diff: str = ""
    untracked: tuple[str, ...] = ()


class Materials(msgspec.Struct, frozen=True, kw_only=True):
    """All that runs used, as far as it is known. ``later``: packages and git are those of after the audit."""

    schema_version: str = "1.0"
    later: bool
    code: tuple[Hashed, ...]
    data: tuple[Hashed, ...]
    unhashed: tuple[Unhashed, ...]
    git: Git | None
    packages: tuple[Package, ...]
    machine: dict[str, Any]
    variables: dict[str, str]
    budget: FileBudget


Report = Audit | Check | Comparison


def audits(report: Report) -> dict[str, Audit]:
    """Return the audits of a report by the folders below its own that have their results."""
    if isinstance(report, Check):
        return {one.name: one.audit for one in report.audits}
    return {"": report} if isinstance(report, Audit) else {}


def load(folder: Path) -> Materials | None:
    """Return what was collected for a results folder, None if nothing was.

    Raises AuditNotFoundError if that cannot be read.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Materials)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AuditNotFoundError(f"{path} cannot be read: {error}", "Remove it; the hashes are made again.") from error


def collect(
    report: Report, folder: Path, cwd: Path, python: str = "", budget: FileBudget | None = None, *, later: bool = False
) -> tuple[Materials, bytes]:
    """Return what the runs of a report in ``folder`` used, and the diff of the tree in which ``cwd`` is."""
    budget = budget or FileBudget()
    hashing = _Hashing(budget, _started(report), later=later)
    code, unhashed = _code(report, folder, cwd, hashing)
    data = _data(report, folder, cwd, {one.name for one in code}, hashing)
    if isinstance(report, Comparison):
        why = "a comparison starts no run; what its sides used is said in their own folders"
        unhashed.append(Unhashed(name="code and data", why=why))
    _, packages, missing = packages_of(python or python_of(report, cwd))
    read_natively = sorted({one.name for one in packages} & {*NATIVE})
    native = f" (installed: {', '.join(read_natively)})" if read_natively else ""
    unhashed += [
        *hashing.unhashed,
        *([Unhashed(name="packages", why=missing)] if missing else []),
        Unhashed(name="what native code read", why=f"only files that Python opens are recorded{native}"),
    ]
    git, diff, why = git_state(cwd, folder)
    if why:
        unhashed.append(Unhashed(name="git", why=why))
    facts = _facts(report)
    variables: Mapping[str, str] = facts.pop("variables", {})
    for name in ("frameworks", "packages"):
        facts.pop(name, None)
    hardware: dict[str, Any] = {}
    if not later:  # of the machine, of which a run may have had a part
        gpus = environment.describe_gpus(Path("/"), os.environ.get("PATH", os.defpath))
        hardware = {"cpus": len(os.sched_getaffinity(0)), "gpu_details": gpus}
    materials = Materials(
        later=later,
        code=tuple(code),
        data=tuple(data),
        unhashed=tuple(unhashed),
        git=git,
        packages=packages,
        machine={**facts, **hardware},
        variables={one: redact.HIDDEN if redact.is_secret(one) else redact.text(variables[one]) for one in variables},
        budget=budget,
    )
    return materials, diff


def save(folder: Path, materials: Materials, diff: bytes) -> None:
    """Keep what runs used in their results folder. Raises StorageError if that fails."""
    if diff:
        store.write(folder / DIFF, diff)
    store.write(folder / FILE, encoded(materials))


def encoded(materials: Materials) -> bytes:
    """Return what runs used as it is kept."""
    return msgspec.json.format(encode(materials), indent=2) + b"\n"


def sha256(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of a file, and its size. Raises OSError."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest(), file.tell()


def code_sha256(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of the code of a file, of a notebook that of its cells, and its size. Raises OSError."""
    if not is_notebook(path.name):
        return sha256(path)
    code = code_of(path)
    return hashlib.sha256(code).hexdigest(), len(code)


class _Hashing:
    """Hashes files within a budget; what it leaves out is in ``unhashed``."""

    def __init__(self, budget: FileBudget, started: float, *, later: bool) -> None:
        self._budget, self._started, self._later = budget, started, later
        self._end, self._bytes = time.monotonic() + budget.seconds, budget.bytes
        self.unhashed: list[Unhashed] = []

    def file(self, name: str, path: Path, *, code: bool = False) -> Iterator[Hashed]:
        """Yield the hash of a file, or of its ``code``, nothing if it has none."""
        try:
            status = path.stat()
            if not self._later and status.st_mtime >= self._started + 1:
                self._leave(name, "it changed after the audit began")
            elif status.st_size > self._bytes or time.monotonic() > self._end:
                spent = f"{duration(self._budget.seconds, '.0f')} or {self._budget.bytes} bytes"
                self._leave(name, f"the budget of {spent} was spent (--file-budget)")
            else:
                digest, size = code_sha256(path) if code else sha256(path)
                self._bytes -= size
                yield Hashed(name=name, size=size, sha256=digest, later=self._later)
        except OSError as error:
            self._leave(name, f"it cannot be read: {error.strerror}")

    def _leave(self, name: str, why: str) -> None:
        self.unhashed.append(Unhashed(name=name, why=why))


def _started(report: Report) -> float:
    text = "" if isinstance(report, Comparison) else report.started
    return datetime.fromisoformat(text).timestamp() if text else float("inf")


def _code(report: Report, folder: Path, cwd: Path, hashing: _Hashing) -> tuple[list[Hashed], list[Unhashed]]:
    """Return the user's files that the runs loaded, hashed when they were, and those that the command names."""
    code: dict[str, Hashed] = {}
    unhashed: list[Unhashed] = []
    for audit in audits(report).values():
        for name, digest in audit.code.items():
            try:
                now, size = code_sha256(cwd / name)
            except OSError:
                now, size = "", 0
            code[name] = Hashed(name=name, size=size if now == digest else None, sha256=digest)
        for word in audit.target:
            if word not in code and "\0" not in word and (cwd / word).is_file():
                code.update({one.name: one for one in hashing.file(_name(str(cwd / word), cwd), cwd / word, code=True)})
        for file in sorted(_loaded(folder, cwd)) if not audit.code else ():  # a report that does not name them
            name = _name(file, cwd)
            if name not in code:
                code.update({one.name: one for one in hashing.file(name, Path(file), code=True)})
        if not code:
            unhashed.append(Unhashed(name="code", why="no run recorded which files it loaded"))
    return sorted(code.values(), key=lambda one: one.name), unhashed


def _loaded(folder: Path, cwd: Path) -> set[str]:
    """Return the user's source files that the logs of runs name."""
    logs = folder.rglob(f"*{wire.LOG_SUFFIX}")
    lines = (line for path in logs for line in lines_of(path) if isinstance(line, SettingsLine))
    return {own for line in lines for file in line.files if (own := _original(file, folder, cwd))}


def _data(report: Report, folder: Path, cwd: Path, code: Collection[str], hashing: _Hashing) -> list[Hashed]:
    """Return the files that the runs read, as they are after them."""
    read: dict[str, Path] = {}
    for path in sorted(folder.rglob(f"*{wire.LOG_SUFFIX}")):
        for line in (one for one in lines_of(path) if isinstance(one, Data)):
            if line.spent:
                why = "a process read more files than it noted"
                hashing.unhashed.append(Unhashed(name="more data files", why=why))
            for own in filter(None, (_original(file, folder, cwd) for file in line.paths)):
                read.setdefault(_name(own, cwd), Path(own))
    runs = [run for audit in audits(report).values() for group in audit.groups for run in group.runs]
    written = {file.path for run in runs for file in (*run.saved, *run.artifacts)}
    data: list[Hashed] = []
    for name, path in sorted(read.items()):
        if name in written:
            why = "the runs wrote it too, so the bytes that they read are gone"
            hashing.unhashed.append(Unhashed(name=name, why=why))
        elif name not in code:
            data += hashing.file(name, path)
    return data


def _original(file: str, folder: Path, cwd: Path) -> str:
    """Return the user's file of one that a run read in its copy; ``""`` for one that the run had to itself."""
    path = Path(file)
    if not path.is_relative_to(folder):
        return file
    parts = path.relative_to(folder).parts
    copies = [index for index, part in enumerate(parts) if part == WORK or part.startswith(f"{WORK}-")]
    if not copies or len(parts) < copies[0] + 3:
        return ""
    copied, *rest = parts[copies[0] + 1 :]
    root = next((one for one in (cwd, *cwd.parents) if one.name == copied), repository_root(cwd))
    return "" if copied == "tmp" else str(root.joinpath(*rest))


def _name(file: str, cwd: Path) -> str:
    """Return a file of the project as seen from the working directory, another one as it is."""
    return os.path.relpath(file, cwd) if Path(file).is_relative_to(repository_root(cwd)) else file


def _facts(report: Report) -> dict[str, Any]:
    facts = next((dict(audit.environment) for audit in audits(report).values() if audit.environment), None)
    return facts if facts is not None else environment.describe()


# The packages of the Python that trains.


def packages_of(python: str) -> tuple[str, tuple[Package, ...], str]:
    """Return the version of a Python, its packages, and why they are not known, ``""`` if they are."""
    try:
        answer = of_python(python)
    except UnknownNameError:
        return "", (), f"{Path(python).name} does not list them"
    packages = (Package(name=name, version=one.version, record=one.record) for name, one in answer.packages.items())
    return answer.version, tuple(sorted(packages, key=lambda one: one.name)), ""


def python_of(report: Report, cwd: Path) -> str:
    """Return the Python of a report: of a command that names one, or the one that would be found now."""
    for audit in audits(report).values():
        if audit.target and Path(audit.target[0]).name.startswith("python"):
            return which(audit.target[0]) or audit.target[0]
    return training_python(cwd)


# The commit of the tree.


def git_state(cwd: Path, results: Path | None = None) -> tuple[Git | None, bytes, str]:
    """Return the commit and what the tree has beside it, but for ``results``, the diff, and why there is none."""
    try:
        commit = git_output(cwd, "rev-parse", "--verify", "HEAD", timeout=MOST_GIT_S).strip()
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--full-index", "--src-prefix=a/")
        text = git_output(
            cwd, "-c", "core.quotePath=true", "diff", *plain, "--dst-prefix=b/", "HEAD", timeout=MOST_GIT_S
        )
        others = ("--others", "--exclude-standard", "--directory", "-z", "--full-name", ":/")
        names = git_output(cwd, "ls-files", *others, timeout=MOST_GIT_S).split("\0")
    except (OSError, UsageError, WorkspaceError):
        return None, b"", "the working directory is in no git repository with a commit, or git does not run"
    root = repository_root(cwd)
    diff = text.encode(errors="surrogateescape")
    untracked = (name for name in names if name and not name.endswith("__pycache__/"))
    shown = (name.encode(errors="replace").decode() for name in untracked if results is None or root / name != results)
    digest = hashlib.sha256(diff).hexdigest() if diff else ""
    long = f"the diff has {len(diff)} bytes: only its hash is kept" if len(diff) > MOST_DIFF else ""
    return Git(commit=commit, diff=digest, untracked=tuple(sorted(shown))), b"" if long else diff, long
