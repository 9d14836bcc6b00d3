"""First verdict first: let each run go several times as far as the last, before any goes to its end.

Two runs that differ early are known to within seconds to minutes, however long the training takes. If no runs differ,
that costs ten seconds in a training of less than a minute, and four thirds of one training at most.
"""

from detaudit.launch.until import Until
from detaudit.model import Run

FIRST_S = 10.0
"""The first run is ended after so many seconds of training; one that is over before goes to its end."""

SECOND = 6
"""How many times as far the second run goes: about a minute, so that shorter trainings are cut short once."""

FACTOR = 4
"""How many times as far as the last each later one goes."""


class Ladder:
    """Decides how far the next run goes, and when enough ``runs`` went equally far.

    Without ``climbs``, all go to their ends. They do not go further either once two differ. ``follows`` says whether
    the next run should be compared while it goes on.
    """

    def __init__(self, runs: int, *, climbs: bool) -> None:
        self._wanted, self._counted, self._done = runs, 0, 0
        self._first: int | None = None
        self._through: int | None = None
        self.climbs, self.follows = climbs and runs > 1, True

    @property
    def more(self) -> bool:
        """Whether another run is needed."""
        return self._counted < self._wanted

    @property
    def total(self) -> int:
        """The number of all runs, those before the last step was known included."""
        return self._done + self._wanted - self._counted

    @property
    def until(self) -> Until | None:
        """Where to end the next run, None if at its end."""
        if not self.climbs:
            return Until(step=self._through) if self._through else None
        if self._through is None:
            return Until(seconds=FIRST_S, in_training=True)
        return Until(step=(SECOND if self._through == self._first else FACTOR) * self._through)

    def take(self, run: Run, *, differs: bool) -> None:
        """Take in a run; ``differs`` says whether any two runs differ by now."""
        self._done += 1
        if not self.climbs:
            self._counted += 1
        elif differs:
            self.climbs, self._counted = False, 2  # this one, and the one that it differs from
        elif not run.finished:
            self._counted += 1
        elif run.through is None:
            self.climbs, self._through = False, None
            self._counted += 1
        else:
            # One that was ended for a difference that is none must not be ended there again.
            self.follows = run.through > (self._through or 0)
            self._through = max(run.through, self._through or 0)
            self._first = self._first or self._through
