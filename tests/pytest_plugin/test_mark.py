"""The arguments of ``@pytest.mark.deterministic``."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.pytest_plugin.mark import Mark, MarkError, read


def test_arguments_become_options_of_detaudit_run() -> None:
    assert read((), {}) == Mark()
    mark = read((), {"runs": 5, "recipe": Path("mine.yaml"), "flags": ["a", "b=c"], "seed": 7, "timeout": 2.5})
    options = "--runs 5 --recipe mine.yaml --fail-fast --flag a --flag b=c --seed 7 --timeout 2.5"
    assert mark.options == tuple(options.split())
    assert read((), {"flags": "a"}).flags == ("a",)


@pytest.mark.parametrize(
    ("arguments", "keywords", "problem"),
    [
        ((3,), {}, "arguments must be keywords; available: runs, recipe"),
        ((), {"run": 3}, "unknown argument 'run'"),
        ((), {"runs": 1}, "runs must be an integer of at least 2, got 1"),
        ((), {"runs": True}, "got True"),
        ((), {"recipe": None}, "recipe must be a recipe name (see `detaudit recipes`) or a YAML file, got None"),
        ((), {"flags": [1]}, "got (1,)"),
        ((), {"flags": 1}, "flags must be flag IDs (see `detaudit recipes`), got 1"),
        ((), {"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ((), {"timeout": 0}, "timeout must be a positive number of seconds, got 0"),
    ],
)
def test_an_invalid_argument_is_reported(arguments: tuple[Any, ...], keywords: dict[str, Any], problem: str) -> None:
    with pytest.raises(MarkError) as caught:
        read(arguments, keywords)
    assert str(caught.value).startswith("@pytest.mark.deterministic: ")
    assert problem in str(caught.value)
