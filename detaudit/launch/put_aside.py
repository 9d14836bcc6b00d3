"""Put files that runs left behind aside for one run, and put them back however that ends.

What is put aside is renamed within its folder. A journal in the results folder says so before the first rename; it is
read by the process that ends the runs of a killed detaudit, and by the next command. Other users' processes cannot be
looked into: whether they use a file is not known.
"""

import contextlib
import os
import platform
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from detaudit import private, wire
from detaudit.launch import RESULTS
from detaudit.launch.processes import shielded

JOURNAL = "put-aside.json"
"""The journal, in the results folder of the audit that put something aside."""

_ASIDE, _REPLACED = ".detaudit-aside", ".detaudit-replaced"


class StateInUseError(Exception):
    """What is to be put aside is in use, or cannot be renamed. ``path`` is the file, ``why`` says what keeps it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


class _Journal(msgspec.Struct, frozen=True):
    host: str
    pid: int
    started: float
    moved: tuple[tuple[str, str], ...]


@contextmanager
def put_aside(paths: Sequence[str], out: Path, mark: str) -> Iterator[None]:
    """Let these files and folders be gone within the block; what takes their names there is removed afterwards.

    ``out`` is the results folder, ``mark`` that of the audit. Raises StateInUseError if one of them is in use, or
    cannot be renamed; then all are where they were.
    """
    journal = out / JOURNAL
    restore(journal)  # what an earlier block could not put back
    user = _user(paths, mark)
    if user is not None:
        raise StateInUseError(*user)
    token = secrets.token_hex(4)
    moved = tuple((path, _beside(path, _ASIDE, token)) for path in paths)
    own = psutil.Process()
    try:
        _write(journal, _Journal(platform.node(), own.pid, own.create_time(), moved))
    except OSError as error:
        raise StateInUseError(str(journal), f"cannot be written: {error.strerror}") from error
    try:
        for path, aside in moved:
            try:
                os.rename(path, aside)
            except FileNotFoundError:
                continue  # it is gone, which is as good
            except OSError as error:
                raise StateInUseError(path, f"cannot be renamed: {error.strerror}") from error
        yield
    finally:
        with shielded():
            restore(journal)


def remove(files: Sequence[str], folders: Iterable[str], mark: str) -> None:
    """Remove files, and those folders that are empty then.

    Raises StateInUseError if one of the files is in use, or cannot be removed.
    """
    user = _user(files, mark)
    if user is not None:
        raise StateInUseError(*user)
    for file in files:
        try:
            os.unlink(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StateInUseError(file, f"cannot be removed: {error.strerror}") from error
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):  # it is not empty
            os.rmdir(folder)


_DECODER = msgspec.json.Decoder(_Journal)


def restore(journal: Path, *, keep: bool = False) -> tuple[str, ...]:
    """Put back what a journal says, and remove it if that worked; return what came back.

    What has taken its name meanwhile is removed, or if it is to be kept, renamed: somebody else may have made it.
    """
    try:
        contents = _DECODER.decode(journal.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError):  # it is written at once, before anything is renamed
        return ()
    restored, failed = [], False
    for path, aside in contents.moved:
        if not os.path.lexists(aside):
            continue
        try:
            if os.path.lexists(path):
                if keep:
                    os.rename(path, _beside(path, _REPLACED, secrets.token_hex(4)))
                elif os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.rename(aside, path)
            restored.append(path)
        except OSError:
            failed = True
    if not failed:
        with contextlib.suppress(OSError):
            journal.unlink()
    return tuple(restored)


def recover(out: Path) -> tuple[str, ...]:
    """Put back what a detaudit put aside that was killed, and return it.

    Its results folder may be ``out`` itself, beside it, or in the working directory. What belongs to a detaudit that is
    alive, or is on another machine, is left as it is.
    """
    places = [*out.glob(JOURNAL), *out.parent.glob(f"*/{JOURNAL}")]
    places += [*Path(RESULTS).glob(f"*/{JOURNAL}"), *Path(RESULTS).glob(f"*/*/{JOURNAL}")]
    restored: list[str] = []
    for journal in {path.absolute(): None for path in places}:
        if _is_dead(journal):
            restored += restore(journal, keep=True)
    return tuple(restored)


def recover_own(out: Path) -> None:
    """Put back what an audit with the results folder ``out``, or one below it, put aside that was just killed."""
    for journal in (*out.glob(JOURNAL), *out.glob(f"*/{JOURNAL}")):
        restore(journal)


def _is_dead(journal: Path) -> bool:
    try:
        owner = _DECODER.decode(journal.read_bytes())
        if owner.host != platform.node():
            return False
        return psutil.Process(owner.pid).create_time() != owner.started
    except psutil.NoSuchProcess:
        return True
    except (OSError, msgspec.DecodeError, psutil.Error):
        return False


def _beside(path: str, kind: str, token: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f"{kind}-{token}-{name}"[:255])


def _write(path: Path, journal: _Journal) -> None:
    with open(path, "wb", opener=private.opener) as file:
        file.write(msgspec.json.encode(journal))
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _user(paths: Iterable[str], mark: str) -> tuple[str, str] | None:
    """Return which of these files is in use, and by what, None if none is as far as this user can see."""
    files: dict[tuple[int, int], str] = {}
    for path in paths:
        for one in (path, *(os.path.join(top, name) for top, _, names in os.walk(path) for name in names)):
            with contextlib.suppress(OSError):
                stat = os.stat(one, follow_symlinks=False)
                files[stat.st_dev, stat.st_ino] = one
    names = {one.encode(errors="surrogateescape"): one for one in files.values()}
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        used = _opened(process.pid, files) or _mapped(process.pid, names) or _told(process, mark, files.values())
        if used:
            with contextlib.suppress(psutil.Error):
                return used, f"process {process.pid} ({process.name()}) uses it"
    return None


def _opened(pid: int, files: dict[tuple[int, int], str]) -> str:
    for kind in ("fd", ""):
        try:
            links = list(os.scandir(f"/proc/{pid}/{kind}")) if kind else [f"/proc/{pid}/cwd"]
        except OSError:
            continue
        for link in links:
            with contextlib.suppress(OSError):
                stat = os.stat(link)
                if (stat.st_dev, stat.st_ino) in files:
                    return files[stat.st_dev, stat.st_ino]
    return ""


def _mapped(pid: int, names: dict[bytes, str]) -> str:
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = {line.split(None, 5)[-1].rstrip() for line in file if b"/" in line}
    except OSError:
        return ""
    return next((names[line] for line in lines if line in names), "")


def _told(process: psutil.Process, mark: str, paths: Iterable[str]) -> str:
    """Return the file that another audit watches, whose run this process is, "" if there is none."""
    try:
        env = process.environ()
    except (psutil.Error, OSError):
        return ""
    theirs, logs = env.get(wire.ENV_MARK, ""), env.get(wire.ENV_LOGS, "")
    if not theirs or not logs or theirs == mark or theirs.startswith(f"{mark}-"):
        return ""
    try:
        known = Path(logs).with_name(wire.KNOWN_FILES).read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((path for path in paths if os.fsencode(path) in known), "")
