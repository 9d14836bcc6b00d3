"""The arguments of ``@pytest.mark.deterministic``."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.pytest_plugin.mark import Mark, MarkError, read


def test_they_become_options_of_detaudit_run() -> None:
    assert read((), {}) == Mark()
    mark = read((), {"runs": 5, "recipe": Path("mine.yaml"), "flags": ["a", "b=c"], "seed": 7, "timeout": 2.5})
    words = "--runs 5 --recipe mine.yaml --fail-fast --flag a --flag b=c --seed 7 --timeout 2.5"
    assert mark.options == tuple(words.split())
    assert read((), {"flags": "a"}).flags == ("a",)


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((3,), {}, "takes keywords only; those that there are: runs, recipe"),
        ((), {"run": 3}, "no argument 'run'"),
        ((), {"runs": 1}, "runs=1: a whole number from 2"),
        ((), {"runs": True}, "runs=True"),
        ((), {"recipe": None}, "recipe=None"),
        ((), {"flags": [1]}, "flags=(1,)"),
        ((), {"flags": 1}, "flags=1"),
        ((), {"seed": -1}, "seed=-1"),
        ((), {"timeout": 0}, "timeout=0"),
    ],
)
def test_a_bad_one_is_named(arguments: tuple[Any, ...], keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(MarkError) as caught:
        read(arguments, keywords)
    assert str(caught.value).startswith("@pytest.mark.deterministic: ")
    assert words in str(caught.value)
