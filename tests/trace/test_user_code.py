"""The lines of a user's files, as Python counts them."""

from pathlib import Path

import pytest

from detaudit.trace.culprit import UserCode


@pytest.mark.parametrize("separator", ["\x0c", "\x1c", "\x85", "\u2028", "\x0b"])
def test_only_newlines_end_a_line(tmp_path: Path, separator: str) -> None:
    (tmp_path / "train.py").write_text(f"a = 1\n{separator}\nb = '{separator}'\r\nc = 3\rd = 4\n", newline="")
    code = UserCode(tmp_path, tmp_path)
    assert [code.text("train.py", line) for line in (1, 4, 5, 6, 7)] == ["a = 1", "c = 3", "d = 4", "", ""]
