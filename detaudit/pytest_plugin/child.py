"""The inner half of the mark: in a run of the audit, calls the test as it is and has recorded what it returns."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "DETAUDIT_PYTEST"
"""Tells pytest in a run of the audit to call the marked test itself: a JSON object with ``folder`` and ``options``."""

SKIPPED = "skipped"
"""The file in ``folder`` that holds the reason, where the test skipped itself."""


class Child:
    """What the session that audits says to the one that runs: a folder to answer in, and the user's own options."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._folder, self._options = Path(told["folder"]), dict(told["options"])

    @classmethod
    def here(cls) -> "Child | None":
        """Return what this session was told, None in any other session. The variable is gone from then on."""
        told = os.environ.pop(VARIABLE, None)
        return None if told is None else cls(json.loads(told))

    def configure(self, config: pytest.Config) -> None:
        """Set the options that the user's conftest files have, as they are in the session that audits."""
        for name, value in self._options.items():
            setattr(config.option, name, value)

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Call the test and have recorded what it returns; fails the test where that is not possible."""
        with self._skips():
            value = function(**arguments)
        if value is None:
            return
        recorder = sys.modules.get("_detaudit.recorder.probes.returned")
        problem = recorder.returned(value) if recorder is not None else "the recorder was not loaded"
        if problem:
            pytest.fail(f"what the test returned cannot be compared: {problem}", pytrace=False)

    @contextmanager
    def _skips(self) -> Iterator[None]:
        try:
            yield
        except pytest.skip.Exception as skip:
            from detaudit.auditor import store

            store.write(self._folder / SKIPPED, str(skip.msg).encode("utf-8", "replace"))
            raise
