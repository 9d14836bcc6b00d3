"""What a run wrote, without being asked for it: read after each run, because the next one may write the same files."""

import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import msgspec

from detaudit.auditor import store
from detaudit.auditor.evidence import saved
from detaudit.auditor.evidence.event_records import UNREADABLE
from detaudit.auditor.evidence.file_names import matched
from detaudit.model import Artifact, FinalState, Stage, Training
from detaudit.model.encoding import encode

WRITTEN = "files.json"
"""The digests of what a run wrote, in its folder."""

MOST_FILES = 2000
"""Files of one run that are read."""

_CACHES = frozenset((".cache", ".git", "__pycache__", "node_modules", ".ipynb_checkpoints"))
_TAG = "CACHEDIR.TAG"  # https://bford.info/cachedir/
_TIMED = ".tfevents."
"""TensorBoard's event files hold the time of each event."""


@dataclass(frozen=True)
class File:
    """A file that a run wrote, and the ``name`` by which it is compared: its path in the first run that wrote it."""

    path: str
    name: str
    contents: saved.Contents


@dataclass
class Collector:
    """Reads the files of one run after the other."""

    _digests: dict[str, str] = field(default_factory=dict)
    _last: dict[str, File] = field(default_factory=dict)

    def collect(
        self, cwd: Path, paths: Sequence[str], unchanged: Iterable[str], named: Collection[str] = ()
    ) -> tuple[File, ...]:
        """Return the files at ``paths``, in the order in which they were written, but those that are ``named``.

        ``unchanged`` are files that an earlier run wrote and this one only read, such as a cache: this one would have
        written the same.
        """
        shown = {_shown(path, cwd): path for path in paths if not _left_out(path, cwd)}
        chosen = list(shown)[:MOST_FILES]
        contents = {}
        for name in (name for name in shown if name in {*chosen} and shown[name] not in named):
            try:
                contents[name] = saved.read(Path(shown[name]))
            except OSError:  # it is gone, or may not be read
                continue
        files = self.named(contents)
        kept = [self._last[name] for path in unchanged if (name := _shown(path, cwd)) in self._last]
        self._last |= files
        return tuple(sorted((*files.values(), *kept), key=lambda file: file.name))

    def named(self, contents: Mapping[str, saved.Contents]) -> dict[str, File]:
        """Return the files of a run by their paths, each with the name by which it is compared."""
        names = matched(self._digests, {path: found.digest for path, found in contents.items()})
        files = {path: File(path, names[path], found) for path, found in contents.items()}
        self._digests |= {file.name: file.contents.digest for file in files.values() if file.name not in self._digests}
        return files


def _shown(path: str, cwd: Path) -> str:
    """Return a path as people name it, relative to the working directory if it is below."""
    return os.path.relpath(path, cwd) if path.startswith(f"{cwd}{os.sep}") else path


def _left_out(path: str, cwd: Path) -> bool:
    """Whether a file is in a cache, or differs in every run by what it is."""
    folders = PurePath(_shown(path, cwd)).parts[:-1]
    above = [Path(cwd, *folders[: place + 1]) for place in range(len(folders))]
    return _TIMED in path or not _CACHES.isdisjoint(folders) or any((one / _TAG).exists() for one in above)


def elsewhere(paths: Iterable[str], cwd: Path, results: Path, env: Mapping[str, str]) -> list[str]:
    """Return which of these files are outside of the working directory, and neither temporary nor detaudit's own."""
    temporary = next((env[name] for name in ("TMPDIR", "TEMP", "TMP") if env.get(name)), tempfile.gettempdir())
    below = [os.path.realpath(folder) for folder in (cwd, results, temporary)]
    below += [os.path.join(os.path.expanduser("~"), ".cache"), "/dev", "/proc", "/sys", "/run"]
    found = dict.fromkeys(os.path.realpath(path) for path in paths)
    return [path for path in found if os.path.isfile(path) and not any(_is_below(path, one) for one in below)]


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def keep(files: Sequence[File], folder: Path) -> None:
    """Write what was read to the folder of the run. Raises StorageError if that fails."""
    store.write(folder / WRITTEN, encode(files))


def kept(folder: Path) -> tuple[File, ...]:
    """Return what was read of a run, nothing if nothing was."""
    try:
        return msgspec.json.decode((folder / WRITTEN).read_bytes(), type=tuple[File, ...])
    except (OSError, *UNREADABLE):
        return ()


def as_training(files: Sequence[File]) -> Training | None:
    """Return the tensors of files as a training without steps, None if there are none."""
    parts = tuple(
        f"{digest} {file.name}: {tensor}" if tensor else f"{digest} {file.name}"
        for file in files
        for tensor, digest in file.contents.tensors
    )
    if not parts:
        return None
    final = FinalState(digest=hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest())
    return Training(framework=Stage.SAVED.value, digests={Stage.SAVED: {0: parts}}, final=final)


def listed(files: Sequence[File]) -> tuple[Artifact, ...]:
    """Return the files whose tensors are compared."""
    return tuple(
        Artifact(path=file.path, by="tensors", digest=file.contents.digest) for file in files if file.contents.tensors
    )
