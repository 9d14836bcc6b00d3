"""Lines of the user's code that a report keeps."""

import hashlib
from pathlib import Path

from detaudit.source import excerpts

CODE = "".join(f"line {number}\n" for number in range(1, 21))


def test_an_excerpt_has_the_lines_around_and_the_digest_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    (found,) = excerpts.of(tmp_path, [("train.py", 10)])
    assert (found.file, found.line, found.first) == ("train.py", 10, 7)
    assert found.lines == tuple(f"line {number}" for number in range(7, 14))
    assert found.digest == hashlib.sha256(CODE.encode()).hexdigest()


def test_an_excerpt_ends_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    first, last = excerpts.of(tmp_path, [("train.py", 1), ("train.py", 20)])
    assert (first.first, first.lines[0], last.lines[-1]) == (1, "line 1", "line 20")


def test_a_line_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    assert excerpts.of(tmp_path, [("train.py", 99), ("gone.py", 1), ("train.py", 0), ("a\0b", 1)]) == ()
    assert excerpts.at(tmp_path, None, 3) is None


def test_each_place_is_shown_once_and_secrets_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("api_key=hunter2\n" + "x" * 1000)
    places = [("train.py", 1)] * 3 + [("train.py", 2)]
    found = excerpts.of(tmp_path, places)
    assert [one.line for one in found] == [1, 2]
    assert found[0].lines[0] == "api_key=***"
    assert len(found[1].lines[-1]) == excerpts.MOST_CHARACTERS
