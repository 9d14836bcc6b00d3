"""Keep what was measured, so that an interrupted measurement can be resumed."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.corpus.audit_corpus import ROOT, state_of_detaudit
from tests.planted.audits import Outcome
from tests.planted.plants import Named, Plant

_MEASURING = ("plants", "noted", "trainings", "with_tape", "without_framework")


def _state() -> str:
    """Return a digest of detaudit and of what is trained: results of another state do not count."""
    here = Path(__file__).parent
    text = state_of_detaudit() + "".join((here / f"{name}.py").read_text() for name in _MEASURING)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Kept:
    """Finished audits, one JSON line each: the part of the measurement, the number of the audit, and its result."""

    def __init__(self) -> None:
        self._path = ROOT / ".detaudit" / f"planted-{_state()}.jsonl"
        self._path.parent.mkdir(exist_ok=True)

    def _lines(self, part: str) -> Iterator[list[Any]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return (line[1:] for line in map(json.loads, lines) if line[0] == part)

    def add(self, part: str, number: int, result: Any) -> None:
        """Keep one more."""
        with self._path.open("a") as file:
            print(json.dumps([part, number, result]), file=file)

    def numbers(self, part: str) -> set[int]:
        """Return the numbers of the audits that are done."""
        return {number for number, _ in self._lines(part)}

    def count(self, part: str) -> int:
        """Return the number of plants, or of audits without any, that are done."""
        results = self.results(part)
        return sum(len(one) if isinstance(one[0], list) else 1 for one in results)

    def outcomes(self, part: str) -> list[Outcome]:
        """Return the outcomes of all plants."""
        return [_outcome(one) for _, result in self._lines(part) for one in result]

    def results(self, part: str) -> list[Any]:
        """Return all results as they were kept."""
        return [result for _, result in self._lines(part)]


def _outcome(fields: list[Any]) -> Outcome:
    training, world, plant, *names = fields
    first, second = (Named(*one) if one else None for one in names)
    return Outcome(training, world, Plant(*plant), first, second)
