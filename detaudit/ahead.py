"""Runs ahead: those that are asked for next are under way while the results of the runs before are looked at."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from detaudit.launch import Launcher
from detaudit.launch.processes import shielded
from detaudit.launch.slots import Jobs, Pool
from detaudit.runner import Result, SideBySide


class Ahead:
    """Hands out the results of runs one by one, in the order in which they are asked for.

    Whoever asks sees what runs one after another show: a run ahead that is not asked for is ended, and its folder is
    removed. The first run of all goes alone, so that it shows whether others may go beside it. Runs are launched with
    ``pool``.
    """

    def __init__(self, launcher: Launcher, jobs: Jobs) -> None:
        self.pool: Pool[Result] = Pool(launcher, threads=len(jobs.slots) > 1)
        self._jobs = jobs
        self._threads: int | None = None
        self._next: tuple[object, int] | None = None
        self._runs: SideBySide | None = None
        self._results: Iterator[Result] = iter(())
        self._folder: Callable[[int], Path]

    def result(
        self, question: object, number: int, more: int, run: Callable[[int], Result], folder: Callable[[int], Path]
    ) -> Result:
        """Return the result of the run with a number, which is done by now or by ``run``.

        So many ``more`` are asked for next if this one changes nothing: the next numbers, with an equal ``question``.
        ``folder`` has the results of the run with a number. Raises what ``run`` raises; then no run is under way.
        """
        try:
            result = next(self._results, None) if self._next == (question, number) else None
            if result is None:
                self.end()
                last = number if self._threads is None else number + more
                self._folder = folder
                self._runs = SideBySide(self.pool, self._jobs, run, first=number, threads=self._threads or 0)
                self._results = self._runs.results(lambda: last)
                result = next(self._results)
        except BaseException:
            self.end(keep=number)
            raise
        self._next = question, number + 1
        self._threads = max(self._threads or 0, result.threads)
        return result

    def end(self, keep: int | None = None) -> None:
        """End the runs that were not asked for, and remove their folders, but for that of one number."""
        runs, self._runs, self._next, self._results = self._runs, None, None, iter(())
        with shielded():
            for number, _ in runs.stop() if runs is not None else ():
                if number != keep:
                    shutil.rmtree(self._folder(number), ignore_errors=True)
