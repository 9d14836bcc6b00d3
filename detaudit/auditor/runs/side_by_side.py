"""Do the runs of a group one after another or several at once, and take their results in the order of their numbers."""

from collections.abc import Callable, Iterator
from functools import partial

from detaudit.auditor.runs.runner import Result
from detaudit.launch.pool import Pool
from detaudit.launch.slots import Jobs


class SideBySide:
    """The runs of a group, each in its slot: ``run`` does the one with a number, and launches it with ``pool``.

    A block with it leaves no run under way. If ``first_alone``, the others wait for what the first one shows.
    """

    def __init__(self, pool: Pool[Result], jobs: Jobs, run: Callable[[int], Result], *, first_alone: bool) -> None:
        self._pool, self._jobs, self._run = pool, jobs, run
        self._at_once = 1 if first_alone or jobs.measured else len(jobs.slots)
        self._under_way: set[int] = set()
        self._done: dict[int, Result] = {}

    def __enter__(self) -> "SideBySide":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.cancel()

    def results(self, runs: Callable[[], int]) -> Iterator[Result]:
        """Yield the results of ``runs()`` in order, each once it and all before it are there."""
        start = number = 1
        while number <= runs():
            while number not in self._done:
                while start <= runs() and self._may_start(start):
                    self._under_way.add(start)
                    self._pool.submit(start, partial(self._run, start))
                    start += 1
                finished, result = self._pool.next()
                self._done[finished] = result
                self._under_way.discard(finished)
            result = self._done.pop(number)
            if number == 1:
                self._at_once = self._jobs.at_once(result.threads)
            number += 1
            yield result

    def stop(self) -> Iterator[tuple[int, Result | None]]:
        """End all runs, and yield in order those whose results were not yielded: the result, None if it was ended."""
        found: dict[int, Result | None] = dict.fromkeys(self._under_way)
        found |= {**self._done, **dict(self._pool.cancel())}
        self._under_way, self._done = set(), {}
        yield from sorted(found.items())

    def _may_start(self, number: int) -> bool:
        """Return whether a run may begin now: its slot is free, and so are as many CPUs as it needs."""
        taken = {self._jobs.place(other) for other in self._under_way}
        return len(self._under_way) < self._at_once and self._jobs.place(number) not in taken
