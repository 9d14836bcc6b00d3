"""Files are matched by what they are, if their names depend on the run."""

import pytest

from detaudit.outputs.file_names import matched

SAME_NAMES = [
    ("2026-11-22_21-57-11/model.pt", "2026-11-23_08-01-59/model.pt"),
    ("runs/Nov22_21-57-11_host/model.pt", "runs/Dec01_01-02-03_host/model.pt"),
    ("model-4711.pt", "model-4712.pt"),
    ("version_0/last.ckpt", "version_1/last.ckpt"),
    ("run-20261122_215711-k3jx9q2z/a.pt", "run-20261122_225812-p0ab7c1d/a.pt"),
    ("0f6b7a52-98a1-4d3e-9c55-7d1f0a3b2c4d.pt", "deadbeef-98a1-4d3e-9c55-7d1f0a3b2c4d.pt"),
    ("calm-fox/model.pt", "shy-owl/model.pt"),
    ("best-of-five.pt", "first-of-five.pt"),
]


@pytest.mark.parametrize(("ours", "theirs"), SAME_NAMES)
def test_a_name_that_depends_on_the_run(ours: str, theirs: str) -> None:
    assert matched({ours: "x"}, {theirs: "x"}) == {theirs: ours}
    assert matched({ours: "x"}, {theirs: "y"}) == {theirs: ours}


def test_equal_names_are_kept_whatever_is_in_the_files() -> None:
    known = {"fold-1.pt": "x", "fold-2.pt": "y"}
    assert matched(known, {"fold-2.pt": "x", "fold-1.pt": "y"}) == {"fold-1.pt": "fold-1.pt", "fold-2.pt": "fold-2.pt"}


def test_contents_come_before_the_order_of_writing() -> None:
    found = {"b1c2d3e4.pt": "second", "f5a6b7c8.pt": "first"}
    known = {"a1a1a1a1.pt": "first", "c3c3c3c3.pt": "second"}
    assert matched(known, found) == {"b1c2d3e4.pt": "c3c3c3c3.pt", "f5a6b7c8.pt": "a1a1a1a1.pt"}


def test_a_missing_file_takes_no_other_file_s_place() -> None:
    known = {"step-100.pt": "a", "step-200.pt": "b", "step-300.pt": "c"}
    assert matched(known, {"step-200.pt": "b", "step-300.pt": "changed"}) == {
        "step-200.pt": "step-200.pt",
        "step-300.pt": "step-300.pt",
    }


def test_a_file_without_a_counterpart_keeps_its_name() -> None:
    assert matched({"model.pt": "x"}, {"log.csv": "x"}) == {"log.csv": "log.csv"}
    assert matched({}, {"model.pt": "x"}) == {"model.pt": "model.pt"}
