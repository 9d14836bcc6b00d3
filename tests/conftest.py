"""Rings of tests: unit tests can launch nothing by accident, process tests run the real command line."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings

PROCESS_RINGS = {Path(__file__).parent / name for name in ("browser", "process", "ecosystem")}

# How long an example takes says something of the machine and its load, and nothing of the code.
settings.register_profile("no-time-limits", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no-time-limits")
# The same examples for each mutant, and none is made smaller: that a test fails is enough.
settings.register_profile(
    "mutants",
    parent=settings.get_profile("no-time-limits"),
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)


class Refused(subprocess.Popen[Any]):
    """What a unit test gets instead of a process; a class, because annotations of modules that it imports have one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise AssertionError(f"a unit test started a process: {args}")


@pytest.fixture(autouse=True)
def the_environment_is_left_as_it_was() -> Iterator[None]:
    """torch.compile, for one, writes into the environment where its cache lies, for all children of this process."""
    with mock.patch.dict(os.environ):
        for wish in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):  # pytest-xdist sets the first
            os.environ.pop(wish, None)
        yield


@pytest.fixture(autouse=True)
def launching_is_for_the_process_ring(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if PROCESS_RINGS & set(request.path.parents) or request.node.get_closest_marker("launches"):
        return

    monkeypatch.setattr(subprocess, "Popen", Refused)
    # The inotify library asks ldconfig for libc when it is first used.
    monkeypatch.setattr("detaudit.launch.workspace._new_watch", lambda paths: None)
    # The Python that trains is asked for its XLA.
    monkeypatch.setattr("detaudit.launch.refusals.libraries", lambda python: ())
