"""What a worker of Parsl calls to do a job. Its process ends when nobody waits for it any more."""

import contextlib
import multiprocessing
import os
import threading
from multiprocessing.process import BaseProcess

import psutil

from detaudit import wire
from detaudit.remote.engines.in_worker import Done, do

OF_JOBS = "job-"
"""What the mark of jobs begins with, before that of Parsl: they end by themselves, in order, after their worker."""

_watching = threading.Event()


def do_job(data: bytes, cancelled: str) -> Done:
    """Do an encoded job. It is ended as soon as there is a file ``cancelled``."""
    _end_with_manager()
    mark = OF_JOBS + os.environ.get(wire.ENV_MARK, "")
    return do(data, lambda: not os.path.exists(cancelled), {wire.ENV_MARK: mark})


def _end_with_manager() -> None:
    """From now on, end this process and the others of its manager when that is killed: nobody else would."""
    manager = multiprocessing.parent_process()
    if manager is None or manager.pid is None or _watching.is_set():
        return
    _watching.set()
    others: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        others = [child for child in psutil.Process(manager.pid).children() if child.pid != os.getpid()]
    threading.Thread(target=_watch, args=(manager, others), daemon=True).start()


def _watch(manager: BaseProcess, others: list[psutil.Process]) -> None:
    manager.join()
    for process in others:
        with contextlib.suppress(psutil.Error):  # psutil does not kill another one with the same number
            process.kill()
    os._exit(1)
