"""What a report remembers of its command line."""

import sys

import pytest

from detaudit.cli.bisect import command
from detaudit.cli.settings import explicit_command
from detaudit.launch.target import Target


@pytest.mark.parametrize("found", [True, False])
def test_a_bisection_is_resumed_with_the_python_that_was_found(monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    monkeypatch.setattr(
        sys, "argv", ["/home/me/bin/detaudit", "bisect", "train.py", "--confirm", "3", "--", "--lr", "1"]
    )
    remembered = explicit_command(
        Target(arguments=("--lr", "1"), script="train.py", python="/p/python", python_found=found)
    )
    with command.make_context("bisect", list(remembered[2:])) as again:
        assert again.params["python"] == ("/p/python" if found else None)
        assert (again.params["words"], again.params["after_dashes"]) == (("train.py",), ("--lr", "1"))
