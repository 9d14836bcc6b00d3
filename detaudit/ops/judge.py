"""Judge what the processes of a scan returned: which operations differ, why, and what the switch does."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from detaudit.judge.tensors import difference
from detaudit.model.difference import TensorDifference
from detaudit.model.operations import Direction, OpCause, OpResult, SwitchEffect
from detaudit.ops.answers import MANY_THREADS, ONE_THREAD, SWITCH, USUAL, Case, Item, Kept

PHASES = (USUAL, MANY_THREADS, ONE_THREAD)
"""Those in each of which all results should match."""


@dataclass
class Evidence:
    """All results of one direction of a sample.

    Digests with their counts, by phase; of USUAL by process too, and of ONE_THREAD by what memory was filled with.
    """

    case: Case
    results: dict[str, dict[str, int]] = field(default_factory=dict)
    processes: list[Mapping[str, int]] = field(default_factory=list)
    filled: dict[int, set[str]] = field(default_factory=dict)
    error: str = ""
    kept: list[Kept] = field(default_factory=list)

    def add(self, case: Case, fill: int) -> None:
        """Add the phases of one process."""
        if case.inputs != self.case.inputs:
            return
        for name, phase in case.phases.items():
            if name == SWITCH and phase.error:
                self.error = phase.error
            counts = self.results.setdefault(name, {})
            for digest, count in phase.results.items():
                counts[digest] = counts.get(digest, 0) + count
            if name == USUAL and phase.results:
                self.processes.append(phase.results)
            if name == ONE_THREAD:
                self.filled.setdefault(fill, set()).update(phase.results)
        self.kept += filter(None, [case.kept])

    @property
    def differs(self) -> bool:
        """Whether results differ that should match: with the same threads, or with one thread."""
        return any(len(self.results.get(name, {})) > 1 for name in PHASES)

    @property
    def thread_dependent(self) -> bool:
        """Whether results match, and are different with one thread."""
        usual, one = self.results.get(USUAL, {}), self.results.get(ONE_THREAD, {})
        return not self.differs and bool(usual and one) and usual.keys() != one.keys()

    @property
    def cause(self) -> OpCause | None:
        """Why results differ, None if they match."""
        if not self.differs:
            return None
        if any(len(digests) > 1 for digests in self.filled.values()):
            return OpCause.UNEXPLAINED
        if len(set().union(*self.filled.values())) > 1:
            return OpCause.MEMORY
        return OpCause.RACE if self.filled else OpCause.UNEXPLAINED

    @property
    def switch(self) -> SwitchEffect:
        """What the switch does for it."""
        if self.error:
            return SwitchEffect.RAISES
        counts = self.results.get(SWITCH)
        if not counts:
            return SwitchEffect.UNTRIED
        return SwitchEffect.NO_EFFECT if len(counts) > 1 else SwitchEffect.FIXES

    @property
    def _differing_processes(self) -> bool:
        return len(self.results.get(USUAL, {})) > 1 and all(len(process) == 1 for process in self.processes)

    def result(self) -> OpResult:
        """Return what reports say of it."""
        usual = max((self.results.get(name, {}) for name in PHASES), key=len)
        part, apart = _farthest(self.kept)
        return OpResult(
            op=self.case.op,
            dtype=self.case.dtype,
            sample=self.case.sample,
            direction=Direction(self.case.direction),
            shapes=self.case.shapes,
            repeats=sum(usual.values()),
            distinct=len(usual),
            differing_processes=self._differing_processes,
            cause=self.cause,
            switch=self.switch,
            error=self.error,
            part=part,
            difference=apart,
        )


def collected(passes: Iterable[tuple[Iterable[Case], int]]) -> list[Evidence]:
    """Return the evidence of each case, from the cases of each pass and what memory was filled with in it."""
    evidence: dict[tuple[str, str, int, str], Evidence] = {}
    for cases, fill in passes:
        for case in cases:
            evidence.setdefault(case.key, Evidence(case)).add(case, fill)
    return list(evidence.values())


def differing(evidence: Iterable[Evidence]) -> set[Item]:
    """Return the items that differ in a direction of a sample."""
    return {(one.case.op, one.case.dtype) for one in evidence if one.differs}


def _farthest(kept: Iterable[Kept]) -> tuple[str, TensorDifference | None]:
    """Return the part of results that differs and how: the one with the most elements that differ."""
    differences = [(one.part, apart) for one in kept for apart in _differences(one)]
    return max(differences, key=lambda one: one[1].mismatched, default=("", None))


def _differences(kept: Kept) -> Iterator[TensorDifference]:
    try:
        first, *others = [Path(file).read_bytes() for file in kept.files]
        for other in others:
            apart = difference(kept.dtype, kept.shape, first, other)
            if apart is not None:
                yield apart
    except (OSError, ValueError):  # removed, or written in part
        return
