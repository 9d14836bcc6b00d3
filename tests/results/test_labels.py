"""Every label of tests/results is whole, and agrees with what two runs without detaudit left behind."""

from collections import Counter
from typing import Any

import pytest
import yaml

from tests.results import audit, twice
from tests.results.audit import Audited

LABELS: dict[str, dict[str, Any]] = yaml.safe_load((twice.HERE / "labels.yaml").read_text())
KEYS = {"verdict", "class", "path", "inside", "options", "given", "secret", *audit.CACHES}
STREAMS = {"stdout", "stderr", "exit"}


def test_eighty_scripts_half_of_them_controls_and_three_of_each_class() -> None:
    assert len(LABELS) >= 80
    assert sum(label["verdict"] == "D" for label in LABELS.values()) * 2 >= len(LABELS)
    assert {path.stem for path in twice.SCRIPTS.glob("*.py")} == {*LABELS, "net"}
    assert min(Counter(label["class"] for label in LABELS.values()).values()) >= 3


@pytest.mark.parametrize("name", LABELS)
def test_a_label_says_what_must_be_named(name: str) -> None:
    label = LABELS[name]
    assert label.keys() <= KEYS
    assert {label[key] for key in ("verdict", *audit.CACHES) if key in label} <= {"N", "D", "?"}
    assert ("path" in label) == (label["verdict"] != "D") or label["class"] in ("untrained", "ended-early")
    text = (twice.SCRIPTS / f"{name}.py").read_text()
    assert text.startswith('"""')
    # A report may quote the script, and would have the secret from there.
    assert label.get("secret", "\0") not in text


@pytest.mark.full
@pytest.mark.parametrize("name", LABELS)
def test_a_label_agrees_with_two_runs_without_detaudit(name: str) -> None:
    label, measured = LABELS[name], twice.known().get(name, {})
    asked = f"it is not measured as it is now: python -m tests.results.twice {name}"
    assert measured.get("script") == twice.fingerprint(twice.SCRIPTS / f"{name}.py"), asked
    if label["class"] != "exit-status":
        assert measured["exit"] == [0]
    if name == "left_finished":  # nothing differs: the second run found nothing to do
        assert measured["again"] == []
    elif label["verdict"] != "D" and "path" in label:
        assert any(label["path"] in path for how in ("fresh", "again") for path in measured.get(how, ()))


@pytest.mark.parametrize(
    ("letter", "named", "problem", "expected"),
    [
        ("N", ["value out.csv row 1, target 3.1"], "", True),
        ("N", ["value out.csv row 1, id 3.1"], "", False),
        ("N", ["value other.csv row 1, target 3.1"], "", False),
        ("N", ["value out.csv row 1, target 3.1"], "the secret is in the report", False),
        ("?", ["value out.csv row 1, target 3.1"], "", False),
    ],
)
def test_an_audit_is_right_if_it_names_what_the_label_names(
    letter: str, named: list[str], problem: str, expected: bool
) -> None:
    label = {"verdict": "N", "class": "files", "path": "out.csv", "inside": ["row 1", "target"]}
    assert audit.right(label, Audited(letter, named, problem, 1.0), "cold") == expected


def test_what_is_said_of_single_runs_names_no_difference() -> None:
    difference = {"path": "out.csv", "kind": "value", "at": "row 1, target", "values": ["3.1", "3.2"]}
    group = {"runs": [{"saved": [{"path": "kept.csv"}]}], "output_differences": [difference], "verdict": "x"}
    report = {"groups": [group], "warnings": [{"kind": "leftover-files-read", "paths": ["split.json"]}]}
    named = audit.named(report)
    assert any("out.csv" in text and "row 1, target" in text for text in named)
    assert any("split.json" in text for text in named)
    assert not any("kept.csv" in text for text in named)


def test_a_table_puts_what_is_misjudged_in_bold() -> None:
    labels = {"a": {"verdict": "D", "class": "files"}, "b": {"verdict": "N", "class": "text", "path": "stdout"}}
    audits = {"a": Audited("?", [], "", 1.0), "b": Audited("N", ["words stdout line 1"], "", 1.0)}
    text = audit.table(labels, audits, 3, "cold")
    assert "| a | files | D | **?** |" in text
    assert "| b | text | N | N | `words stdout line 1` |" in text
    assert "1 of 1 differences judged as labeled, 1 false alarms, 1 misjudged in all" in text
