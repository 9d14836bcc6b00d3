"""SARIF and GitHub say of a fix exactly what its diff does."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detaudit.fix.changes import Text, diff
from detaudit.report import github, sarif
from detaudit.report.patches import replacements
from tests.report.fixes import FIXES

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json").read_text())
LINES = st.lists(st.sampled_from(["a", "b", "-- a/x", "++ b/x", "@@ -1 +1 @@", "", " c", "d\r", "ü"]), max_size=12)


def fixed(before: str, after: str) -> dict[str, Any]:
    a, b = ({"x.py": Text.of(one.encode())} for one in (before, after))
    fix = replace(FIXES["fix-proven"], diff=diff(a, b))
    log: dict[str, Any] = json.loads(sarif.render(fix))
    jsonschema.validate(log, SCHEMA)
    return log


def edited(text: str, changes: list[dict[str, Any]]) -> str:
    """Make the replacements of a SARIF log, as its section 3.57 says."""
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines) + 1)]
    for one in sorted(changes, key=lambda one: -int(one["deletedRegion"]["startLine"])):
        region = one["deletedRegion"]
        begin = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region.get("endColumn", len(lines[region["endLine"] - 1]) + 1) - 1
        text = text[:begin] + one["insertedContent"]["text"] + text[end:]
    return text


@pytest.mark.full
@given(LINES, LINES, st.booleans(), st.booleans())
def test_a_log_changes_what_the_diff_changes(a: list[str], b: list[str], a_ends: bool, b_ends: bool) -> None:
    before, after = ("\n".join(one) + "\n" * bool(ends and one) for one, ends in ((a, a_ends), (b, b_ends)))
    results = fixed(before, after)["runs"][0]["results"]
    changes = [one for result in results for fix in result.get("fixes", ()) for one in fix["artifactChanges"]]
    assert edited(before, [part for one in changes for part in one["replacements"]]) == after


def test_each_file_of_a_fix_is_named_as_seen_from_the_root() -> None:
    [result] = json.loads(sarif.render(FIXES["fix-proven"]))["runs"][0]["results"]
    assert result["level"] == "note", "the fix is proven, and not applied"
    [fix] = result["fixes"]
    data, train = fix["artifactChanges"]
    assert [one["artifactLocation"]["uri"] for one in (data, train)] == ["data.py", "train.py"]
    region = {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 1}
    assert train["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "\ntorch.manual_seed(0)\n"}}]


@pytest.mark.parametrize("name", ["fix-applied", "fix-nothing-to-do", "fix-nothing-helps"])
def test_what_is_applied_or_unknown_is_not_suggested(name: str) -> None:
    assert '"fixes"' not in sarif.render(FIXES[name])
    assert "detaudit: replace" not in github.render(FIXES[name])


def test_github_annotates_the_lines_that_change() -> None:
    shown = re.findall(r"::notice (file=.*?)::(.*)", github.render(FIXES["fix-proven"]))
    assert ("file=data.py,line=7,endLine=7,title=detaudit%3A replace", "    names = sorted(set(names))") in shown
    assert ("file=train.py,line=4,endLine=4,title=detaudit%3A insert above", "%0Atorch.manual_seed(0)") in shown


def test_a_diff_of_nothing_has_no_changes() -> None:
    assert [*replacements("")] == []
