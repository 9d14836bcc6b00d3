"""What stands between detaudit and a CI system: the action's steps, the snippets of docs/ci.md, the step summary."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
import yaml

from detaudit.config.options import DECLARED, declaration
from detaudit.config.project import NamedAudit, read
from tests.process.conftest import Project
from tests.words import different, same

ROOT = Path(__file__).parents[2]
TRAIN = """
    import sys
    import numpy, detaudit

    seed = int(sys.argv[1]) if len(sys.argv) > 1 else None
    weights = numpy.random.default_rng(seed).normal(size=8)
    for step in range(3):
        weights = weights * 0.5
        detaudit.record(loss=float(weights.sum()), weights=weights)
"""


def action() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "action.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def snippets() -> dict[str, str]:
    """Return the YAML blocks of docs/ci.md, by the file that each names in its first line."""
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    return dict(blocks)


class Runner:
    """Runs the steps of the action as GitHub's runner does: each a script, in bash -eo pipefail."""

    def __init__(self, project: Project, temp: Path) -> None:
        self.project, self.temp = project, temp
        self.summary = temp / "summary.md"
        site = temp / "site"
        self.env = {
            **os.environ,
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(temp),
            # The step installs for real, but beside the environment of the tests and without the network.
            "PIP_TARGET": str(site),
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONPATH": str(site),
        }

    def step(self, number: int, **inputs: str) -> subprocess.CompletedProcess[str]:
        given = {name: str(spec.get("default", "")) for name, spec in action()["inputs"].items()}
        given |= {"python": sys.executable} | {name.replace("_", "-"): value for name, value in inputs.items()}

        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)

        step = action()["runs"]["steps"][number]
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "inputs of a workflow must not become part of the script"
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.project.folder / filled(step.get("working-directory", ".")),
            env={**self.env, **{name: filled(value) for name, value in step["env"].items()}},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


@pytest.fixture
def runner(project: Project, tmp_path: Path) -> Runner:
    project.write("train.py", TRAIN)
    (project.folder / ".git").mkdir()
    return Runner(project, tmp_path)


def test_the_action_installs_itself_and_annotates_the_culprit(runner: Runner) -> None:
    installed = runner.step(0)
    assert installed.returncode == 0, installed.stderr
    assert (runner.temp / "site" / "detaudit" / "configs").is_dir()
    runner.summary.write_text("an earlier step\n")

    done = runner.step(1, command="run", args="train.py --runs 2 --quiet")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(
        f"::error file=train.py,line=6,title=detaudit%3A train.py%3A none::{different()}; "
        "runs 1 and 2 first differ at step 1 (forward): the loss differs although rng matches. "
        "Likely cause: the data, a nondeterministic forward kernel, or uninitialized memory%0A"
        "train.py:6: numpy.random.default_rng() is called without a seed%0A"
    )
    assert done.stdout.count("\n") == 1
    summary = runner.summary.read_text()
    assert summary.startswith("an earlier step\n## detaudit: nondeterministic\n")
    assert "train.py:6" in summary

    where = subprocess.run(
        [sys.executable, "-c", "import detaudit; print(detaudit.__file__)"],
        cwd=runner.project.folder,
        env=runner.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(runner.temp))


@pytest.mark.parametrize(
    ("args", "status", "start"),
    [
        ("train.py --runs 2 -- 7", 0, f"::notice title=detaudit%3A train.py%3A none::{same()}\n"),
        ("train.py --runs 2 -- 'a word; exit 3' \"$(exit 4)\"", 125, "::error file=train.py,title="),
        ("train.py --runs 'two", 2, ""),
        ("", 2, ""),
    ],
)
def test_the_exit_status_of_the_action_is_that_of_detaudit(runner: Runner, args: str, status: int, start: str) -> None:
    done = runner.step(1, command="run", args=args)
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(start)
    if status == 125:
        assert "invalid literal for int() with base 10: 'a word; exit 3'" in done.stdout
    assert bool(done.stdout) == runner.summary.exists()


def test_without_inputs_the_action_checks_what_the_project_has_named(runner: Runner) -> None:
    runner.project.write("detaudit.yaml", "audits:\n  mine: {command: train.py, runs: 2, baseline: false}\n")
    done = runner.step(1)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        f"::error file=train.py,line=6,title=detaudit%3A mine%3A repeatable::{different()}; "
        "first difference at step 1 (forward): the loss differs although rng matches. "
        "Likely cause: the data, a nondeterministic forward kernel, or uninitialized memory%0A"
        "train.py:6: numpy.random.default_rng() is called without a seed%0A"
    )
    assert runner.summary.read_text().startswith("## detaudit: failed\n")
    kept = next((runner.project.folder / ".detaudit").glob("*/check.json")).parent
    again = runner.project.detaudit("report", str(kept), "--format", "gitlab")
    assert (again.code, json.loads(again.out)[0]["location"]["lines"]) == (0, {"begin": 6})
    refused = runner.project.detaudit("compare", str(kept), str(kept / "mine"))
    assert refused.code == 2
    assert "has a check, not an audit\n" in refused.err
    assert refused.err.endswith("\n  hint: Pass a folder in it (mine).\n")


