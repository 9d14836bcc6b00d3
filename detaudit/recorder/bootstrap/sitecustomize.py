"""Load the recorder into a process, then run the sitecustomize that this one shadows. First on a run's PYTHONPATH."""

import os
import sys


def _load_recorder(bootstrap):
    # Use a private package name, since the script may import its own `detaudit`. Its __init__ never runs.
    import types

    package = types.ModuleType("_detaudit")
    package.__path__ = [os.path.dirname(os.path.dirname(bootstrap))]
    sys.modules["_detaudit"] = package
    if sys.version_info < (3, 9):  # noqa: UP036 - the training may have any Python
        raise RuntimeError("it needs Python 3.9 or later")
    from _detaudit.recorder import boot  # type: ignore[import-not-found]

    boot.start()


def _leave_path(bootstrap):
    # sys.path must be the same as without the recorder; child processes find this file through PYTHONPATH.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != bootstrap]


def _run_shadowed():
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_bootstrap = os.path.dirname(os.path.abspath(__file__))
_leave_path(_bootstrap)
if os.environ.get("DETAUDIT_LOGS"):
    try:
        _load_recorder(_bootstrap)
    except Exception as error:  # the script must run; the auditor reports that nothing was recorded
        sys.stderr.write("detaudit: could not load the recorder: %r\n" % (error,))
_run_shadowed()
