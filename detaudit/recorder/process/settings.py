"""Record the settings and environment variables that affect determinism, as they are when libraries read them."""

from __future__ import annotations

import os
import sys

from ... import wire
from . import children, frames, guard
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .recorder import Recorder

SETTINGS: dict[str, Sequence[str]] = {
    "sys": ("flags.hash_randomization",),
    **{module: names for framework in wire.FRAMEWORKS.values() for module, names in framework.settings.items()},
}
"""Module, and the settings to read if it was imported."""

_HASH_SEED, _OF_PYTHON = "PYTHONHASHSEED", ("os", "collections")

READ_VARIABLES = ("numpy", *[name for name, framework in wire.FRAMEWORKS.items() if framework.variables])
"""Modules that read environment variables at import or later."""

_WITH_VERSION = (
    "numpy",
    *[module for name, framework in wire.FRAMEWORKS.items() for module in (name, *framework.versions)],
    *("horovod", "scipy", "pandas", "PIL", "cv2", "lightning", "transformers", "accelerate"),
)
"""Packages whose version may change the results of a training."""

_MOST = 100
"""Environment changes that are recorded at most."""

_PACKAGES = ("site-packages", "dist-packages")

_EXTENSIONS = (".so", ".pyd")
"""Suffixes of modules that were compiled."""

_ABSENT = object()


def _read(module: Any, dotted: str) -> Any:
    """Return a setting, or _ABSENT if this version does not have it or raises (torch has two names for TF32)."""
    value = module
    try:
        for part in dotted.split("."):
            value = getattr(value, part[:-2])() if part.endswith("()") else getattr(value, part)
    except Exception as error:
        guard.pass_on(error)
        return _ABSENT
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def read_settings() -> dict[str, Any]:
    """Return the settings of the modules that were imported."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as about a deprecated name
        present = [(name, sys.modules[name]) for name in SETTINGS if name in sys.modules]
        values = {f"{name}.{dotted}": _read(module, dotted) for name, module in present for dotted in SETTINGS[name]}
    return {name: value for name, value in values.items() if value is not _ABSENT}


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if wire.affects_determinism(name)}


class SettingsRecorder:
    """Keeps the environment variables as they are at the start and at each import, and writes them with the settings.

    That is at the end, and at steps 1, 2, 4, 8, …, for a run that is ended before. Where nothing of that was imported,
    it is at the end of a script of the user's.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._sink = recorder, recorder.sink
        self._environ = {"start": _variables()}
        self._changes, self._wanted = 0, False
        self._script = ""
        self._written: dict[str, Any] = {}
        self._data: tuple[int, bool | None] = 0, None

    def install(self) -> None:
        """Wrap the methods that change os.environ, to record the changes that the script makes."""
        kind = type(os.environ)
        replace(kind, "__setitem__", self._setting)
        replace(kind, "__delitem__", self._deleting)
        self._recorder.before_bye(self._finish_script, self._forget)

    def _setting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def __setitem__(environ: Any, name: Any, value: Any) -> None:
            frame = sys._getframe().f_back
            function(environ, name, value)
            if wire.affects_determinism(name):
                self._sink.guarded("environ", lambda: self._note(environ, name, value, frame))

        return __setitem__

    def _deleting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def __delitem__(environ: Any, name: Any) -> None:
            frame = sys._getframe().f_back
            function(environ, name)
            if wire.affects_determinism(name):
                self._sink.guarded("environ", lambda: self._note(environ, name, None, frame))

        return __delitem__

    def _note(self, environ: Any, name: Any, value: str | None, frame: Any) -> None:
        if environ is not os.environ or self._changes >= _MOST:
            return
        # A library may set the number of threads for what it starts later, and no line of the script can change that.
        user_frame = frames.user_frame(frame, None if name == _HASH_SEED else _OF_PYTHON)
        if user_frame is not None:
            self._changes += 1
            file, line = frames.location(user_frame)
            after = [module for module in READ_VARIABLES if module in sys.modules]
            change = {"k": "environ", "name": name, "value": value, "file": file, "line": line, "after": after}
            self._sink.write(change)

    def imported(self, name: str) -> None:
        """Keep the variables as a framework finds them. From the first import on, settings are written at the end."""
        if not self._wanted:
            self._wanted = True
            self._recorder.at_end(self._finish, self._forget)
            self._recorder.at_step(self._at_step)
        if name in READ_VARIABLES:
            self._environ[name] = _variables()
        main = sys.modules.get("__main__")
        # A notebook has its path in __session__.
        self._script = getattr(main, "__file__", None) or getattr(main, "__session__", None) or self._script

    def _at_step(self, steps: int) -> None:
        if steps == self._recorder.until or not steps & (steps - 1):
            self._sink.guarded("settings", self._finish)

    def _finish_script(self) -> None:
        script = "" if self._wanted else _script()
        if script and frames.is_user_code(script):
            self._script = script
            self._finish()

    def _finish(self) -> None:
        if not self._sink.started:
            return  # a forked helper without records does not need an event log for this
        environ, files = {**self._environ, "end": _variables()}, _files(self._script)
        line: dict[str, object] = {
            "k": "settings",
            "values": read_settings(),
            "environ": environ,
            "files": [file for file in files if file.endswith((".py", ".ipynb"))][: wire.MOST_SOURCE_FILES],
            "extensions": [file for file in files if file.endswith(_EXTENSIONS)][: wire.MOST_SOURCE_FILES],
            "versions": _versions(),
            "packages": [path for path in sys.path if path.endswith(_PACKAGES)],
        }
        if line != self._written:
            self._written = line
            self._sink.write(line)
        paths, spent = children.data_read()
        if (len(paths), spent) != self._data:
            self._sink.write({"k": "data", "paths": paths[self._data[0] :], "spent": spent})
            self._data = len(paths), spent

    def _forget(self) -> None:
        self._changes, self._written, self._data = 0, {}, (0, None)


def _script() -> str:
    """Return the file that was run, at whose end Python takes ``__file__`` from ``__main__``; "" if it is none."""
    name = sys.argv[0] if sys.argv else ""
    if not name.endswith(".py"):
        return ""
    own = sys.path[0] if sys.path else ""  # the script may have changed its folder
    paths = [os.path.abspath(name), os.path.join(own, os.path.basename(name))]
    return next((path for path in paths if os.path.isfile(path)), "")


def _own(module: Any, name: str) -> Any:
    try:
        # getattr would make a lazy module load itself.
        return object.__getattribute__(module, "__dict__").get(name)
    except AttributeError:
        return None


def _versions() -> dict[str, str]:
    """Return the versions of the imported packages, ``""`` for a package that does not state one."""
    present = [(name, sys.modules.get(name)) for name in _WITH_VERSION]
    return {name: str(_own(module, "__version__") or "") for name, module in present if module is not None}


def _files(script: str) -> list[str]:
    """Return the files of user code that are loaded."""
    files = [script, *[_own(module, "__file__") for module in list(sys.modules.values())]]
    own = [file for file in files if isinstance(file, str) and frames.is_user_code(file)]
    return sorted({os.path.abspath(file) for file in own})
