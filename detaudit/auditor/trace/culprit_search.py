"""Search for the culprit in instrumented runs: in the user's code, among the operations, between modules or stages."""

from collections.abc import Sequence
from pathlib import Path

from detaudit.auditor.trace import bounds, culprit, python_culprit
from detaudit.auditor.trace.culprit_line import Known
from detaudit.auditor.trace.instrumented import InstrumentedRuns, RunPair, Window
from detaudit.auditor.trace.op_diff import OpFinding
from detaudit.auditor.trace.suspects import suspects
from detaudit.model import Culprit, Difference, Group, How, Narrowed, TensorPair


class CulpritSearch:
    """Starts the instrumented runs that a search needs; ``dump`` is where to save the differing tensor, if anywhere."""

    def __init__(self, instrumented: InstrumentedRuns, known: Known, dump: Path | None) -> None:
        self._instrumented, self._known, self._dump = instrumented, known, dump

    def leftover_reader(self, files: Sequence[str], differs: Difference) -> Culprit | None:
        """Return the line at which a run read one of the ``files`` that an earlier one wrote, None if none did.

        These runs go as far as those without instrumentation: one that is ended earlier may leave nothing to the next.
        """
        pair = self._instrumented.pair("lines", self._instrumented.every_step) if files else None
        return python_culprit.leftover_reader(pair, files, differs, self._known) if pair else None

    def in_python(self, found: OpFinding | None, differs: Difference, window: Window) -> Culprit | None:
        """Return the culprit if it lies before the framework, None if ``found`` explains enough or more."""
        source = python_culprit.known_source(found, differs, self._known)
        if source is not None:
            return culprit.of_source(source, differs, self._known)
        steps = python_culprit.window_of(found, differs, self._known, window)
        pair = self._instrumented.pair("lines", steps) if steps else None
        return python_culprit.explain(pair, found, differs, self._known) if pair else None

    def named(self, found: OpFinding | None, pair: RunPair, window: Window) -> Culprit | None:
        """Return the culprit behind the first operation that differs, None if neither it nor a line is known."""
        in_python = self.in_python(found, pair.differs, window)
        if in_python is not None or found is None:
            return in_python
        wants = found.how is How.OUTPUT and (found.nth is not None or found.op.key)
        tensor = self._tensor(found, pair, window) if wants else None
        made = culprit.of_operation(found, pair.differs, self._known, tensor=tensor)
        if not found.brought:
            return made
        listed = [op for op in self._instrumented.operations("ops") if op.listed and op.file]
        lines = suspects(listed, self._known.code, self._device)
        return culprit.of_pipeline(made, lines, listed[0].op, self._known) if lines else made

    def among_racing(self) -> Culprit | None:
        """Record only operations that are known to race, at every step: that hides less, and finds what is rare."""
        pair = self._instrumented.pair("racing", self._instrumented.every_step)
        found = pair.first_operation() if pair else None
        if pair is None or found is None or found.how not in (How.OUTPUT, How.RNG_STATE):
            return None
        return culprit.of_operation(found, pair.differs, self._known)

    def narrowed(self, window: Window, group: Group) -> Narrowed | None:
        """Return the best answer of coarser levels if no operation differs: between two modules, else two stages."""
        pair = self._instrumented.pair("modules", window)
        ops = (op for level in ("ops", "modules") for op in self._instrumented.operations(level))
        may_race = suspects(ops, self._known.code, self._device)
        found = pair.first_operation() if pair else None
        if pair is not None and found is not None:
            return bounds.between_modules(found, pair, may_race)
        first = group.first_difference
        return bounds.between_stages(first, group.stages, may_race) if first is not None else None

    @property
    def _device(self) -> str:
        return next(iter(self._known.fixes.devices), "cpu")

    def _tensor(self, found: OpFinding, pair: RunPair, window: Window) -> TensorPair | None:
        role = f"out{found.place}"
        return self._instrumented.tensors(window, found.op, found.nth, role, pair.differs.rank, self._dump)
