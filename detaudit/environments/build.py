"""Environments that are built of requirements: locked with hashes, made by uv in a cache, and removed from there."""

import hashlib
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from detaudit import private, redact
from detaudit.compat import tomllib
from detaudit.errors import StorageError, UsageError, WorkspaceError
from detaudit.launch.target import which
from detaudit.model.fact import count

LOCK = "pylock.toml"
"""The file of a lock (https://packaging.python.org/en/latest/specifications/pylock-toml/)."""

_HALF = "making-"
"""How the name of an environment begins that is not complete."""

_WHEELS = ("--only-binary", ":all:")


def cache() -> Path:
    """Return the folder of all environments: in DETAUDIT_CACHE, else in the user's folder of caches."""
    named = os.environ.get("DETAUDIT_CACHE")
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named or os.path.join(user, "detaudit")).expanduser().absolute() / "environments"


def uv() -> str:
    """Return the path of uv: on PATH, or beside detaudit. Raises UsageError if there is none."""
    path = which("uv") or shutil.which("uv", path=os.path.dirname(sys.executable))
    if path is None:
        raise UsageError("--requirements needs uv, which is not installed", "Install it: pipx install uv.")
    return path


@dataclass(frozen=True)
class Locked:
    """Requirements that were locked for one Python: what is installed, exactly.

    ``key`` names the environment: packages with the same hashes, for the same Python on the same platform, have one.
    """

    file: Path
    key: str
    packages: int
    bytes_of_wheels: int
    unknown_sizes: int

    def size(self) -> str:
        """Return how much is downloaded at most, as far as the lock says it."""
        more = f", {self.unknown_sizes} of them of unknown size" if self.unknown_sizes else ""
        return f"{count(self.packages, 'package')}, {self.bytes_of_wheels / 1e6:,.0f} MB at most{more}"


def lock(requirements: Path, python: str, target: Path, *, builds: bool) -> Locked:
    """Write the lock of a file of requirements into ``target``, and return it.

    Wheels only, unless ``builds`` of sources are allowed. Raises UsageError if there is no such file, or if uv cannot
    find packages that fit.
    """
    if not requirements.is_file():
        raise UsageError(f"no file of requirements: {str(requirements)!r}", "Check the path.")
    private.make_folder(target)
    file = target / LOCK
    words = ["pip", "compile", str(requirements), "--output-file", str(file), "--python", python, "--quiet"]
    error = _uv([*words, "--no-header", "--no-annotate", *(() if builds else _WHEELS)])
    if error:
        hint = "Name versions that exist for this Python."
        hint += "" if builds else " If one has no wheel, --allow-builds builds it from its source."
        raise UsageError(f"{requirements} cannot be locked: {error}", hint)
    return _read(file, python)


def _read(file: Path, python: str) -> Locked:
    try:
        packages: Sequence[Mapping[str, Any]] = tomllib.loads(file.read_text()).get("packages", [])
    except (OSError, ValueError) as error:
        raise UsageError(f"uv wrote no lock: {error}", "Use a newer uv.") from error
    described = subprocess.run(
        [python, "-c", "import sys; print(sys.version, sys.base_prefix)"], capture_output=True, text=True, check=False
    )
    parts = [sorted(map(_identity, packages)), described.stdout, platform.machine(), platform.libc_ver()]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    sizes = [size for one in packages for size in [_size(one)]]
    known = [size for size in sizes if size is not None]
    return Locked(file, key, len(packages), sum(known), len(sizes) - len(known))


def _files(package: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the files that may be installed of a package: its wheels, else its source."""
    wheels = package.get("wheels")
    others = (package.get(name) for name in ("sdist", "archive", "directory", "vcs"))
    yield from wheels or (one for one in others if one)


def _identity(package: Mapping[str, Any]) -> str:
    hashes = [json.dumps(one.get("hashes") or one, sort_keys=True, default=str) for one in _files(package)]
    return f"{package.get('name')} {package.get('version', '')} {' '.join(sorted(hashes))}"


def _size(package: Mapping[str, Any]) -> int | None:
    """Return the bytes of the largest file of a package, None if they are not known."""
    sizes = []
    for one in _files(package):
        url = urlsplit(str(one.get("url") or one.get("path") or ""))
        local = Path(unquote(url.path))
        if "size" in one:
            sizes.append(int(one["size"]))
        elif url.scheme in ("", "file") and local.is_file():
            sizes.append(local.stat().st_size)
    return max(sizes, default=None)


def build(locked: Locked, python: str, say: Callable[[str], None], *, builds: bool) -> Path:
    """Return the Python of an environment that has what was locked. One that is in the cache is used again.

    ``say`` gets a line before it is built, and how large it is. It is built beside its place and moved there when it is
    complete. Raises WorkspaceError if that fails.
    """
    environment = cache() / locked.key
    program = environment / "bin" / "python"
    if program.exists():
        return program
    say(f"building an environment in {environment}: {locked.size()}")
    _sweep()
    shutil.rmtree(environment, ignore_errors=True)  # its Python is gone
    half = cache() / f"{_HALF}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        private.make_folder(half.parent)
        error = _uv(["venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(half)])
        install = ["pip", "sync", "--quiet", "--python", str(half / "bin" / "python"), "--require-hashes"]
        if not error and locked.packages:
            error = _uv([*install, *(() if builds else _WHEELS), str(locked.file)])
        if error:
            hint = "Check the network and the free disk space, and try again."
            raise WorkspaceError(f"the environment of {locked.file} cannot be built: {error}", hint)
        try:
            half.rename(environment)
        except OSError:
            if not program.exists():  # else another detaudit was faster
                raise
    except OSError as error:
        raise StorageError.of(f"build an environment in {half.parent}", error, "another DETAUDIT_CACHE") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return program


def _sweep() -> None:
    """Remove what was left by a build that was killed."""
    for half in cache().glob(f"{_HALF}*"):
        if not Path("/proc", half.name.removeprefix(_HALF).partition("-")[0]).exists():
            shutil.rmtree(half, ignore_errors=True)


def _uv(words: Sequence[str]) -> str:
    """Run uv, and return ``""`` if it succeeds, else what it printed, on one line."""
    done = subprocess.run([uv(), *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return ""
    printed = " ".join(redact.text(done.stderr).split())
    return printed or f"uv ended with status {done.returncode}"


def environments() -> list[tuple[Path, int]]:
    """Return all environments of the cache, also what is left of those that were not completed, with their bytes."""
    folder = cache()
    return [(one, _bytes(one)) for one in sorted(folder.iterdir()) if one.is_dir()] if folder.is_dir() else []


def _bytes(folder: Path) -> int:
    files = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            stat = os.lstat(os.path.join(parent, name))
            files[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(files.values())


def clear() -> None:
    """Remove all environments. Raises StorageError if that fails."""
    try:
        for folder, _ in environments():
            shutil.rmtree(folder)
    except OSError as error:
        raise StorageError.of(f"remove {cache()}", error, "another DETAUDIT_CACHE") from error
