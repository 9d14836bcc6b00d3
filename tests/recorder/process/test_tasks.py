"""A task of a pool ends before its result is passed on; what it trained is a training of its own."""

import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from detaudit.recorder.process import threads


class Recorder:
    def __init__(self) -> None:
        self.noted: list[str] = []
        self.sink = self

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        function()

    def begin_task(self) -> None:
        self.noted.append("begin")

    def end_task(self) -> None:
        self.noted.append("end")


class Results(list[Any]):
    def put(self, result: Any) -> None:
        self.append(result)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.setattr(threads, "_working", [False])
    monkeypatch.setattr(threads, "_depth", [0])
    return Recorder()


def pool(recorder: Recorder) -> Any:
    """Return a module like multiprocessing.pool: a worker does the tasks in its list."""

    def worker(inqueue: Any, outqueue: Any) -> None:
        for function, args in inqueue:
            outqueue.put(function(args))

    def mapstar(args: Any) -> Any:
        return [args[0](one) for one in args[1]]

    found = types.SimpleNamespace(__name__="pool", worker=worker, mapstar=mapstar, starmapstar=mapstar)
    threads.watch_pool(found, recorder)  # type: ignore[arg-type]
    return found


def test_a_task_ends_before_its_result_is_passed_on(recorder: Recorder) -> None:
    class Noting(Results):
        def put(self, result: Any) -> None:
            recorder.noted.append(f"put {result}")

    def task(number: int) -> int:
        recorder.noted.append(f"task {number}")
        return number

    pool(recorder).worker([(task, 1), (task, 2)], Noting())
    assert recorder.noted == ["begin", "task 1", "end", "put 1", "task 2", "end", "put 2"]


def test_each_task_of_a_chunk_ends_and_tasks_in_a_task_do_not(recorder: Recorder) -> None:
    module = pool(recorder)

    def task(number: int) -> int:
        recorder.noted.append(f"task {number}")
        return sum(module.mapstar((lambda one: one, [number])))

    module.worker([(module.mapstar, (task, [1, 2]))], Results())
    assert recorder.noted == ["begin", "task 1", "end", "task 2", "end", "end"]


def test_outside_of_a_worker_the_main_thread_trains_on(recorder: Recorder) -> None:
    assert pool(recorder).mapstar((str, [1, 2])) == ["1", "2"]
    assert recorder.noted == []


def test_in_a_thread_a_task_is_counted(recorder: Recorder) -> None:
    module, counts = pool(recorder), []

    def task(_: int) -> None:
        counts.append(threads.ended_tasks())

    thread = threading.Thread(target=lambda: module.worker([(task, 1), (task, 2)], Results()))
    thread.start()
    thread.join()
    assert counts[0] != counts[1]
    assert recorder.noted == []


def test_only_a_thread_of_the_script_is_in_the_background() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(threads.in_background()))
    thread.start()
    thread.join()
    assert (threads.in_background(), found) == (False, [True])
