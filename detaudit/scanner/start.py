"""``python start.py JOB``: do one job of a scan, or list the operations that there are; see job.py."""

from __future__ import annotations

import os
import sys
import types


def _package() -> None:
    # A private name, as the recorder has, so that detaudit need not be installed here. Its __init__ never runs.
    here = os.path.dirname(os.path.abspath(__file__))
    package = types.ModuleType("_detaudit")
    package.__path__ = [os.path.dirname(here)]
    sys.modules["_detaudit"] = package
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


if __name__ == "__main__":
    _package()
    from _detaudit.scanner import job  # type: ignore[import-not-found]

    job.main(sys.argv[1])
