"""Work that goes on at once is ended together, and nothing of it is lost or forgotten."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from detaudit.errors import StorageError
from detaudit.launch import CancelledError, RunOutcome, RunSpec
from detaudit.launch.slots import Pool

SPEC = RunSpec((), Path(), {}, Path(), Path(), "m")


class Endless:
    """A launcher whose runs go on until a tick ends them."""

    def __init__(self) -> None:
        self.started, self.ended = threading.Event(), threading.Event()

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        self.started.set()
        try:
            while True:
                tick()
                time.sleep(0.005)
        finally:
            self.ended.set()


def launching(pool: Pool[str], result: str) -> Callable[[], str]:
    def work() -> str:
        pool.launch(SPEC, lambda: None)
        return result

    return work


def test_results_come_as_they_finish() -> None:
    pool: Pool[str] = Pool(Endless(), threads=True)
    first = threading.Event()
    pool.submit(1, lambda: "slow" if first.wait(10) else "never")
    pool.submit(2, lambda: "quick")
    assert pool.next() == (2, "quick")
    first.set()
    assert pool.next() == (1, "slow")


def test_an_error_is_raised_where_the_result_is_awaited() -> None:
    pool: Pool[str] = Pool(Endless(), threads=True)

    def fails() -> str:
        raise StorageError("cannot write")

    pool.submit(1, fails)
    with pytest.raises(StorageError, match="cannot write"):
        pool.next()


def test_cancel_ends_what_is_launched_and_hands_back_what_finished() -> None:
    launcher = Endless()
    pool: Pool[str] = Pool(launcher, threads=True)
    pool.submit(1, launching(pool, "never"))
    pool.submit(2, lambda: "finished")
    assert launcher.started.wait(10)
    pool._threads[2].join()
    assert pool.cancel() == [(2, "finished")]
    assert launcher.ended.is_set()
    assert pool.cancel() == []


def test_no_run_begins_after_it_is_cancelled() -> None:
    launcher, entered, go = Endless(), threading.Event(), threading.Event()
    pool: Pool[str] = Pool(launcher, threads=True)

    def prepares() -> str:
        entered.set()
        go.wait(10)
        return launching(pool, "never")()

    pool.submit(1, prepares)
    entered.wait(10)
    threading.Timer(0.05, go.set).start()
    assert pool.cancel() == []
    assert not launcher.started.is_set()


def test_it_can_be_used_again_after_it_was_cancelled() -> None:
    pool: Pool[str] = Pool(Endless(), threads=True)
    pool.cancel()
    pool.submit(1, lambda: "again")
    assert pool.next() == (1, "again")


def test_without_threads_work_is_done_where_it_is_awaited() -> None:
    pool: Pool[int] = Pool(Endless(), threads=False)
    pool.submit(1, threading.get_ident)
    pool.submit(2, threading.get_ident)
    assert pool.next() == (1, threading.get_ident())
    assert pool.cancel() == []


def test_a_run_that_is_cancelled_has_no_outcome() -> None:
    pool: Pool[str] = Pool(Endless(), threads=False)
    pool._cancelled.set()
    with pytest.raises(CancelledError):
        pool.launch(SPEC, lambda: None)
