"""What the report of a fix says about its changes."""

import pytest
from msgspec.structs import replace

from detaudit.model import Difference, Fix, Hunk, Refusal, Refused
from detaudit.model.fix import REFUSALS
from detaudit.report import fixes
from tests.report.fixes import BATCH, FIXES, RNG


@pytest.mark.parametrize("name", FIXES)
def test_a_report_says_where_it_is_explained_why_its_changes_help(name: str) -> None:
    fix = FIXES[name]
    pages = [line for line in fixes.notes(fix) if line.startswith("why: ")]
    assert len(pages) == len({hunk.rule for hunk in fix.hunks})
    assert all(any(hunk.rule in line for hunk in fix.hunks) for line in pages)
    by_flag = replace(fix, hunks=tuple(replace(hunk, rule="", flag="torch-seed") for hunk in fix.hunks[:1]))
    assert ("why: `detaudit recipes show torch-seed`" in fixes.notes(by_flag)) is bool(fix.hunks)


def _partly(**changes: object) -> Fix:
    return replace(FIXES["fix-partly"], **changes)


def _without(first: Difference) -> tuple[Hunk, ...]:
    return tuple(replace(hunk, without=first) for hunk in FIXES["fix-partly"].hunks)


def test_runs_differ_later_only_if_they_do() -> None:
    assert fixes.answer(_partly()).sentence == "with 1 change in 1 file, runs differ later, first at step 1 (batch)"
    same = fixes.answer(_partly(hunks=_without(BATCH)))
    assert same.sentence == "with 1 change in 1 file, runs differ, first at step 1 (batch)"


def test_an_interrupted_fix_does_not_take_runs_without_its_last_change_for_runs_with_it() -> None:
    found = fixes.answer(_partly(hunks=_without(BATCH), interrupted=True))
    assert found.word == "not proven"
    assert "first at" not in found.sentence
    assert fixes.answer(_partly(hunks=_without(RNG), interrupted=True)).word == "partly fixed"


def test_a_line_that_remains_is_said_to_be_of_the_changed_file() -> None:
    culprit = FIXES["fix-partly"].culprit
    assert culprit is not None
    elsewhere, here = _partly(), _partly(culprit=replace(culprit, file="train.py"))
    assert next(fixes.remains(elsewhere)).startswith("remains: data.py:7, ")
    assert next(fixes.remains(here)).startswith("remains: train.py:7 of the changed file, ")


def test_of_a_change_of_many_lines_the_first_is_shown() -> None:
    moved = ("torch.manual_seed(1)", "", "X, y = load()", "for part in parts:", "    use(part)")
    refused = [Refused(file="train.py", line=5, new=moved[:end], why=Refusal.NO_EFFECT) for end in (3, 5)]
    assert [one.text().removesuffix(REFUSALS[Refusal.NO_EFFECT]) for one in refused] == [
        "train.py:5: torch.manual_seed(1); X, y = load(): ",
        "train.py:5: torch.manual_seed(1) and 3 more lines: ",
    ]
