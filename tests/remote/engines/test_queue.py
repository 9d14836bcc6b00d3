"""Which job a machine gets."""

from detaudit.remote.engine import Job
from detaudit.remote.engines import Queue

PLACES = frozenset({"a", "b"})


def job(name: str) -> Job:
    return Job(id=name, run=1, plan=b"", code=b"", digest="")


def test_jobs_are_taken_in_their_order() -> None:
    queue = Queue()
    for name in ("1", "2"):
        queue.add(job(name), frozenset())
    assert [queue.take("a", PLACES), queue.take("b", PLACES), queue.take("a", PLACES)] == [job("1"), job("2"), None]


def test_a_job_waits_for_a_machine_that_did_not_lose_it() -> None:
    queue = Queue()
    queue.add(job("1"), frozenset({"a"}))
    queue.add(job("2"), frozenset())
    assert queue.take("a", PLACES) == job("2")
    assert queue.take("a", PLACES) is None, "b is busy, and better than a"
    assert queue.take("b", PLACES) == job("1")


def test_if_all_lost_it_any_is_taken() -> None:
    queue = Queue()
    queue.add(job("1"), PLACES)
    assert queue.take("a", PLACES) == job("1")


def test_a_job_that_is_removed_is_not_done() -> None:
    queue = Queue()
    queue.add(job("1"), frozenset())
    queue.remove("1")
    assert queue.take("a", PLACES) is None
