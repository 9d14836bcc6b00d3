"""Runs at once: which may begin, in which order their results are taken, and what is left when they are stopped."""

import threading
from collections.abc import Callable

import pytest

from detaudit.launch.slots import Jobs, Pool, divide
from detaudit.model import Run, RunRecord, Status
from detaudit.runner import Result, SideBySide
from tests.fakes import FakeLauncher


def result(number: int, threads: int = 1) -> Result:
    run = Run(id=number, status=Status.OK, exit_code=0, wall_s=1.0, steps=1)
    return Result(run, (), RunRecord(), threads)


class InOrder(Pool[Result]):
    """Finishes runs in an order that the test names, and notes which were under way."""

    def __init__(self, *order: int) -> None:
        super().__init__(FakeLauncher(), threads=False)
        self.order = list(order)
        self.work: dict[int, Callable[[], Result]] = {}
        self.under_way: list[set[int]] = []

    def submit(self, number: int, work: Callable[[], Result]) -> None:
        self.work[number] = work

    def next(self) -> tuple[int, Result]:
        self.under_way.append({*self.work})
        number = self.order.pop(0)
        return number, self.work.pop(number)()


def numbers(pool: Pool[Result], jobs: Jobs, runs: int, *, first_alone: bool = False, threads: int = 1) -> list[int]:
    with SideBySide(pool, jobs, lambda number: result(number, threads), first_alone=first_alone) as side_by_side:
        return [one.run.id for one in side_by_side.results(lambda: runs)]


def test_results_are_in_order_whichever_finished_first() -> None:
    pool = InOrder(2, 1, 4, 3, 5)
    assert numbers(pool, divide(2, (), 5, range(2)), 5) == [1, 2, 3, 4, 5]


def test_a_run_waits_for_its_slot() -> None:
    pool = InOrder(2, 4, 1, 3, 5)
    with pytest.raises(KeyError):  # run 4 needs the slot of run 2, but run 3 is next, and needs that of run 1
        numbers(pool, divide(2, (), 5, range(2)), 5)
    assert pool.under_way == [{1, 2}, {1}]


def test_the_first_goes_alone_if_the_others_need_what_it_shows() -> None:
    pool = InOrder(1, 2, 3)
    assert numbers(pool, divide(2, (), 3, range(2)), 3, first_alone=True) == [1, 2, 3]
    assert pool.under_way == [{1}, {2, 3}, {3}]


@pytest.mark.parametrize(("threads", "beside"), [(1, {2, 3, 4}), (2, {2, 3}), (3, {2})])
def test_auto_begins_as_many_as_there_are_cores_for(threads: int, beside: set[int]) -> None:
    pool = InOrder(1, 2, 3, 4)
    assert numbers(pool, divide(None, (), 4, range(4)), 4, threads=threads) == [1, 2, 3, 4]
    assert pool.under_way[:2] == [{1}, beside]


def test_what_finished_is_kept_when_the_rest_is_stopped() -> None:
    release = threading.Event()
    pool: Pool[Result] = Pool(FakeLauncher(), threads=True)

    def run(number: int) -> Result:
        if number == 1:
            release.wait(10)
            raise StopIteration
        return result(number)

    side_by_side = SideBySide(pool, divide(3, (), 3, range(3)), run, first_alone=False)
    results = side_by_side.results(lambda: 3)
    threading.Timer(0.3, release.set).start()
    with pytest.raises(RuntimeError):  # from run 1
        next(results)
    stopped = list(side_by_side.stop())
    assert [(number, None if found is None else found.run.id) for number, found in stopped] == [
        (1, None),
        (2, 2),
        (3, 3),
    ]
    assert list(side_by_side.stop()) == []
