"""Judge the results of an operation that was repeated under several conditions; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from detaudit.model import MOST_RESULTS, Condition, ModeEffect, ReplayedPass, ReplayVerdict, Series


@dataclass(frozen=True)
class Repeated:
    """The results of one condition, or the ``error`` of the first repeat.

    ``counts`` says for each byte that memory was filled with, in hexadecimal, how often each digest came out; if it was
    left as it is, for ``""``.
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    threads: int = 0
    error: str = ""

    @property
    def results(self) -> set[str]:
        """All digests that came out."""
        return {digest for counts in self.counts.values() for digest in counts}

    @property
    def varies(self) -> bool:
        """Whether two results differ although memory was filled with the same byte."""
        return any(len(counts) > 1 for counts in self.counts.values())


_NOTHING = Repeated()


def judged(found: Mapping[Condition, Repeated]) -> ReplayedPass:
    """Return what the results under each condition show."""
    verdict = _verdict(found)
    series = [one for condition in Condition if condition in found for one in _series(condition, found[condition])]
    return ReplayedPass(verdict=verdict, mode=_mode(verdict, found), series=tuple(series))


def _verdict(found: Mapping[Condition, Repeated]) -> ReplayVerdict:
    """Return the verdict.

    Memory that is filled with the same byte is the same in each repeat, so what differs in spite of it is a race, or
    with one thread, none. What differs only if the byte does, in one process, is read from that memory.
    """
    plain, loaded, filled, one = (
        found.get(condition, _NOTHING)
        for condition in (Condition.AS_RECORDED, Condition.LOADED, Condition.FILLED, Condition.ONE_THREAD)
    )
    if not plain.results:
        return ReplayVerdict.INCONCLUSIVE
    if one.varies:
        return ReplayVerdict.VARIES
    if filled.varies:
        return ReplayVerdict.RACES
    if len(filled.results) > 1 or len(one.results) > 1:
        return ReplayVerdict.MEMORY
    if plain.varies or loaded.varies:
        return ReplayVerdict.RACES
    same = len(plain.results | loaded.results | filled.results) == 1
    return ReplayVerdict.DETERMINISTIC if same else ReplayVerdict.PER_PROCESS


def _mode(verdict: ReplayVerdict, found: Mapping[Condition, Repeated]) -> ModeEffect | None:
    mode = found.get(Condition.DETERMINISTIC)
    if mode is None or verdict is ReplayVerdict.INCONCLUSIVE:
        return None
    if mode.error:
        return ModeEffect.RAISES
    if verdict is ReplayVerdict.PER_PROCESS:  # one process with this mode shows nothing
        return None
    if len(mode.results) > 1:
        return ModeEffect.NO_EFFECT
    return ModeEffect.FIXES if mode.results and verdict is not ReplayVerdict.DETERMINISTIC else None


def _series(condition: Condition, found: Repeated) -> Iterator[Series]:
    for fill, results in (found.counts or {"": {}}).items():
        counts = sorted(results.values(), reverse=True)
        yield Series(
            condition=condition,
            fill=fill,
            threads=found.threads,
            repeats=sum(counts),
            distinct=len(counts),
            counts=tuple(counts[:MOST_RESULTS]),
            error=found.error,
        )
