"""Processes of a run, as a message names them."""

from typing import cast

import psutil

from detaudit.launch import processes


class Left:
    def cmdline(self) -> list[str]:
        return ["python", "serve.py", "--password", "abc", *["word"] * 50]


def test_a_process_is_named_in_short_and_without_secrets() -> None:
    found = processes.name(cast(psutil.Process, Left()))
    assert found.startswith("python serve.py --password *** word")
    assert len(found) == 120
