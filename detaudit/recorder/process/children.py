"""Programs and threads that this process starts, and files that it writes, or reads of earlier runs."""

from __future__ import annotations

import os
import sys
import time

from ... import wire
from . import frames, guard, writers
from .replace import replace, replace_in_os

# Keep the recorder in the processes that a script starts, also with an environment of its own.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, ModuleType
    from typing import Any

    from .recorder import Recorder


_BOOTSTRAP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bootstrap")
_NAMES = (wire.ENV_LOGS, wire.ENV_MARK, wire.ENV_STAGES, wire.ENV_FLAGS, wire.ENV_WATCH)

_ENV = 6
"""The place of ``env`` among the arguments of Popen._execute_child."""


class _Injection:
    """What loads the recorder: the variables that this process was started with."""

    def __init__(self) -> None:
        self._variables = {name: os.environ[name] for name in _NAMES if name in os.environ}

    def into(self, env: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return the variables of a child with those that load the recorder; the same object if it has them."""
        known = {os.fsdecode(name): value for name, value in env.items()}
        path = os.fsdecode(known.get("PYTHONPATH", ""))
        entries = path.split(os.pathsep) if path else []
        if _BOOTSTRAP in entries and wire.ENV_LOGS in known:
            return env
        added: dict[Any, Any] = {name: value for name, value in self._variables.items() if name not in known}
        kept = {name: value for name, value in env.items() if os.fsdecode(name) != "PYTHONPATH"}
        return {
            **kept,
            **added,
            "PYTHONPATH": os.pathsep.join([_BOOTSTRAP, *[one for one in entries if one != _BOOTSTRAP]]),
        }


def watch_children(recorder: Recorder) -> None:
    """Wrap the functions of os that start a program with given variables."""
    injection, guarded = _Injection(), recorder.sink.guarded

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def start(path: Any, argv: Any, env: Any, *args: Any, **kwargs: Any) -> Any:
            environments = [env]
            guarded("child", lambda: environments.append(injection.into(env)))
            return function(path, argv, environments[-1], *args, **kwargs)

        return start

    for name in ("execve", "posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            replace_in_os(name, make)


def watch_subprocess(subprocess: Any, recorder: Recorder) -> None:
    """Wrap what ``subprocess`` starts programs by, as most libraries do."""
    injection, guarded = _Injection(), recorder.sink.guarded

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def _execute_child(popen: Any, *args: Any) -> Any:
            arguments = list(args)

            def put_back() -> None:
                environ = os.environ if args[_ENV] is None else args[_ENV]
                env = injection.into(environ)
                if env is not environ:
                    arguments[_ENV] = env

            guarded("child", put_back)
            return function(popen, *arguments)

        return _execute_child

    replace(subprocess.Popen, "_execute_child", make)


# Record which files this process writes, and which files of earlier runs it reads, where the auditor cannot see it.
#
# The auditor searches the working directory, and folders that earlier runs made, before and after a run, so of what is
# there only files that existed before are written to the event log.


_MOST = 100_000
_MOST_READ = 10_000
_SOURCES = (".py", ".pyc", ".pyi")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_SYSTEM = ("/dev/", "/proc/", "/sys/", "/run/")
_LIBRARY = os.path.realpath(os.path.dirname(os.__file__)) + os.sep
_CACHE = os.sep + "__pycache__" + os.sep


class _Outputs:
    """What was written to the event log already, and what the auditor said before the run: see wire.KNOWN_FILES."""

    def __init__(self, recorder: Recorder, logs: str) -> None:
        self._sink = recorder.sink
        told = os.path.join(os.path.dirname(logs), wire.KNOWN_FILES)
        searched, listed, known = _told(told)
        self._since = _changed_ns(told)  # just before the run
        searched = [os.path.realpath(folder) + os.sep for folder in searched or [os.getcwd()]]
        self._cwd = searched[0]
        self._devices = {folder: os.stat(folder).st_dev for folder in searched if os.path.isdir(folder)}
        self._searched = tuple(self._devices)
        self._listed = (*frames.PACKAGES, _CACHE, *listed)
        self._dropped = (*_SYSTEM, _LIBRARY, os.path.dirname(os.path.realpath(logs)) + os.sep)
        chosen = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
        self._temporary = os.path.realpath(chosen[0] if chosen else "/tmp") + os.sep  # noqa: S108
        self.unread = dict.fromkeys(known)
        self.names = {os.path.basename(path) for path in known}
        self._folders: dict[str, str] = {}
        self._written: dict[str, bool] = {}  # whether it was only appended to so far
        self._made: set[str] = set()
        self._left: dict[str, bool] = {}
        self._removed: set[str] = set()
        self._lines = {False: 0, True: 0}
        self.opened: set[str] = set()  # paths, and names by which files were opened
        self.data: dict[str, None] = {}

    def path_of(self, file: Any, descriptor: Any = -1) -> str:
        """Return the path of a file, with the links of its folder resolved; "" of what is no path."""
        if isinstance(file, int) and not isinstance(file, bool):
            file = os.readlink("/proc/self/fd/%d" % file)
        elif not isinstance(file, (str, bytes)):
            file = getattr(file, "__fspath__", str)()
        name = os.fsdecode(file)
        if not name or name == ":memory:":
            return ""
        if isinstance(descriptor, int) and descriptor >= 0 and not os.path.isabs(name):
            name = os.path.join(os.readlink("/proc/self/fd/%d" % descriptor), name)
        folder, base = os.path.split(os.path.abspath(name))
        real = self._folders.get(folder)
        if real is None:
            real = os.path.realpath(folder)
            if len(self._folders) < _MOST:
                self._folders[folder] = real
        return os.path.join(real, base)

    def wrote(self, path: str, *, append: bool = False, reads: bool = False, follow: bool = True) -> None:
        """Note that a file is about to be written: from its start, or only after its end.

        That a link leads to, unless a new one takes its place, and it need not ``follow``.
        """
        if not path:
            return
        if len(self.opened) < _MOST:
            self.opened.add(path)
        if follow and path not in self._written and os.path.islink(path):
            path = os.path.realpath(path)
        if reads:
            self.read(path, sys._getframe().f_back)
        self.unread.pop(path, None)
        only_appended = self._written.get(path)
        if only_appended is None:
            self._first(path, append)
        elif only_appended and not append:  # what existed may be overwritten by now
            self._written[path] = False
            self._write({"k": "wrote", "path": path, "at": time.monotonic_ns()})

    def _first(self, path: str, append: bool) -> None:
        if path in self._left or os.path.dirname(path) in self._made or self._is_dropped(path):
            return
        size, changed = self._before(path)
        if path.startswith(self._temporary) and not path.startswith(self._cwd):
            if len(self._left) < _MOST:  # most of them are removed again
                self._left[path] = size < 0
        elif (not (searched := self._is_searched(path))) or size >= 0:
            self._written[path] = append
            before = {"append": append, "size": size, "changed": changed}
            line = {"k": "wrote", "path": path, **before, "at": time.monotonic_ns()}
            self._write(line, seen=searched and not append)

    def made(self, path: str) -> None:
        """Note that a folder is about to come to be: what is in it at the end was written by this run."""
        if not path or os.path.lexists(path):
            return
        if os.path.dirname(path) in self._made:  # one line for all that is below a folder is enough
            self._made.add(path)
        elif not path.startswith(self._temporary):
            self._folder(path)

    def _folder(self, path: str) -> None:
        if path in self._made or self._is_dropped(path + os.sep):
            return
        if not (path.startswith(self._cwd) and self._is_searched(path)):
            self._made.add(path)
            self._write({"k": "wrote", "path": path, "folder": True, "at": time.monotonic_ns()})

    def moved(self, source: str, target: str) -> None:
        """Note that a file or a folder is about to get a name; a temporary one of its own counts no more."""
        self.removed(source)
        self._left.pop(source, None)
        if os.path.isdir(source):
            self._folder(target)
        else:
            self.wrote(target, follow=False)

    def removed(self, path: str) -> None:
        """Note that a file is about to be removed: if it is written again, it existed before."""
        if path and path not in self._written and len(self._removed) < _MOST and not self._is_dropped(path):
            self._removed.add(path)

    def read(self, path: str, frame: FrameType | None) -> None:
        """Note that a file of an earlier run is about to be read, once; not if this process wrote it before."""
        if path not in self.unread and os.path.islink(path):
            path = os.path.realpath(path)
        if path not in self.unread:
            return
        del self.unread[path]
        user_frame = frames.user_frame(frame)
        file, line = frames.location(user_frame) if user_frame is not None else ("", 0)
        changed = _changed_ns(path) > self._since > 0
        read = {"k": "read", "path": path, "file": file, "line": line, "changed": changed, "at": time.monotonic_ns()}
        self._sink.write(read)

    def opens(self, file: str) -> None:
        """Note that a file is about to be read: data, if this process did not write it before."""
        path = self.path_of(file)
        known = path in self.opened or path.endswith(_SOURCES) or self._is_dropped(path)
        self.opened.update((file, path))
        if path and not known:
            self.data[path] = None

    def leave(self) -> None:
        """Note that relative names mean other files from now on."""
        self.opened.difference_update([name for name in [*self.opened] if not os.path.isabs(name)])

    def finish(self) -> None:
        """Write which temporary files are left, which later runs may read."""
        for path, new in list(self._left.items()):
            if os.path.isfile(path):
                self._write({"k": "left", "path": path, "new": new})
        self._left.clear()

    def forget(self) -> None:
        """Leave what the parent wrote to its own event log."""
        self._lines = {False: 0, True: 0}
        self._left.clear()

    def _before(self, path: str) -> tuple[int, int]:
        try:
            status = os.lstat(path)
        except OSError as error:
            guard.pass_on(error)
            return (0, 0) if path in self._removed or len(self._removed) >= _MOST else (-1, 0)
        return status.st_size, status.st_ctime_ns

    def _is_dropped(self, path: str) -> bool:
        if path.startswith(self._dropped) or path.endswith(".pyc"):
            return True
        shown = path[len(self._cwd) - 1 :] if path.startswith(self._cwd) else path
        return any([part in shown for part in self._listed]) or frames.is_recorded(path)

    def _is_searched(self, path: str) -> bool:
        """Whether the auditor finds by itself that a file changed: it does not look at other file systems."""
        if not path.startswith(self._searched):
            return False
        try:
            device = os.stat(os.path.dirname(path)).st_dev
            return any([path.startswith(folder) and one == device for folder, one in self._devices.items()])
        except OSError as error:
            guard.pass_on(error)
            return True  # the folder does not exist either

    def _write(self, line: dict[str, object], *, seen: bool = False) -> None:
        """Write a line; those of changes that are ``seen`` by the auditor too have a quota of their own."""
        self._lines[seen] += 1
        if self._lines[seen] <= _MOST:
            self._sink.write(line)
        elif self._lines[seen] == _MOST + 1:
            self._sink.write({"k": "wrote", "path": "", "spent": True, "seen": seen})


def _changed_ns(path: str) -> int:
    """Return when a file was last changed, in nanoseconds since 1970; 0 if it is not there."""
    try:
        return os.stat(path).st_ctime_ns
    except OSError as error:
        guard.pass_on(error)
        return 0


def _told(path: str) -> tuple[list[str], list[str], list[str]]:
    """Return the folders that are searched, parts of paths that are only listed, and the files that earlier runs left.

    The folder of the run is the first.
    """
    try:
        with open(path, "rb") as file:
            parts = [os.fsdecode(part).split("\0") for part in file.read().split(b"\0\0")]
    except OSError as error:
        guard.pass_on(error)
        parts = []
    if len(parts) != 3:
        return [], [], []
    searched, listed, known = [[part for part in one if part] for one in parts]
    return searched, listed, known


_outputs: list[_Outputs] = []
"""Those of this process, since the recorder was loaded."""


def data_read() -> tuple[list[str], bool]:
    """Return the files that this process read, and whether there were more. What native code reads is not seen."""
    if not _outputs:
        return [], True
    own = _outputs[0]
    return list(own.data)[:_MOST_READ], len(own.data) > _MOST_READ or len(own.opened) >= _MOST


def watch_files(recorder: Recorder) -> None:
    """Record what is opened, renamed, linked and cut short."""
    sink, outputs = recorder.sink, _Outputs(recorder, os.environ[wire.ENV_LOGS])
    _outputs.append(outputs)
    unread, names, path_of = outputs.unread, outputs.names, outputs.path_of
    opened, data = outputs.opened, outputs.data

    def writes(file: Any, _: Any, flags: int) -> None:
        append = bool(flags & os.O_APPEND) and not flags & os.O_TRUNC
        reads = bool(unread) and bool(flags & os.O_RDWR) and not append and not flags & os.O_TRUNC
        outputs.wrote(path_of(file), append=append, reads=reads)

    changes: dict[str, Callable[..., None]] = {
        "os.rename": lambda source, target, at=-1, to=-1: outputs.moved(path_of(source, at), path_of(target, to)),
        "os.link": lambda source, target, at=-1, to=-1: outputs.wrote(path_of(target, to), follow=False),
        "os.truncate": lambda file, length: outputs.wrote(path_of(file)),
        "os.remove": lambda file, at=-1: outputs.removed(path_of(file, at)),
        "os.mkdir": lambda path, mode, at=-1: outputs.made(path_of(path, at)),
        "os.chdir": lambda path: outputs.leave(),
        "sqlite3.connect": lambda file, *_: outputs.wrote(_database(path_of, file), reads=True),
        **dict.fromkeys(writers.PROGRAMS, writers.count),  # here, because a hook is called at every event
    }

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            flags = arguments[2]
            if not isinstance(flags, int):
                return
            if flags & _WRITING:
                if not isinstance(arguments[0], int):
                    sink.guarded("open", lambda: writes(*arguments))
            elif isinstance(arguments[0], str):
                if unread and arguments[0].rpartition(os.sep)[2] in names:
                    frame = sys._getframe().f_back
                    sink.guarded("open", lambda: outputs.read(path_of(arguments[0]), frame))
                if arguments[0] not in opened and len(data) <= _MOST_READ and len(opened) < _MOST:
                    sink.guarded("open", lambda: outputs.opens(arguments[0]))
        elif event in changes:
            sink.guarded(event, lambda: changes[event](*arguments))

    sys.addaudithook(hook)
    recorder.before_bye(outputs.finish, outputs.forget)


def _database(path_of: Callable[[Any], str], file: Any) -> str:
    name = os.fsdecode(file) if isinstance(file, (str, bytes)) else file
    if isinstance(name, str) and name.startswith("file:"):
        from urllib.parse import unquote  # sqlite3 with a URI

        address, _, options = name[5:].partition("?")
        name = "" if "mode=memory" in options else unquote(address[2:] if address.startswith("///") else address)
    return path_of(name) if name else ""


def watch_torch(serialization: ModuleType, recorder: Recorder) -> None:
    """Record where ``torch.save`` writes to: C++ opens the file."""

    def make(init: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, name: Any, *args: Any, **kwargs: Any) -> None:
            _note(recorder, "torch.save", name)
            init(self, name, *args, **kwargs)

        return __init__

    replace(serialization._open_zipfile_writer_file, "__init__", make)


def watch_h5py(files: ModuleType, recorder: Recorder) -> None:
    """Record which files ``h5py.File`` opens for writing: HDF5 opens them itself."""

    def make(init: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, name: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> None:
            if mode != "r" and isinstance(name, (str, bytes, os.PathLike)):
                _note(recorder, "h5py.File", name)
            init(self, name, mode, *args, **kwargs)

        return __init__

    replace(files.File, "__init__", make)


def _note(recorder: Recorder, where: str, name: Any) -> None:
    for outputs in _outputs:
        recorder.sink.guarded(where, lambda: outputs.wrote(outputs.path_of(os.fspath(name))))  # noqa: B023
