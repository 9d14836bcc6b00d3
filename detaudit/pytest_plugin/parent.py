"""The outer half of the mark: audit a test in fresh processes, and report the result."""

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

from detaudit import store
from detaudit.compat import SAFE_PATH
from detaudit.model import Audit, NextStep, Purpose, Run, Status, Verdict
from detaudit.pytest_plugin.child import SKIPPED, VARIABLE
from detaudit.pytest_plugin.mark import NAME, Mark
from detaudit.report import groups, render

TAIL_LINES = 60
"""Number of lines to show from the stdout of a failed run, where pytest writes what failed."""

_OTHERS = ("PYTEST_XDIST_", "COV_CORE_", "COVERAGE_PROCESS_")
_OTHER = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")


def audit(item: pytest.Function, mark: Mark, environment: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Audit a test; fail it unless it is deterministic, or skip it if its runs skip it.

    ``environment`` is the environment in which the session started, ``options`` the values of the options of the user's
    conftest files.
    """
    out = item.config.rootpath / store.new_folder(secrets.token_hex(4))
    with tempfile.TemporaryDirectory(prefix="detaudit-") as folder:
        run = ("run", "--format", "json", "--quiet", *mark.options, "--out", str(out))
        done = subprocess.run(
            [sys.executable, *SAFE_PATH, "-m", "detaudit", *run, "--", *_command(item, folder)],
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
    if not done.stdout:  # It was a usage error.
        pytest.fail(f"@pytest.mark.{NAME}: {click.unstyle(done.stderr).strip()}", pytrace=False)
    result = msgspec.json.decode(done.stdout, type=Audit)
    if result.interrupted:
        raise KeyboardInterrupt
    if reason is not None and all(run.status is Status.NOT_RECORDED for group in result.groups for run in group.runs):
        _remove(out)
        pytest.skip(reason)
    if result.verdict is not Verdict.DETERMINISTIC:
        pytest.fail(_failure_text(result, mark, out), pytrace=False)
    item.add_report_section("call", "detaudit", _table(result))
    _remove(out)


def _command(item: pytest.Function, folder: str) -> list[str]:
    """Return the pytest command for one test, the same in every run; it has only the options that the test needs."""
    config, option = item.config, item.config.option
    here = {"", str(config.invocation_params.dir)} & set(sys.path)  # `python -m pytest` adds it, `pytest` does not.
    command = [
        sys.executable,
        *([] if here else SAFE_PATH),
        "-m",
        "pytest",
        f"{item.path}::{item.nodeid.partition('::')[2]}",
    ]
    command += ["--rootdir", str(config.rootpath), *(["-c", str(config.inipath)] if config.inipath else [])]
    # The addopts of the ini file may enable workers, coverage, or a selection of the tests that failed last.
    overrides = [one for one in option.override_ini or () if not one.startswith("addopts=")]
    command += [part for one in (*overrides, "addopts=") for part in ("-o", one)]
    plugins = [one for one in option.plugins or () if one != "no:terminal"]  # xdist sets it in its workers.
    command += [part for one in (*plugins, "no:cacheprovider", "no:randomly") for part in ("-p", one)]
    command += [part for one in option.pythonwarnings or () for part in ("-W", one)]
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


def _failure_text(audit_: Audit, mark: Mark, out: Path) -> str:
    """Return what to print for a failed test: the report of the audit, and the output of a failed run."""
    group = next(iter(audit_.groups))
    differs = audit_.verdict is Verdict.NONDETERMINISTIC
    reason = groups.where(group) if differs else group.reason.text() if group.reason else ""
    table = _table(msgspec.structs.replace(audit_, next_steps=_next_steps(audit_, mark)))
    parts = [f"@pytest.mark.{NAME}: {audit_.verdict}: {reason}", "", table, ""]
    failed = next((run for run in group.runs if not run.finished and run.status is not Status.STOPPED), None)
    if failed is not None:
        parts += _last_lines(failed, out / failed.log_dir)
        if failed.status is Status.NOT_RECORDED:
            parts.append("A test with this mark must train a model or return a value to compare.")
    return "\n".join([*parts, f"logs: {os.path.relpath(out)}"])


def _next_steps(audit_: Audit, mark: Mark) -> tuple[NextStep, ...]:
    if audit_.verdict is not Verdict.NONDETERMINISTIC or mark.recipe not in ("none", "seeds"):
        return ()
    name = {"none": "seeds", "seeds": "all"}[mark.recipe]
    return (NextStep(command=f'@pytest.mark.{NAME}(recipe="{name}")', purpose=Purpose.TRY_RECIPE),)


def _last_lines(run: Run, logs: Path) -> list[str]:
    try:
        lines = (logs / "stdout.log").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    if not lines:
        return []
    return [f"last lines of stdout from run {run.id}:", *(f"  | {line}" for line in lines[-TAIL_LINES:]), ""]
