"""A bisection and a trace of a script of the corpus by each engine, on one of its machines or on those like it."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process.conftest import Project
from tests.remote.engines.hosts import is_here
from tests.remote.engines.test_as_here import CORPUS, ENGINES

pytestmark = [pytest.mark.engines, pytest.mark.launches]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bisection_and_a_trace(engine: str, tmp_path: Path) -> None:
    if engine == "ssh" and not is_here():
        pytest.skip("sshd is not installed")
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    for name in ("final", "python_hash_split"):
        shutil.copy(CORPUS / f"{name}.py", project.folder)
    (tmp_path / "servers").mkdir()
    with ENGINES[engine](tmp_path / "servers") as (words, variables):

        def search(verb: str) -> dict[str, Any]:
            options = (*words, "--python", sys.executable, "--format", "json")
            done = project.detaudit(verb, "python_hash_split.py", *options, env={**os.environ, **variables})
            assert "all runs are done on " in done.err
            return done.json

        found, culprit = search("bisect"), search("trace")["culprit"]
    assert found["outcome"] == "fixed"
    assert [one["flag"] for one in found["needed"]] == ["python-hash-seed"]
    assert (culprit["file"], culprit["line"]) == ("python_hash_split.py", 10)
    assert culprit["operation"]["name"] == "aten.lift_fresh.default"
    assert [(one["flag"], one["trial"]["first_difference"]) for one in culprit["flags"]] == [("python-hash-seed", None)]