def test_files_are_named_from_the_root_of_the_repository(runner: Runner) -> None:
    runner.project.write("sub/train.py", TRAIN)
    done = runner.step(1, command="run", args="train.py --runs 2", working_directory="sub")
    assert done.stdout.startswith("::error file=sub/train.py,line=6,")


def test_the_files_of_ci_systems_and_the_citation_fit_their_schemas(tmp_path: Path) -> None:
    asked = {
        "vendor.github-actions": (ROOT / "action.yml").read_text(),
        "vendor.github-workflows": snippets()[".github/workflows/determinism.yml"],
        "vendor.gitlab-ci": snippets()[".gitlab-ci.yml"],
    }
    files = [(schema, tmp_path / f"{schema}.yml") for schema in asked]
    for schema, file in files:
        file.write_text(asked[schema])
    files.append(("vendor.github-workflows", ROOT / ".github" / "workflows" / "release.yml"))
    files.append(("vendor.citation-file-format", ROOT / "CITATION.cff"))
    for schema, file in files:
        words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_steps_and_inputs_that_the_docs_name_exist() -> None:
    workflow = yaml.safe_load(snippets()[".github/workflows/determinism.yml"])
    used = next(step for step in workflow["jobs"]["audit"]["steps"] if "detaudit" in step.get("uses", ""))
    assert set(used["with"]) <= set(action()["inputs"])
    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
    config = yaml.safe_load(snippets()[".pre-commit-config.yaml"])
    assert [one["id"] for one in config["repos"][0]["hooks"]] == [hook["id"]]
    assert (hook["entry"], hook["pass_filenames"], hook["stages"]) == ("detaudit check", False, ["pre-push"])
    assert hook["language"] == "system"


def test_the_job_for_gitlab_leaves_both_reports(project: Project, tmp_path: Path) -> None:
    project.write("train.py", TRAIN)
    (tmp_path / "detaudit").write_text(f'#!/bin/sh\nexec {sys.executable} -m detaudit "$@"\n')
    (tmp_path / "detaudit").chmod(0o755)
    job = yaml.safe_load(snippets()[".gitlab-ci.yml"])["determinism"]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    lines = [line for line in job["script"] if not line.startswith("pip ")]
    assert len(lines) == len(job["script"]) - 1
    status = [
        subprocess.run(["bash", "-eo", "pipefail", "-c", "\n".join(part)], cwd=project.folder, env=env).returncode
        for part in (lines, job["after_script"])
    ]
    assert status == [1, 0]
    reports = job["artifacts"]["reports"]
    assert ET.parse(project.folder / reports["junit"]).getroot().get("failures") == "1"
    issues = json.loads((project.folder / reports["codequality"]).read_text())
    assert issues[0]["location"] == {"path": "train.py", "lines": {"begin": 6}}


def test_report_prints_every_format_of_ci_again(project: Project) -> None:
    project.write("train.py", TRAIN)
    first = project.detaudit("run", "train.py", "--runs", "2", "--out", "results", "--format", "junit")
    again = {name: project.detaudit("report", "results", "--format", name) for name in ("junit", "gitlab", "sarif")}
    assert {done.code for done in again.values()} == {0}
    assert again["junit"].out == first.out
    assert json.loads(again["sarif"].out)["runs"][0]["invocations"][0]["exitCode"] == first.code == 1
    assert len(json.loads(again["gitlab"].out)) == 1


def test_a_summary_that_cannot_be_written_is_said_and_changes_nothing_else(project: Project) -> None:
    project.write("train.py", TRAIN)
    env = {"GITHUB_STEP_SUMMARY": str(project.folder / "no" / "summary.md")}
    done = project.detaudit("run", "train.py", "--runs", "2", "--format", "github", env=env)
    assert (done.code, done.out.startswith("::error ")) == (1, True)
    assert "cannot extend" in done.err
    quiet = project.detaudit("run", "train.py", "--runs", "1", "--format", "json", env=env)
    assert quiet.err == ""


def test_every_key_of_a_named_audit_is_in_the_docs() -> None:
    section = (ROOT / "docs" / "ci.md").read_text().partition("## Configuring audits")[2].partition("\n## ")[0]
    own = [field.encode_name for field in msgspec.structs.fields(NamedAudit) if field.name != "declared"]
    declared = [name.replace("_", "-") for name in DECLARED if declaration(name).key is not None]
    assert "file-budget" in declared
    for key in (*own, *declared):
        assert f"`{key}`" in section


def test_the_audit_that_the_docs_show_can_be_read(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    assert found
    (tmp_path / "pyproject.toml").write_text(found[1])
    assert read(tmp_path / "pyproject.toml")["digits"].policy == "warn"
