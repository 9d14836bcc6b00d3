"""``python .../recorder/replay REQUEST.json``: repeat a call under one condition."""

import os
import sys
import types

_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    # The name that the recorder has in trainings: the call may import a `detaudit` of its own.
    package = types.ModuleType("_detaudit")
    package.__path__ = [_FOLDER]
    sys.modules["_detaudit"] = package
    from _detaudit.recorder.replay import job  # type: ignore[import-not-found]

    job.main(sys.argv[1])
