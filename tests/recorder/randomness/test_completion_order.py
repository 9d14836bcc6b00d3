"""The completion order of results is recorded, and code that waits for results behaves as before."""

import gc
import importlib.util
import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from detaudit.judge.seeds import Call, sources
from detaudit.model import SourceKind
from detaudit.recorder.process import threads
from detaudit.recorder.randomness import order as completion_order
from detaudit.recorder.randomness import seeds
from tests.recorder.randomness.test_seeds import Lines


class Recorder:
    """A fake recorder."""

    def __init__(self) -> None:
        self.sink = Lines()
        self.finish: Callable[[], None] = lambda: None

    def before_bye(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        self.finish = finish


@pytest.fixture
def recorder() -> Any:
    for known in (completion_order._orders, completion_order._prepared, seeds._written, seeds._calls, threads._made):
        known.clear()
    return Recorder()


def copy_of(name: str) -> Any:
    """Return a module of the standard library as if it were imported for the first time."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seen(recorder: Any) -> tuple[tuple[str, str], ...]:
    """Return what was recorded so far, as a run that ends here, and start the next run."""
    recorder.finish()
    found = tuple((line["kind"], line["value"]) for line in recorder.sink.found)
    assert {line["file"] for line in recorder.sink.found} <= {__file__}
    recorder.sink.found.clear()
    for known in (completion_order._orders, seeds._written, seeds._calls, threads._made):
        known.clear()
    return found


def differ(*runs: tuple[tuple[str, str], ...]) -> bool:
    """Whether the auditor finds that these runs took the results of one line in different orders."""
    calls = [tuple(Call(SourceKind(kind), value) for kind, value in run) for run in runs]
    found = sources([{("train.py", 1, "f"): run} for run in calls])
    assert {source.kind for source in found} <= {SourceKind.COMPLETION_ORDER}
    return bool(found)


def completed(base: Any, order: Sequence[int], holding: Callable[[Any], Any] = list) -> list[int]:
    futures = [base.Future() for _ in order]
    for future in futures:
        future.set_running_or_notify_cancel()
    waiting = base.as_completed(holding(futures))
    found = []
    for place in order:
        threading.Timer(0.01, futures[place].set_result, (place,)).start()
        found.append(next(waiting).result())
    assert next(waiting, None) is None
    return found


@pytest.mark.parametrize("holding", [list, set, iter, dict.fromkeys])
def test_the_order_in_which_futures_are_completed(recorder: Any, holding: Callable[[Any], Any]) -> None:
    base = copy_of("concurrent.futures._base")
    completion_order.watch_futures(base, recorder)
    runs = []
    for order in ([2, 0, 1], [2, 0, 1], [2, 1, 0]):
        assert completed(base, order, holding) == order
        runs.append(seen(recorder))
    assert {kind for run in runs for kind, _ in run} == {"completion-order"}
    assert not differ(runs[0], runs[1])
    assert differ(runs[0], runs[2])


def test_futures_without_a_number_are_identified_by_their_index(recorder: Any) -> None:
    base = copy_of("concurrent.futures._base")
    completion_order.watch_futures(base, recorder)

    class Foreign(base.Future):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.__dict__.pop(threads.NUMBER)

    base.Future = Foreign
    completed(base, [1, 0])
    listed = seen(recorder)
    completed(base, [0, 1])
    assert differ(listed, seen(recorder))
    completed(base, [0, 1], set)
    assert seen(recorder) == ()


def test_wait_for_the_first_completed_future(recorder: Any) -> None:
    base = copy_of("concurrent.futures._base")
    completion_order.watch_futures(base, recorder)
    runs = []
    for first in (0, 0, 1):
        futures = {base.Future(), base.Future()}
        made = sorted(futures, key=lambda future: future.__dict__[threads.NUMBER])
        made[first].set_result(None)
        done, pending = base.wait(futures, return_when="FIRST_COMPLETED")
        assert (done, pending) == ({made[first]}, {made[1 - first]})
        assert base.wait(futures, timeout=0).done == done
        runs.append(seen(recorder))
    assert [len(run) for run in runs] == [1, 1, 1]  # waiting for all of them is not recorded
    assert not differ(runs[0], runs[1])
    assert differ(runs[0], runs[2])


def test_waiting_for_futures_behaves_as_before(recorder: Any) -> None:
    base = copy_of("concurrent.futures._base")
    completion_order.watch_futures(base, recorder)
    asked: list[Any] = []

    def lazily() -> Any:
        asked.append(base.Future())
        asked[-1].set_result(1)
        yield asked[-1]

    waiting = base.as_completed(lazily())
    assert inspect.isgenerator(waiting)
    assert inspect.isgeneratorfunction(base.as_completed)
    assert str(inspect.signature(base.as_completed)) == "(fs, timeout=None)"
    assert not asked
    future = weakref.ref(next(waiting))
    asked.clear()
    gc.collect()
    assert future() is None
    done = base.Future()
    done.set_result(2)
    future, waiting = weakref.ref(done), base.as_completed([done])
    del done
    assert next(waiting).result() == 2
    assert future() is None
    with pytest.raises(TypeError, match="argument"):
        base.as_completed()
    with pytest.raises(TypeError, match="not iterable"):
        next(base.as_completed(5))
    with pytest.raises(base.TimeoutError, match="1 \\(of 1\\)"):
        next(base.as_completed([base.Future()], timeout=0))
    left = base.Future()
    waiting = base.as_completed([left, *(f for f in [base.Future()] if f.set_result(1) is None)])
    next(waiting)
    waiting.close()
    assert left._waiters == []


def filled(queue: Any, order: str, names: str = "ab") -> None:
    """Put each item by a thread of that name, one after the other."""
    for name in order:
        one = threading.Thread(target=queue.put, args=(name,), name=name if name in names else "a")
        one.start()
        one.join()


def taken(queue: Any, count: int) -> list[str]:
    return [queue.get() for _ in range(count)]


def test_the_threads_that_put_items_into_a_queue(recorder: Any) -> None:
    module = copy_of("queue")
    completion_order.watch(module, recorder)
    runs = []
    for order in ("abba", "abba", "abab", "abb"):
        queue = module.Queue()
        filled(queue, order)
        assert taken(queue, len(order)) == list(order)
        runs.append(seen(recorder))
    assert not differ(runs[0], runs[1])
    assert differ(runs[0], runs[2])
    assert not differ(runs[0], runs[3])  # fewer items, in the same order
    assert not differ(runs[2], runs[2][:1])


def test_an_order_is_written_before_a_differing_run_is_stopped(recorder: Any) -> None:
    module = copy_of("queue")
    completion_order.watch(module, recorder)
    recorder.finish = lambda: None
    runs = []
    for order in ("aaabb", "aaaba", "aaab"):
        queue = module.Queue()
        filled(queue, order)
        taken(queue, len(order))
        runs.append(seen(recorder))
    assert differ(runs[0], runs[1])
    assert not differ(runs[0], runs[2])


def test_the_order_of_items_from_one_thread_does_not_count(recorder: Any) -> None:
    module = copy_of("queue")
    completion_order.watch(module, recorder)
    runs = []
    for items in ("cde", "edc"):
        queue = module.Queue()
        filled(queue, items, names="")
        taken(queue, 3)
        runs.append(seen(recorder))
    assert runs[0]
    assert not differ(*runs)


def test_queues_that_reorder_items_are_not_recorded(recorder: Any) -> None:
    module = copy_of("queue")
    completion_order.watch(module, recorder)
    for kind in (module.PriorityQueue, module.LifoQueue):
        queue = kind()
        filled(queue, "ba")
        assert taken(queue, 2) == ["a", "b"]
    cleared = module.Queue()
    filled(cleared, "ab")
    cleared.queue.clear()
    filled(cleared, "b")
    assert taken(cleared, 1) == ["b"]
    filled(queue := module.Queue(), "a")
    queue.queue.appendleft("b")
    assert taken(queue, 2) == ["b", "a"]
    assert not recorder.sink.found
    with pytest.raises(module.Empty):
        cleared.get(timeout=0)
    with pytest.raises(module.Empty):
        cleared.get_nowait()


def test_a_task_has_the_same_name_on_any_thread_of_a_pool(recorder: Any) -> None:
    base, pools = copy_of("concurrent.futures._base"), copy_of("concurrent.futures.thread")
    completion_order.watch_futures(base, recorder)
    threads.name_tasks(pools, recorder)
    pools._base = base
    with pools.ThreadPoolExecutor(2) as executor:
        names = [executor.submit(threads.name).result() for _ in range(3)]
        failing = executor.submit(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            failing.result()
    assert names == ["task 1 ", "task 2 ", "task 3 "]
    assert threads.name() == ""
    assert not threads._tasks


def test_a_task_that_failed_keeps_nothing_alive(recorder: Any) -> None:
    pools = copy_of("concurrent.futures.thread")
    threads.name_tasks(pools, recorder)

    class Held:
        def fail(self) -> None:
            raise ValueError

    held = Held()
    gone = weakref.ref(held)
    gc.disable()
    try:
        with pools.ThreadPoolExecutor(1) as executor:
            future = executor.submit(held.fail)
            assert isinstance(future.exception(), ValueError)
        del future, held
        assert gone() is None
    finally:
        gc.enable()


def test_the_completion_order_of_a_pool(recorder: Any) -> None:
    module = copy_of("multiprocessing.pool")
    completion_order.watch_pool(module, recorder)
    runs = []
    for order in ("012", "012", "021"):
        came = module.IMapUnorderedIterator(SimpleNamespace(_cache={}))
        for place in order:
            came._set(int(place), (True, place))
        came._set_length(3)
        assert list(came) == list(order)
        runs.append(seen(recorder))
    assert not differ(runs[0], runs[1])
    assert differ(runs[0], runs[2])
    in_order = module.IMapIterator(SimpleNamespace(_cache={}))
    in_order._set(0, (True, "a"))
    assert next(in_order) == "a"
    assert seen(recorder) == ()


def test_a_thread_pool_returns_results_as_before(recorder: Any) -> None:
    module = copy_of("multiprocessing.pool")
    completion_order.watch_pool(module, recorder)
    with module.ThreadPool(2) as pool:
        assert sorted(pool.imap_unordered(abs, range(-5, 0))) == [1, 2, 3, 4, 5]
        assert sorted(pool.imap_unordered(abs, range(-5, 0), chunksize=2)) == [1, 2, 3, 4, 5]
        assert pool.apply(threads.name) is None  # any free thread may run it
        with pytest.raises(TypeError):
            next(pool.imap_unordered(abs, ["a"]))
    assert len({line["line"] for line in recorder.sink.found}) == 3


def test_the_lines_written_for_one_place_are_limited(recorder: Any) -> None:
    module = copy_of("queue")
    completion_order.watch(module, recorder)
    queue = module.Queue()
    for _ in range(5000):
        queue.put(1)
        queue.get()
    recorder.finish()
    counts = [int(line["value"].partition(":")[2].partition("/")[0]) for line in recorder.sink.found]
    assert counts[:256] == [*range(1, 257)]
    assert counts[-1] == completion_order._MOST_COMPLETED
    assert len(counts) < 1000
    assert len(completion_order._orders) == 1


def test_a_loader_with_in_order_false_is_recorded_at_its_line(recorder: Any) -> None:
    class DataLoader:
        def __init__(self, data: str, num_workers: int = 0, in_order: bool = True) -> None:
            self.num_workers, self.in_order = num_workers, in_order

    completion_order.watch_loaders(SimpleNamespace(DataLoader=DataLoader), recorder)
    DataLoader("a", num_workers=2)
    DataLoader("a", in_order=False)
    assert not recorder.sink.found
    DataLoader("a", num_workers=2, in_order=False)
    assert [(line["kind"], line["what"]) for line in recorder.sink.found] == [
        ("completion-order-option", "DataLoader(in_order=False)")
    ]
    assert str(inspect.signature(DataLoader.__init__)).startswith("(self, data")
