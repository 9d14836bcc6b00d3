"""Each promise of docs/promises.md names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROMISES = re.findall(
    r"^\| (.+) \| `(tests/\S+)::(\w+)` \|$", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE
)


def test_all_promises_have_a_test() -> None:
    rows = re.findall(r"^\| (?!what \|)[^-].*$", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)
    assert len(rows) == len(PROMISES) > 20


@pytest.mark.parametrize(("promise", "file", "test"), PROMISES)
def test_the_test_of_a_promise_exists(promise: str, file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), promise
