"""What runs on several machines show: of the training, or only of the machines.

Two runs that differ on one machine, or on machines that are alike in all that may change bits, prove that a training is
nondeterministic. If each machine repeats its own result, the machines differ. A pair on machines that are not alike
proves neither.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from detaudit.model import FlagState, Machine, Verdict
from detaudit.model.reasons import MachinesRunOnce


@dataclass(frozen=True)
class Place:
    """Where a run was done: ``id`` is that of the machine until it restarts, ``relevant`` is what may change bits.

    ``refused`` are the flags that it does not support, ``described`` is the environment of its runs.
    """

    id: str
    host: str = ""
    relevant: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, FlagState] = field(default_factory=dict)
    described: Mapping[str, Any] = field(default_factory=dict)


class Machines:
    """Takes in where each run was done; nothing of it matters as long as all were on one machine."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}

    def add(self, run: int, place: Place | None) -> None:
        """Note where a run was done."""
        if place is not None:
            self._places[run] = place

    def found(self, results: Mapping[int, int]) -> tuple[Machine, ...]:
        """Return the machines in the order of their first runs, ``()`` if there is one; ``results`` are by run."""
        runs: defaultdict[str, list[int]] = defaultdict(list)
        for run, place in sorted(self._places.items()):
            runs[place.id].append(run)
        if len(runs) < 2:
            return ()
        relevant = {one: self._places[numbers[0]].relevant for one, numbers in runs.items()}
        names = {name for facts in relevant.values() for name in facts}
        differing = sorted(name for name in names if len({facts.get(name) for facts in relevant.values()}) > 1)
        kinds = {tuple(sorted(facts.items())): None for facts in relevant.values()}
        return tuple(
            Machine(
                id=place,
                host=self._places[numbers[0]].host,
                kind=list(kinds).index(tuple(sorted(relevant[one].items()))) + 1,
                runs=tuple(numbers),
                results=tuple(sorted({results[run] for run in numbers if run in results})),
                facts={name: relevant[one][name] for name in differing if name in relevant[one]},
            )
            for place, (one, numbers) in enumerate(runs.items(), 1)
        )


def verdict(machines: tuple[Machine, ...], results: Mapping[int, int]) -> tuple[Verdict, MachinesRunOnce | None]:
    """Return what matching or differing runs on these machines show, and why that is nothing.

    ``results`` are the numbers of the results of finished runs, by run.
    """
    if any(len(machine.results) > 1 for machine in machines):
        return Verdict.NONDETERMINISTIC, None
    compared = {machine.id: sum(run in results for run in machine.runs) for machine in machines}
    if len(set(results.values())) == 1:
        kinds = [machine.kind for machine in machines for run in machine.runs if run in results]
        if len(kinds) > len(set(kinds)):
            return Verdict.DETERMINISTIC, None
        return Verdict.INCONCLUSIVE, MachinesRunOnce(machines=tuple(compared))
    pairs = list(_differing(machines))
    once = {one.id for pair in pairs for one in pair if compared[one.id] == 1}
    if any(a.kind == b.kind and not once.isdisjoint((a.id, b.id)) for a, b in pairs):
        return Verdict.NONDETERMINISTIC, None
    if once:
        return Verdict.INCONCLUSIVE, MachinesRunOnce(machines=tuple(sorted(once)))
    return Verdict.MACHINE_DEPENDENT, None


def _differing(machines: tuple[Machine, ...]) -> Iterator[tuple[Machine, Machine]]:
    return ((a, b) for a, b in combinations(machines, 2) if a.results and b.results and a.results != b.results)
