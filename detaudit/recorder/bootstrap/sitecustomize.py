"""First on a run's PYTHONPATH: loads the recorder, steps aside, runs the sitecustomize that it shadows."""

import os
import sys


def _load_recorder(bootstrap):
    # Under a private package name whose __init__ is never run: the script may import its own `detaudit`.
    import types

    package = types.ModuleType("_detaudit")
    package.__path__ = [os.path.dirname(os.path.dirname(bootstrap))]
    sys.modules["_detaudit"] = package
    from _detaudit.recorder import boot  # type: ignore[import-not-found]

    boot.start()


def _step_aside(bootstrap):
    # sys.path must read as it would without us; children find us through the environment.
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
_step_aside(_bootstrap)
if os.environ.get("DETAUDIT_TRACE"):
    try:
        _load_recorder(_bootstrap)
    except Exception as error:  # the host must not notice; the auditor will find no record and say so
        sys.stderr.write("detaudit: the recorder did not load: %r\n" % (error,))
_run_shadowed()
