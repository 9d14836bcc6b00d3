"""Put together which weights a training updated, one by one, and find their names among the tensors of models."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from detaudit.auditor.evidence.event_records import Final, State, WeightsLine
from detaudit.model import as_number
from detaudit.model.weight_sets import WeightKind, WeightSet, WeightValue

Tensor: TypeAlias = tuple[str, tuple[int, ...], str, str]
"""Dtype, shape, digest and sum, as in an event log."""

_Kind: TypeAlias = tuple[str, tuple[int, ...]]


class SetsSoFar:
    """The sets of weights of one training, which grow with its event log; one whose tensors change is a new one."""

    def __init__(self) -> None:
        self._sets: dict[tuple[int, int, tuple[_Kind, ...]], dict[int, tuple[WeightValue, ...]]] = {}

    def take(self, line: WeightsLine) -> None:
        """Add a line."""
        key = line.set, line.count, tuple(tensor[:2] for tensor in line.tensors)
        self._sets.setdefault(key, {})[line.step] = _values(line.tensors)

    def sets(self, final: Final | None, states: Iterable[State]) -> tuple[WeightSet, ...]:
        """Return the sets. Names and final values need the final weights to be those of the sets, one after another."""
        ends, found = self._ends(final), []
        names = _names(final.weights, states) if final and ends else {}
        for (_, count, kinds), steps in self._sets.items():
            end, ends = ends[: len(kinds)], ends[count:]
            known = [names.get(tensor[:3]) for tensor in end] or [None] * len(kinds)
            found.append(
                WeightSet(
                    kinds=tuple(
                        WeightKind(dtype=plain(dtype), shape=shape, name=name)
                        for (dtype, shape), name in zip(kinds, known, strict=True)
                    ),
                    count=count,
                    steps=steps,
                    final=_values(end),
                )
            )
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


def _names(weights: Iterable[Tensor], states: Iterable[State]) -> dict[tuple[str, tuple[int, ...], str], str]:
    """Return the names of the weights that have the same bits as one tensor of all models."""
    held: dict[tuple[str, tuple[int, ...], str], str] = {}
    often = Counter(tensor[:3] for tensor in weights)
    for state in states:
        for _, name, _, dtype, shape, digest in state.tensors:
            held[dtype, shape, digest] = name
            often[dtype, shape, digest] += 1
    return {kind: name for kind, name in held.items() if often[kind] == 2}
