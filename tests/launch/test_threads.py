"""How many threads of a run compete for CPUs, as looks from time to time show."""

import os
import threading

from detaudit.launch.local import Competing


def test_a_moment_with_more_threads_is_not_usual() -> None:
    found = Competing()
    assert found.usual == 0
    found._seen = [1] * 19 + [8]
    assert found.usual == 1
    found._seen = [1] * 5 + [4] * 5
    assert found.usual == 4


def test_threads_that_wait_are_not_counted() -> None:
    done = threading.Event()
    waiting = [threading.Thread(target=done.wait) for _ in range(5)]
    for thread in waiting:
        thread.start()
    found = Competing()
    found.look([os.getpid(), 2**22 + 1])  # no process has this number
    done.set()
    assert 1 <= found.usual < 5
