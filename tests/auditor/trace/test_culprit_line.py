"""Which of the lines that may bring a difference is to blame, what class of cause it is of, and its edit."""

from pathlib import Path

import pytest

from detaudit.auditor.trace import culprit_line
from detaudit.model import Source

CODE = """import os, random
names = os.listdir(".")
order = list(set(names))
objects = list({object() for _ in range(3)})
share = [hash(name) % 2 for name in names]
generator = random.Random()
"""


def source(line: int, kind: str = "candidate", what: str = "does something") -> Source:
    return Source(file="data.py", line=line, what=what, kind=kind)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data.py").write_text(CODE)
    return tmp_path


@pytest.mark.parametrize(
    ("found", "cause", "edited"),
    [
        (source(2, "listing-order"), "order", "names = sorted(os.listdir('.'))".replace("'", '"')),
        (source(3), "hash", "order = sorted(set(names))"),
        (source(4), "address", "objects = list(dict.fromkeys(object() for _ in range(3)))"),
        (source(5), "hash", "share = [zlib.crc32(str(name).encode()) % 2 for name in names]"),
        (source(6, "unseeded"), "seed", "generator = random.Random(0)"),
    ],
)
def test_the_cause_and_the_edit_of_a_line(root: Path, found: Source, cause: str, edited: str) -> None:
    assert culprit_line.cause_of(found, root) == cause
    edit = culprit_line.edit_of(found, root)
    assert edit is not None
    assert edit.new == (edited,)


def test_an_order_is_not_blamed_on_a_line_that_brings_values(root: Path) -> None:
    seeds, order = source(6, "unseeded"), source(2, "listing-order")
    assert culprit_line.to_blame([seeds, order], root, orders_only=True) == order
    assert culprit_line.to_blame([seeds, order], root, orders_only=False) == seeds
    assert culprit_line.to_blame([seeds], root, orders_only=True) == seeds


def test_a_line_at_which_a_variable_differs_comes_first(root: Path) -> None:
    first, second = source(6, "unseeded"), source(3)
    assert culprit_line.to_blame([first, second], root, orders_only=False, near=[("data.py", 3)]) == second


def test_a_seed_that_is_given_stands_back_it_may_follow_from_an_order(root: Path) -> None:
    given, arrival = source(6, "seed"), source(2, "completion-order")
    assert culprit_line.to_blame([given, arrival], root, orders_only=False) == arrival


def test_a_file_that_is_gone_has_no_edit(tmp_path: Path) -> None:
    assert culprit_line.edit_of(source(6, "unseeded"), tmp_path) is None
    assert culprit_line.to_blame([], tmp_path, orders_only=False) is None
