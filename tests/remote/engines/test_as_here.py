"""Scripts of the corpus by each engine: the verdicts and fingerprints of audits on this machine without an engine.

With fixed addresses, the order of objects depends on the length of the folder's path and the number of variables, which
are others in a run by an engine than in one here, so there is no fingerprint to compare.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.process.conftest import Project
from tests.remote.engines.clusters import cluster
from tests.remote.engines.hosts import is_here, servers
from tests.remote.engines.test_parsl import config

pytestmark = [pytest.mark.engines, pytest.mark.launches]

CORPUS = Path(__file__).parents[2] / "corpus" / "scripts"

SCRIPTS = {
    "python_hash_split": ("nondeterministic", "deterministic"),
    "python_id_order": ("nondeterministic", ""),
    "python_unseeded": ("nondeterministic", "deterministic"),
    "torch_index_backward": ("nondeterministic", "deterministic"),
    "torch_queue_loader": ("nondeterministic", "nondeterministic"),
}
"""One of each cause: its verdicts in labels.yaml without flags and with the recipe all.

The second is left out if it is that of fixed addresses.
"""

RUNS = {"none": 20, "all": 3}
"""Runs by recipe."""

Call = tuple[tuple[str, ...], dict[str, str]]
"""Options of detaudit, and variables."""


class Found(NamedTuple):
    """What an audit found."""

    verdict: str
    results: tuple[str, ...]


@contextlib.contextmanager
def by_ssh(folder: Path) -> Iterator[Call]:
    with servers(folder, ("one", "two")):
        yield ("--engine", "ssh:one,two"), {"DETAUDIT_SSH_COMMAND": f"ssh -F {folder}/config"}


@contextlib.contextmanager
def by_parsl(folder: Path) -> Iterator[Call]:
    yield ("--engine", f"parsl:{config(folder)}"), {}


@contextlib.contextmanager
def by_ray(folder: Path) -> Iterator[Call]:
    with cluster() as made:
        made.start("one")
        made.start("two")
        yield ("--engine", f"ray:{made.address}"), made.variables


ENGINES = {"ssh": by_ssh, "parsl": by_parsl, "ray": by_ray}

Audit = Callable[[str, str, Call], Found]


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Return a function that audits a script of the corpus, with a recipe; what was asked before is known."""
    project = Project(tmp_path_factory.mktemp("project"))
    for name in ("final", *SCRIPTS):
        shutil.copy(CORPUS / f"{name}.py", project.folder)
    known: dict[tuple[object, ...], Found] = {}

    def ask(script: str, recipe: str, call: Call) -> Found:
        key, runs = (script, recipe, call[0]), RUNS[recipe]
        if key not in known:
            options = ("--runs", str(runs), "--recipe", recipe, "--python", sys.executable, *call[0])
            began = time.monotonic()
            done = project.run(f"{script}.py", *options, env={**os.environ, **call[1]})
            (group,) = done.json["groups"]
            results = tuple(sorted({run["ranks"][0]["digest"] for run in group["runs"]}))
            assert len(group["runs"]) == runs or call == HERE, done.err
            known[key] = Found(group["verdict"], results)
            print(json.dumps([*key, runs, group["verdict"], len(results), round(time.monotonic() - began)]), flush=True)
        return known[key]

    return ask


HERE: Call = ((), {})


@pytest.mark.parametrize("engine", ENGINES)
def test_an_audit_by_an_engine_finds_what_one_here_does(engine: str, audit: Audit, tmp_path: Path) -> None:
    if engine == "ssh" and not is_here():
        pytest.skip("sshd is not installed")
    with ENGINES[engine](tmp_path) as there:
        for script, (without, with_all) in SCRIPTS.items():
            here, found = (audit(script, "none", call) for call in (HERE, there))
            assert (here.verdict, found.verdict) == (without, without), (engine, script)
            if with_all:
                here, found = (audit(script, "all", call) for call in (HERE, there))
                assert (here.verdict, found.verdict) == (with_all, with_all), (engine, script)
            if with_all == "deterministic":
                assert found.results == here.results, (engine, script)
