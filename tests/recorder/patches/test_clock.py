"""A clock that counts its readings: the same for every code that measures or dates, and the real one for what waits."""

import concurrent.futures
import copy
import datetime
import logging
import pickle
import queue
import threading
import time
import timeit
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from detaudit.recorder import patches
from detaudit.recorder.patches import PatchOptions

TICK = 1 / 128
FIRST = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@pytest.fixture
def counting() -> Iterator[Callable[[], None]]:
    """Let the clock count, in a thread whose clock was not read: return what undoes it."""
    undo = patches.apply("count-clock", PatchOptions())
    yield undo
    undo()


def alone(function: Callable[[], Any]) -> Any:
    """Return what a function returns in a new thread, whose clock has the time of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.mark.usefixtures("counting")
def test_each_reading_takes_a_tick() -> None:
    clocks = ("time", "monotonic", "perf_counter", "process_time", "thread_time")

    def measured() -> list[float]:
        times = []
        for name in clocks:
            started = getattr(time, name)()
            times += [getattr(time, name)() - started]
            started = getattr(time, name + "_ns")()
            times += [(getattr(time, name + "_ns")() - started) / 1e9]
        for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC):
            started = time.clock_gettime(clock)
            times += [time.clock_gettime(clock) - started]
        return times

    assert measured() == [TICK] * 12
    assert measured() == alone(measured), "no difference of two times is rounded"


@pytest.mark.usefixtures("counting")
def test_dates_begin_at_the_same_day() -> None:
    def dates() -> list[datetime.datetime]:
        utc = datetime.timezone.utc
        return [
            datetime.datetime.now(utc),
            datetime.datetime.now().astimezone(utc),
            datetime.datetime.today().astimezone(utc),
            datetime.datetime.utcnow().replace(tzinfo=utc),
            datetime.datetime.fromtimestamp(time.time(), utc),
            datetime.datetime.fromtimestamp(time.mktime(time.localtime()), utc),
            datetime.datetime(*time.gmtime()[:6], tzinfo=utc),
            datetime.datetime.strptime(time.ctime(), "%a %b %d %H:%M:%S %Y").astimezone(utc),
            datetime.datetime.strptime(time.asctime(), "%a %b %d %H:%M:%S %Y").astimezone(utc),
            datetime.datetime.strptime(time.strftime("%Y%m%d%H%M%S"), "%Y%m%d%H%M%S").astimezone(utc),
        ]

    assert [date - FIRST < datetime.timedelta(minutes=1) for date in dates()] == [True] * 10
    assert [date >= FIRST for date in dates()] == [True] * 10


@pytest.mark.usefixtures("counting")
def test_times_that_are_given_are_told_as_ever() -> None:
    assert time.gmtime(0).tm_year == 1970
    assert time.strftime("%Y", time.gmtime(0)) == "1970"
    assert time.asctime(time.gmtime(0)) == "Thu Jan  1 00:00:00 1970"
    assert datetime.datetime.fromtimestamp(0, datetime.timezone.utc).year == 1970


@pytest.mark.usefixtures("counting")
def test_what_a_thread_sleeps_passes() -> None:
    started = time.perf_counter()
    time.sleep(TICK * 2)
    assert time.perf_counter() - started == 3 * TICK
    time.sleep(0.01)
    assert 0.01 - 1e-6 < time.perf_counter() - started - 4 * TICK <= 0.01
    started = time.perf_counter()
    with pytest.raises(ValueError, match="negative"):
        time.sleep(-1)
    with pytest.raises(TypeError, match="one argument"):
        time.sleep(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        time.time(1)  # type: ignore[call-arg]
    assert time.perf_counter() - started == TICK


@pytest.mark.usefixtures("counting")
def test_a_loop_that_waits_until_a_deadline_ends() -> None:
    event, deadline, waits = threading.Event(), time.monotonic() + 0.2, 0
    while (left := deadline - time.monotonic()) > 0:
        assert not event.wait(left)
        waits += 1
    assert waits == 1
    started = time.monotonic()
    with pytest.raises(queue.Empty):
        queue.Queue[int]().get(timeout=0.1)
    assert 0.1 < time.monotonic() - started < 0.2
    thread = threading.Thread(target=event.wait)
    thread.start()
    started = time.monotonic()
    thread.join(0.1)
    assert 0.1 < time.monotonic() - started < 0.2
    event.set()
    thread.join(10)
    assert time.monotonic() - started < 0.2
    started = time.monotonic()
    assert event.wait(10)
    assert time.monotonic() - started == TICK


@pytest.mark.usefixtures("counting")
def test_a_thread_starts_with_the_time_of_the_one_that_starts_it_and_has_its_own() -> None:
    started = time.monotonic()
    seen: list[float] = []

    def read(times: int) -> None:
        seen.extend([time.monotonic() - started for _ in range(times)])

    threads = [threading.Thread(target=read, args=(times,)) for times in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [TICK, TICK, 2 * TICK, 2 * TICK, 3 * TICK]
    assert time.monotonic() - started == TICK


@pytest.mark.usefixtures("counting")
def test_logs_tell_it() -> None:
    record = logging.LogRecord("name", logging.INFO, "file", 1, "text", (), None)
    assert FIRST.timestamp() <= record.created < FIRST.timestamp() + 60


@pytest.mark.usefixtures("counting")
def test_what_is_repeated_until_it_took_long_enough_ends() -> None:
    assert timeit.Timer("sum(range(100_000))", timer=time.perf_counter).autorange()[1] >= 0.2
    benchmark = types.ModuleType("torch.utils.benchmark.utils.timer")
    exec("import time\nperf_counter = time.perf_counter\ndef read(): return perf_counter()", vars(benchmark))
    assert benchmark.read() != benchmark.read()
    assert (benchmark.read() * 128) % 1 != 0


@pytest.mark.usefixtures("counting")
def test_what_waits_keeps_the_real_clock() -> None:
    def readings() -> float:
        return time.perf_counter() / TICK

    before = readings()
    with ThreadPoolExecutor(1) as pool:
        assert list(pool.map(str, range(3), timeout=10)) == ["0", "1", "2"]
    assert concurrent.futures.wait([Future()], timeout=0).done == set()
    assert readings() - before == 1

    package = types.ModuleType("botocore.auth")
    exec("import datetime, time\ndef signed(): return time.time(), datetime.datetime.now()", vars(package))
    seconds, date = package.signed()
    assert abs(date.timestamp() - seconds) < 60
    assert readings() - before == 2


@pytest.mark.usefixtures("counting")
def test_classes_stay_what_they_are() -> None:
    class Own(datetime.datetime):
        pass

    assert type(Own.now()) is Own
    assert type(datetime.datetime.now()) is datetime.datetime
    assert pickle.loads(pickle.dumps(time.time)) is time.time
    assert copy.copy(datetime.datetime.now()).tzinfo is None


def test_it_can_be_undone(counting: Callable[[], None]) -> None:
    assert time.time() < FIRST.timestamp() + 3600
    counting()
    reading = time.time()
    assert abs(datetime.datetime.now().timestamp() - reading) < 60
    assert time.perf_counter() - time.perf_counter() != -TICK
    assert time.strftime("%Y%m%d", time.gmtime(reading)) == datetime.datetime.now(datetime.timezone.utc).strftime(
        "%Y%m%d"
    )


def test_the_first_date_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    undo = patches.apply("count-clock", PatchOptions())
    try:
        assert datetime.datetime.now(datetime.timezone.utc).date() == datetime.date(1970, 1, 2)
    finally:
        undo()
