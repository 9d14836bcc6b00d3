"""Follow a run while it goes on, and end it once it need not."""

import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.evidence import growing_logs
from detaudit.auditor.judge.abreast import Abreast
from detaudit.auditor.judge.follow import Follower
from detaudit.auditor.runs.observer import Observer
from detaudit.launch import EnoughError, RunSpec
from detaudit.launch.until import Until
from detaudit.model import RunError, RunRecord
from detaudit.model.problems import EndedAfterStep, EndedAtDifference

SETTLED_S = 1.0
"""Seconds to wait for other processes that may train too, if it is not known how many do."""

LEAST_S = 2.0
"""Seconds of training whose steps say how fast it is."""


@dataclass(frozen=True)
class Limits:
    """When a run need not go on: it differs from ``reference``, or it got far enough.

    With ``same_length``, one that differs goes on to where the reference was ended. It is far enough once
    ``trained_by`` processes have done ``last_step``. With ``until``, it is once all processes that train have done its
    step, or one step after its seconds; ``trained_by`` is how many did in an earlier run, 0 if there was none.
    ``abreast`` compares it with runs beside it, and says after which step it can be ended.
    """

    reference: RunRecord | None = None
    last_step: int | None = None
    until: Until | None = None
    trained_by: int = 1
    same_length: bool = False
    abreast: Abreast | None = None


WHOLE = Limits()
"""A run goes to its end."""


class Pace:
    """How fast a run does its steps, as far as looks from time to time show."""

    def __init__(self) -> None:
        self._first, self._last = (0, 0.0), (0, 0.0)

    def note(self, step: int) -> None:
        """Note the last step that was recorded by now."""
        if step > self._last[0]:
            self._last = step, time.monotonic()
            self._first = self._first if self._first[0] else self._last

    @property
    def seconds(self) -> float:
        """The seconds since the first step was seen, 0 if none was."""
        return time.monotonic() - self._first[1] if self._first[0] else 0.0

    @property
    def step_s(self) -> float | None:
        """The seconds that a step took, None if steps were seen for less than LEAST_S."""
        steps, seconds = (last - first for first, last in zip(self._first, self._last, strict=True))
        return seconds / steps if steps and seconds >= LEAST_S else None


class Followed:
    """Looks at each tick at what a run has written; raises EnoughError if it need not go on, and says why."""

    def __init__(self, spec: RunSpec, limits: Limits, observer: Observer, number: int = 1) -> None:
        self._growing = growing_logs.Growing(spec.live)
        self._tails: defaultdict[Path, growing_logs.Tail] = defaultdict(growing_logs.Tail)
        self._follower, self._limits, self._observer = Follower(limits.reference), limits, observer
        self._started, self._since, self._number = time.monotonic(), 0.0, number
        self._pace = Pace()
        self.until = limits.until
        self.differs = False
        end = limits.last_step or (limits.until.step if limits.until else None)
        if end is not None:
            observer.last_step(end)
        self.enough: RunError | None = None

    def __call__(self) -> None:
        """Look once."""
        differs = False
        for path, raw in self._growing.new():
            self._tails[path].take(raw)
            differs = differs or self._follower.differs(path, raw)
            if self._limits.abreast is not None:
                self._limits.abreast.take(self._number, path, raw)
        furthest = max(self._tails.values(), key=lambda tail: tail.step, default=growing_logs.Tail())
        self._observer.progress(
            furthest.step or max((tail.calls for tail in self._tails.values()), default=0), furthest.loss
        )
        self._pace.note(furthest.step)
        if differs and not self.differs:
            self._note_difference(furthest.step)
        if self.differs and not self._limits.same_length:
            self.enough = EndedAtDifference()
        elif self._differs_abreast(furthest.trained) or self._far_enough():
            self.enough = EndedAfterStep(step=furthest.step)
        if self.enough is not None:
            raise EnoughError

    @property
    def _current(self) -> list[growing_logs.Tail]:
        """How far processes got, without the ranks that were started again since."""
        last = max((tail.attempt or 0 for tail in self._tails.values()), default=0)
        return [tail for tail in self._tails.values() if tail.attempt in (None, last)]

    @property
    def step_s(self) -> float | None:
        """The seconds that a step took, None if too few were seen to say."""
        return self._pace.step_s

    def _note_difference(self, step: int) -> None:
        self.differs = True
        self._observer.differs(step)
        through = self._limits.reference.through if self._limits.reference else None
        if self._limits.same_length and through is not None:
            self.until = Until(step=through)
            self._observer.last_step(through)

    def _differs_abreast(self, step: int) -> bool:
        """Return whether runs at once differ, and this one did that step; then it is ended there."""
        abreast = self._limits.abreast
        if abreast is None or abreast.step is None:
            return False
        if step < abreast.step or self._pace.seconds < abreast.after_s:
            return False
        self.until = Until(step=abreast.step)
        self._observer.differs(abreast.step)
        return True

    def _far_enough(self) -> bool:
        until, step = self.until, self._limits.last_step
        if until is not None:
            if until.in_training:
                return self._pace.seconds >= (until.seconds or 0.0) and self._settled(2)
            waited = time.monotonic() - self._started >= (until.seconds or 0.0)
            return waited and self._settled(until.step or 1)
        if step is None or any(tail.attempt for tail in self._current):  # what came before may count from other steps
            return False
        return sum(tail.step >= step for tail in self._current) >= self._limits.trained_by

    def _settled(self, step: int) -> bool:
        """Return whether all processes that train have done a step, and no other began to within a second."""
        training = [tail for tail in self._current if tail.trained]
        far = [tail for tail in training if tail.trained >= step]
        expected = self._limits.trained_by or max((tail.world for tail in training), default=1)
        if not far or len(training) < expected or any(tail.may_train for tail in training if tail not in far):
            self._since = 0.0
            return False
        now = time.monotonic()
        self._since = self._since or now
        others = any(tail.may_train and not tail.trained for tail in self._current)
        return bool(self._limits.trained_by) or not others or now - self._since >= SETTLED_S
