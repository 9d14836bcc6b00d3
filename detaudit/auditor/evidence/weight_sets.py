"""Put together which weights a training updated, one by one."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from detaudit.auditor.evidence.event_records import Final, WeightsLine
from detaudit.model import as_number
from detaudit.model.weight_sets import WeightKind, WeightSet, WeightValue

Tensor: TypeAlias = tuple[str, tuple[int, ...], str, str]
"""Dtype, shape, digest and sum, as in an event log."""

_Kind: TypeAlias = tuple[str, tuple[int, ...]]


class SetsSoFar:
    """The sets of weights of one training, which grow with its event log; one whose tensors change is a new one."""

    def __init__(self) -> None:
        self._sets: dict[tuple[int, int, tuple[_Kind, ...]], list[WeightsLine]] = {}

    def take(self, line: WeightsLine) -> None:
        """Add a line."""
        self._sets.setdefault((line.set, line.count, tuple(tensor[:2] for tensor in line.tensors)), []).append(line)

    def sets(self, final: Final | None) -> tuple[WeightSet, ...]:
        """Return the sets, with their values at the end if the final weights are theirs, one set after another."""
        ends, found = self._ends(final), []
        for (_, count, kinds), lines in self._sets.items():
            names = dict(enumerate(lines[0].names))
            found.append(
                WeightSet(
                    kinds=tuple(
                        WeightKind(dtype=plain(dtype), shape=shape, name=names.get(place))
                        for place, (dtype, shape) in enumerate(kinds)
                    ),
                    count=count,
                    steps={line.step: _values(line.tensors) for line in lines},
                    final=_values(ends[: len(kinds)]),
                )
            )
            ends = ends[count:]
        return tuple(found)

    def _ends(self, final: Final | None) -> Sequence[Tensor]:
        """Return the final weights if they are those of the sets, in their order, else nothing."""
        rest = final.weights if final else ()
        for _, count, kinds in self._sets:
            if tuple(tensor[:2] for tensor in rest[: len(kinds)]) != kinds:
                return ()
            rest = rest[count:]
        return final.weights if final and not rest else ()


def plain(dtype: str) -> str:
    """Return a type as all frameworks write it: ``float32`` for ``torch.float32``."""
    return dtype.replace("torch.", "")


def _values(tensors: Iterable[Tensor]) -> tuple[WeightValue, ...]:
    return tuple((digest, as_number(float.fromhex(total))) for _, _, digest, total in tensors)
