"""Train in forked children of one process that has imported all: a training then takes a fraction of a second.

Reads one request per line: ``{"cwd", "live", "training", "world", "plant"}``, or ``script`` instead of a training, and
answers each with the exit status. The recorder is loaded as in any run; a child has an event log of its own.
"""

import gc
import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from tests.planted.plants import Plant
from tests.planted.trainings import train


def _child(request: dict[str, Any]) -> NoReturn:
    live = Path(request["live"])
    for descriptor, name in ((0, os.devnull), (1, live / "stdout.log"), (2, live / "stderr.log")):
        opened = os.open(name, os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(request["cwd"])
    status = 1
    try:
        if "script" in request:
            sys.argv = [request["script"]]
            sys.path.insert(0, str(Path(request["script"]).parent))
            runpy.run_path(request["script"], run_name="__main__")
        else:
            plant = Plant(*request["plant"]) if request["plant"] else None
            train(request["training"], request["world"], plant, live)
        status = 0
    except BaseException:  # noqa: BLE001  (a script may exit)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


# What torch and NumPy import when it is first needed.
_LATER = ("torch._dynamo", "torch.profiler._cupti_monitor", "torch.utils.serialization.config", "numpy.ctypeslib")


def main() -> None:
    """Serve until the input ends. The arguments are modules to import, too."""
    for name in (*_LATER, *sys.argv[1:]):
        importlib.import_module(name)
    import detaudit  # noqa: F401  (the recorder waits for it)

    gc.collect()
    gc.freeze()  # otherwise each child copies the memory of all objects when it collects garbage
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _child(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
