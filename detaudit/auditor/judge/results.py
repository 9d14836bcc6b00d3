"""Which runs of a group have the same results, as far as they went."""

from collections.abc import Sequence

from msgspec.structs import replace

from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.judge import comparer, pairing
from detaudit.model import Run, RunRecord


class Results:
    """Compares each run with the first of those that match and got furthest; ``record`` is its recording."""

    def __init__(self) -> None:
        self.record: RunRecord | None = None
        self.generators: tuple[str, ...] = ()
        self._found: list[str] = []
        self._runs: list[int] = []
        self._processes: Sequence[Process] = ()
        self._reference: int | None = None

    def __len__(self) -> int:
        return len(self._found)

    @property
    def distinct(self) -> int:
        """How many different results there are."""
        return len(set(self._found))

    @property
    def by_run(self) -> dict[int, str]:
        """A text for each run by its number, equal for runs with the same results."""
        return dict(zip(self._runs, self._found, strict=True))

    @property
    def numbers(self) -> dict[int, int]:
        """The number of each run's result, from 1, in the order in which they came up."""
        order = {result: number for number, result in enumerate(dict.fromkeys(self._found), 1)}
        return {run: order[result] for run, result in zip(self._runs, self._found, strict=True)}

    def add(self, run: Run, processes: Sequence[Process], record: RunRecord, shown: str) -> Run:
        """Take in a run, and return it with its first difference. ``shown`` is its result if nothing was recorded."""
        if self.record is None:
            self.record, self._processes = record, processes
        result = self._identity(record) if record.parts else shown
        self._found.append(result)
        self._runs.append(run.id)
        if result == self._found[0]:
            self._take_further(run, processes, record)
            return run
        self.generators = self.generators or comparer.differing_generators(self._processes, processes)
        return replace(run, first_difference=comparer.first_difference(self.record, record), reference=self._reference)

    def _identity(self, record: RunRecord) -> str:
        """Return a text that is equal for runs with the same results, as far as they were run."""
        ours = self.record
        cut = bool(self._found) and ours is not None and (ours.through, record.through) != (None, None)
        if cut and ours is not None and comparer.first_difference(ours, record) is None:
            return self._found[0]
        return pairing.identity(record)

    def _take_further(self, run: Run, processes: Sequence[Process], record: RunRecord) -> None:
        ours = self.record.through if self.record is not None else None
        if ours is None or (record.through is not None and record.through <= ours):
            return
        self.record, self._processes, self._reference = record, processes, run.id
        matching, identity = self._found[0], pairing.identity(record)
        self._found = [identity if result == matching else result for result in self._found]
