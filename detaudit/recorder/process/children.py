"""Keep the recorder in the processes that a script starts, also with an environment of its own."""

from __future__ import annotations

import os

from ... import wire
from .os_functions import replace_in_os
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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


def watch(recorder: Recorder) -> None:
    """Wrap the functions of os that start a program with given variables."""
    injection, guarded = _Injection(), recorder.sink.guarded

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def start(path: Any, argv: Any, env: Any, *args: Any, **kwargs: Any) -> Any:
            found = [env]
            guarded("child", lambda: found.append(injection.into(env)))
            return function(path, argv, found[-1], *args, **kwargs)

        return start

    for name in ("execve", "posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            replace_in_os(name, make)


def watch_subprocess(subprocess: Any, recorder: Recorder) -> None:
    """Wrap what ``subprocess`` starts programs by, as most libraries do."""
    injection, guarded = _Injection(), recorder.sink.guarded

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def _execute_child(popen: Any, *args: Any) -> Any:
            found = list(args)

            def put_back() -> None:
                given = os.environ if args[_ENV] is None else args[_ENV]
                env = injection.into(given)
                if env is not given:
                    found[_ENV] = env

            guarded("child", put_back)
            return function(popen, *found)

        return _execute_child

    replace(subprocess.Popen, "_execute_child", make)
