"""The outer half of the mark: audits a test in processes of its own, and tells what that shows."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from detaudit.auditor import store
from detaudit.model import Audit, NextStep, Run, Status, Verdict
from detaudit.pytest_plugin.child import SKIPPED, VARIABLE
from detaudit.pytest_plugin.mark import NAME, Mark
from detaudit.report import render, words

TAIL_LINES = 60
"""Lines of a failed run's stdout that are shown: pytest writes there what failed and how."""

_OTHERS = ("PYTEST_XDIST_", "COV_CORE_", "COVERAGE_PROCESS_")
_OTHER = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")


def audit(item: pytest.Function, mark: Mark, environment: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Audit a test; fails it, or skips it, as its runs show.

    ``environment`` is that in which the session started, ``options`` those of the user's conftest files.
    """
    out = item.config.rootpath / store.new_folder(secrets.token_hex(4))
    with tempfile.TemporaryDirectory(prefix="detaudit-") as folder:
        run = ("run", "--format", "json", "--quiet", *mark.options, "--out", str(out))
        done = subprocess.run(
            [sys.executable, "-P", "-m", "detaudit", *run, "--", *_command(item, folder)],
            cwd=item.config.invocation_params.dir,
            env=_environment(environment, folder, options),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        skipped = Path(folder, SKIPPED)
        reason = skipped.read_text("utf-8") if skipped.exists() else None
    if not done.stdout:  # a usage error
        pytest.fail(f"@pytest.mark.{NAME}: {click.unstyle(done.stderr).strip()}", pytrace=False)
    found = msgspec.json.decode(done.stdout, type=Audit)
    if found.interrupted:
        raise KeyboardInterrupt
    if reason is not None and all(run.status is Status.NO_RECORD for group in found.groups for run in group.runs):
        _remove(out)
        pytest.skip(reason)
    if found.verdict is not Verdict.DETERMINISTIC:
        pytest.fail(_told(found, mark, out), pytrace=False)
    item.add_report_section("call", "detaudit", _table(found))
    _remove(out)


def _command(item: pytest.Function, folder: str) -> list[str]:
    """Return pytest for this one test, alike in every run; of the session's options only those that it needs."""
    config, option = item.config, item.config.option
    here = {"", str(config.invocation_params.dir)} & set(sys.path)  # as after `python -m pytest`, unlike `pytest`
    command = [
        sys.executable,
        *([] if here else ["-P"]),
        "-m",
        "pytest",
        f"{item.path}::{item.nodeid.partition('::')[2]}",
    ]
    command += ["--rootdir", str(config.rootpath), *(["-c", str(config.inipath)] if config.inipath else [])]
    # The ini file's addopts may ask for workers, coverage, or for the tests that failed last.
    overrides = [one for one in option.override_ini or () if not one.startswith("addopts=")]
    command += [word for one in (*overrides, "addopts=") for word in ("-o", one)]
    plugins = [one for one in option.plugins or () if one != "no:terminal"]  # so in xdist's workers
    command += [word for one in (*plugins, "no:cacheprovider", "no:randomly") for word in ("-p", one)]
    command += [word for one in option.pythonwarnings or () for word in ("-W", one)]
    command += [f"--import-mode={option.importmode}", f"--tb={option.tbstyle}", "--basetemp", str(Path(folder, "tmp"))]
    command += ["--confcutdir", str(option.confcutdir)] if option.confcutdir else []
    return [*command, "--runxfail", "--color=no", "--no-header", "-q", *config.getini("detaudit_args")]


def _environment(environment: Mapping[str, str], folder: str, options: Mapping[str, Any]) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if name not in _OTHER and not name.startswith(_OTHERS)}
    return {**kept, VARIABLE: json.dumps({"folder": folder, "options": dict(options)})}


def _remove(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)


def _table(audit_: Audit) -> str:
    return click.unstyle(render(audit_, "table")).strip()


def _told(audit_: Audit, mark: Mark, out: Path) -> str:
    """Return what a test that failed shows: detaudit's own table, and what the test itself wrote."""
    group = next(iter(audit_.groups))
    found = words.where(group) if audit_.verdict is Verdict.NONDETERMINISTIC else "it could not be judged"
    shown = _table(msgspec.structs.replace(audit_, next_steps=_next_steps(audit_, mark)))
    parts = [f"@pytest.mark.{NAME}: {audit_.verdict}: {found}", "", shown, ""]
    bad = next((run for run in group.runs if run.status not in (Status.OK, Status.STOPPED)), None)
    if bad is not None:
        parts += _last_words(bad)
        if bad.status is Status.NO_RECORD:
            parts.append("A test with this mark trains a model, or returns what is to be compared.")
    return "\n".join([*parts, f"the logs of each run: {os.path.relpath(out)}"])


def _next_steps(audit_: Audit, mark: Mark) -> tuple[NextStep, ...]:
    if audit_.verdict is not Verdict.NONDETERMINISTIC or mark.recipe not in ("none", "seeds"):
        return ()
    tried = {"none": ("seeds", "do the seeds mend it?"), "seeds": ("all", "does every flag mend it?")}
    name, why = tried[mark.recipe]
    return (NextStep(command=f'@pytest.mark.{NAME}(recipe="{name}")', why=why),)


def _last_words(run: Run) -> list[str]:
    try:
        lines = Path(run.logs, "stdout.log").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    if not lines:
        return []
    return [f"the end of what run {run.id} wrote to stdout:", *(f"  | {line}" for line in lines[-TAIL_LINES:]), ""]
