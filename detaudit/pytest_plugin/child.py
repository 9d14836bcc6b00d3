"""The inner half of the mark: in a run of the audit, call the test and record the value that it returns."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "DETAUDIT_PYTEST"
"""Makes pytest call the marked test, in a run of the audit: a JSON object with ``folder`` and ``options``."""

SKIPPED = "skipped"
"""The file in ``folder`` with the reason, if the test skipped itself."""


class Child:
    """A run of the audit: the folder for its answers, and the values of the user's own options."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._folder, self._options = Path(values["folder"]), dict(values["options"])

    @classmethod
    def here(cls) -> "Child | None":
        """Return the run that this session is, None in any other session; remove the variable from the environment."""
        values = os.environ.pop(VARIABLE, None)
        return None if values is None else cls(json.loads(values))

    def configure(self, config: pytest.Config) -> None:
        """Set the options of the user's conftest files to their values in the session that audits."""
        for name, value in self._options.items():
            setattr(config.option, name, value)

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Call the test and record the value that it returns; fail the test if it cannot be recorded."""
        with self._skips():
            value = function(**arguments)
        if value is None:
            return
        recorder = sys.modules.get("_detaudit.recorder.probes.returned")
        problem = recorder.returned(value) if recorder is not None else "the recorder was not loaded"
        if problem:
            pytest.fail(f"cannot compare the value that the test returned: {problem}", pytrace=False)

    @contextmanager
    def _skips(self) -> Iterator[None]:
        try:
            yield
        except pytest.skip.Exception as skip:
            from detaudit import store

            store.write(self._folder / SKIPPED, str(skip.msg).encode("utf-8", "replace"))
            raise
