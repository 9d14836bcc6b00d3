"""Starts runs that all begin alike, follows them, and reads what they recorded."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from detaudit.auditor import traces
from detaudit.auditor.follow import Follower
from detaudit.auditor.judge import compared, diverged, judge
from detaudit.auditor.observer import Observer
from detaudit.auditor.outside import Watch
from detaudit.launch import Launcher, RunSpec
from detaudit.launch.carryover import CarryOver
from detaudit.launch.plan import Settings, workspace_for
from detaudit.launch.workspace import Workspaces
from detaudit.model import Run


@dataclass(frozen=True)
class Result:
    """One run, the processes it had, and the streams it is compared by."""

    run: Run
    processes: Sequence[traces.Process]
    streams: Sequence[traces.Stream]


class DivergedError(Exception):
    """A run that was followed has shown that it differs."""


class Runner:
    """Starts the runs of an audit. ``carried`` are the files that one run left for another."""

    def __init__(self, settings: Settings, launcher: Launcher, observer: Observer) -> None:
        self.space = workspace_for(settings)
        self.carried: list[str] = []
        self._settings, self._launcher, self._observer = settings, launcher, observer
        self._carry = None if settings.isolate else CarryOver(settings.cwd, settings.out)

    @property
    def unwatched(self) -> bool:
        """Whether files that one run leaves for the next cannot be seen."""
        return self._carry is not None and not self._carry.watching

    def run(self, number: int, spec: RunSpec, reference: Sequence[traces.Stream] = ()) -> Result:
        """Run ``spec`` to its end, or until it differs from ``reference``, where one is given."""
        self._observer.run_started(number, spec.timeout)
        growing, tail, follower = traces.Growing(spec.live), traces.Tail(), Follower(reference)
        space = self.space.elsewhere(spec.place)

        def tick() -> None:
            differs = False
            for path, raw in growing.new():
                tail.take(raw)
                differs = differs or follower.differs(path, raw)
            self._observer.progress(tail.step, tail.loss)
            if differs:
                raise DivergedError

        started = time.monotonic()
        with space.fresh():
            if self._carry is not None:
                self._carry.before_run()
            watch = self._watch(spec, space)
            try:
                outcome = self._launcher.launch(spec, tick)
            except DivergedError:
                processes = traces.read_run(spec.folder)
                run = diverged(number, spec, processes, time.monotonic() - started)
                return Result(run, processes, compared(spec, processes, ()))
            finally:
                if self._carry is not None:
                    self.carried += self._carry.after_run()
            outside = watch.look(spec.folder)
        processes = traces.read_run(spec.folder)
        run = judge(number, spec, outcome, processes, outside)
        return Result(run, processes, compared(spec, processes, outside.streams))

    def outside(self, spec: RunSpec) -> Sequence[traces.Stream]:
        """Return what a run that is over printed; files that it wrote are no longer what they were."""
        return Watch(self._settings.loss_pattern, [], spec.cwd, self._settings.out).look(spec.folder).streams

    def _watch(self, spec: RunSpec, space: Workspaces) -> Watch:
        settings = self._settings
        paths = [space.inside(path) for path in settings.artifacts]
        return Watch(settings.loss_pattern, paths, spec.cwd, settings.out)
