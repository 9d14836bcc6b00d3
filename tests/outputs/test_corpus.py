"""What is said of output that was written by people who did not know the rules, and who know what each value is.

Each line of ``printed.jsonl`` has two texts, ``a`` and ``b``, which differ in what ``is`` a result or a measurement.
What is ``said``, if that is something else, is a miss that is known: what is judged otherwise is to be looked at.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from detaudit.model.outputs import DECIDING, OPEN, STDOUT, OutputDifference, RunFacts
from detaudit.outputs.text import compare, text_of

CASES = [
    json.loads(line) for line in Path(__file__).with_name("printed.jsonl").read_text(encoding="utf-8").splitlines()
]


def said(differences: list[OutputDifference]) -> str:
    kinds = {one.kind for one in differences}
    return "result" if kinds & DECIDING else "open" if kinds & OPEN else "measurement"


@pytest.mark.parametrize("number", range(0, len(CASES), 50))
def test_what_was_printed_is_a_result_or_a_measurement(number: int) -> None:
    for case in CASES[number : number + 50]:
        facts = [
            RunFacts(started=began, ended=began + 58, pids=frozenset(case.get("pids", ())), writers=1)
            for began in case["began"]
        ]
        texts = [text_of(case[side].splitlines()) for side in "ab"]
        assert said(compare(texts[0], texts[1], STDOUT, facts[0], facts[1])) == case.get("said", case["is"]), case


def test_few_results_are_taken_for_measurements_and_few_measurements_for_results() -> None:
    counts = Counter((case["is"], case.get("said", case["is"])) for case in CASES)
    assert counts["result", "measurement"] <= 3
    assert counts["measurement", "result"] <= 18
    assert counts["result", "result"] + counts["measurement", "measurement"] >= 457
