"""What is said of output that was written without knowledge of the rules, and of which it is known what each value is.

Each line of ``printed.jsonl`` and ``saved.jsonl`` has two texts, ``a`` and ``b``, which differ in what ``is`` a result
or a measurement. What is ``said``, if that is something else, is a miss that is known; change it if it is mended.
``probes.jsonl`` has printed lines that were written to be taken for the other: many of them say it to nobody.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from detaudit.model.outputs import DECIDING, OPEN, STDOUT, OutputDifference, Outputs, RunFacts
from detaudit.outputs import compare, text
from detaudit.runs.values import read


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()]


PRINTED, SAVED, PROBES = cases("printed.jsonl"), cases("saved.jsonl"), cases("probes.jsonl")
PRINTED_AND_PROBES = [*PRINTED, *PROBES]


def facts_of(case: dict[str, Any]) -> tuple[RunFacts, RunFacts]:
    pids = frozenset(case.get("pids", ()))
    a, b = (RunFacts(started=began, ended=began + 58, pids=pids, writers=1) for began in case["began"])
    return a, b


def said(differences: Iterable[OutputDifference]) -> str:
    kinds = {one.kind for one in differences}
    return "result" if kinds & DECIDING else "open" if kinds & OPEN else "measurement"


@pytest.mark.parametrize("number", range(0, len(PRINTED_AND_PROBES), 50))
def test_what_was_printed_is_a_result_or_a_measurement(number: int) -> None:
    for case in PRINTED_AND_PROBES[number : number + 50]:
        a, b = (text.text_of(case[side].splitlines()) for side in "ab")
        assert said(text.compare(a, b, STDOUT, *facts_of(case))) == case.get("said", case["is"]), case


@pytest.mark.parametrize("number", range(0, len(SAVED), 50))
def test_what_was_saved_is_a_result_or_a_measurement(number: int, tmp_path: Path) -> None:
    for case in SAVED[number : number + 50]:
        outputs = list[Outputs]()
        for side, facts in zip("ab", facts_of(case), strict=True):
            path = tmp_path / side / case["name"]
            path.parent.mkdir(exist_ok=True)
            path.write_text(case[side], encoding="utf-8")
            outputs.append(Outputs(files=(read(path, case["name"], facts),), facts=facts))
        assert said(compare.differences(outputs[0], outputs[1])) == case.get("said", case["is"]), case


@pytest.mark.parametrize(
    ("corpus", "measured", "false", "right"),
    [(PRINTED, 6, 30, 869), (SAVED, 2, 85, 813), (PROBES, 34, 42, 504)],
    ids=["printed", "saved", "probes"],
)
def test_few_are_taken_for_the_other(corpus: list[dict[str, Any]], measured: int, false: int, right: int) -> None:
    counts = Counter((case["is"], case.get("said", case["is"])) for case in corpus)
    assert counts["result", "measurement"] <= measured
    assert counts["measurement", "result"] <= false
    assert counts["result", "result"] + counts["measurement", "measurement"] >= right
