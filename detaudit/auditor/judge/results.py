"""Which runs of a group have the same results, as far as they went."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.judge import comparer, pairing
from detaudit.model import Difference, OutputDifference, OutputKind, Outputs, Run, RunRecord, Stage, Status
from detaudit.model.outputs import EXIT_STATUS, Compare
from detaudit.outputs.compare import deciding, differences


class _Ended(NamedTuple):
    """How a run ended, and what left it."""

    run: int
    exit_code: int | None
    outputs: Outputs | None


class Results:
    """Compares each run with the first of those that match and got furthest; ``record`` is its recording.

    ``output_differences`` are in what left a run and the reference, whether they decide or not.
    """

    def __init__(self) -> None:
        self.record: RunRecord | None = None
        self.generators: tuple[str, ...] = ()
        self.output_differences: list[OutputDifference] = []
        self._found: list[str] = []
        self._runs: list[int] = []
        self._outputs: dict[str, list[Outputs]] = {}
        self._compared: list[tuple[Outputs, Outputs, tuple[OutputDifference, ...]]] = []
        self._unproven: list[_Ended] = []
        self._proven: _Ended | None = None
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
        """The number of each run's result, from 1, in the order of the runs."""
        in_order = dict(sorted(self.by_run.items()))
        order = {result: number for number, result in enumerate(dict.fromkeys(in_order.values()), 1)}
        return {run: order[result] for run, result in in_order.items()}

    @property
    def outputs_compared(self) -> bool:
        """Whether all that left the runs is compared, of those that went to their end."""
        outputs = self.record.outputs if self.record is not None else None
        return outputs is not None and outputs.rules.compare is Compare.RESULT

    def add(self, run: Run, processes: Sequence[Process], record: RunRecord, shown: str) -> Run:
        """Take in a run, and return it with its first difference. ``shown`` is its result if nothing was recorded."""
        self._compared.clear()
        if self.record is None:
            self.record, self._processes = record, processes
        if self._proven is None or self._proven.outputs is None:
            self._proven = _ended(run, record.outputs)
        result = self._identity(record) if record.parts else shown
        self._found.append(result)
        self._runs.append(run.id)
        self._note_outputs(run.id, self.record.outputs, record.outputs)
        if result == self._found[0]:
            self._take_further(run, processes, record)
            return self._after_unproven(run, record.outputs)
        self.generators = self.generators or comparer.differing_generators(self._processes, processes)
        return replace(run, first_difference=comparer.first_difference(self.record, record), reference=self._reference)

    def add_unproven(self, run: Run, outputs: Outputs | None) -> Run:
        """Take in a run that recorded no training, or failed: it proves no equality, but may prove a difference.

        Its exit status and what left it are compared with those of the first run. Return it with what differs first.
        """
        self._compared.clear()
        new = _ended(run, outputs)
        first = self._proven or (self._unproven[0] if self._unproven else None)
        self._unproven.append(new)
        return self._between(first, new, run) if first is not None else run

    def _after_unproven(self, run: Run, outputs: Outputs | None) -> Run:
        """Compare a run with the first that proves nothing, if it is the first that does."""
        if not self._unproven or len(self._found) > 1:
            return run
        return self._between(self._unproven[0], _ended(run, outputs), run)

    def _between(self, first: "_Ended", new: "_Ended", run: Run) -> Run:
        if first.exit_code is None or new.exit_code is None:
            return run
        ours, theirs = first.outputs, new.outputs
        compare = {one.rules.compare for one in (ours, theirs) if one is not None}
        difference = None if Compare.TRAINING in compare else _exit_status(first.exit_code, new.exit_code)
        succeeded = not first.exit_code and not new.exit_code
        if difference is None and succeeded and ours is not None and theirs is not None:
            self._note_outputs(run.id, ours, theirs, first.run)
            difference = comparer.of_output(deciding(self._differences(ours, theirs)))
        if difference is None:
            return run
        for one in (first, new):
            if one.run not in self._runs:
                self._runs.append(one.run)
                self._found.append(self._of_outputs(f"{Stage.EXIT} {one.exit_code}", one.outputs))
        return replace(run, first_difference=difference, reference=first.run)

    def _note_outputs(self, run: int, ours: Outputs | None, theirs: Outputs | None, reference: int = 0) -> None:
        if ours is None or theirs is None or ours is theirs:
            return
        known = {(one.path, one.kind) for one in self.output_differences}
        runs = (reference or self._reference or self._runs[0], run)
        self.output_differences += [
            replace(one, runs=runs) for one in self._differences(ours, theirs) if (one.path, one.kind) not in known
        ]

    def _differences(self, ours: Outputs, theirs: Outputs) -> tuple[OutputDifference, ...]:
        """Return in what the outputs of the run that is taken in differ from others, which is only compared once."""
        for a, b, known in self._compared:
            if a is ours and b is theirs:
                return known
        found = differences(ours, theirs)
        self._compared.append((ours, theirs, found))
        return found

    def _identity(self, record: RunRecord) -> str:
        """Return a text that is equal for runs with the same results, as far as they were run."""
        ours = self.record
        cut = bool(self._found) and ours is not None and (ours.through, record.through) != (None, None)
        if cut and ours is not None and comparer.first_difference(ours, record) is None:
            return self._found[0]
        return self._of_outputs(pairing.identity(record), record.outputs)

    def _of_outputs(self, trained: str, outputs: Outputs | None) -> str:
        """Return a text that is equal for runs with equal trainings if nothing that decides differs in their outputs.

        A run is like the first one of which that is so.
        """
        if outputs is None:
            return trained
        kinds = self._outputs.setdefault(trained, [])
        alike = (n for n, one in enumerate(kinds) if deciding(self._differences(one, outputs)) is None)
        number = next(alike, len(kinds))
        if number == len(kinds):
            kinds.append(outputs)
        return f"{trained} {number}"

    def _take_further(self, run: Run, processes: Sequence[Process], record: RunRecord) -> None:
        ours = self.record.through if self.record is not None else None
        if ours is None or (record.through is not None and record.through <= ours):
            return
        self.record, self._processes, self._reference = record, processes, run.id
        matching, identity = self._found[0], self._of_outputs(pairing.identity(record), record.outputs)
        self._found = [identity if result == matching else result for result in self._found]


def _ended(run: Run, outputs: Outputs | None) -> _Ended:
    """Return how a run ended; of one that was ended early, its exit status says nothing."""
    early = run.status in (Status.ENDED, Status.STOPPED)
    return _Ended(run.id, None if early else run.exit_code, outputs)


def _exit_status(a: int, b: int) -> Difference | None:
    """Return that two runs ended themselves with different exit statuses; None if not, or if one was killed."""
    if a == b or a < 0 or b < 0:
        return None
    found = OutputDifference(path=EXIT_STATUS, kind=OutputKind.VALUE, values=(str(a), str(b)))
    return Difference(rank=0, step=0, stage=Stage.EXIT, site=EXIT_STATUS, output=found)
