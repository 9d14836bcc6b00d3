"""What the report of a fix says about its changes."""

import pytest
from msgspec.structs import replace

from detaudit.report import fixes
from tests.report.fixes import FIXES


@pytest.mark.parametrize("name", FIXES)
def test_a_report_says_where_it_is_explained_why_its_changes_help(name: str) -> None:
    fix = FIXES[name]
    pages = [line for line in fixes.notes(fix) if line.startswith("why: ")]
    assert len(pages) == len({hunk.rule for hunk in fix.hunks})
    assert all(any(hunk.rule in line for hunk in fix.hunks) for line in pages)
    by_flag = replace(fix, hunks=tuple(replace(hunk, rule="", flag="torch-seed") for hunk in fix.hunks[:1]))
    assert ("why: `detaudit recipes show torch-seed`" in fixes.notes(by_flag)) is bool(fix.hunks)
