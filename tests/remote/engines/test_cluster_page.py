"""The recipes of docs/how-to/cluster.md: the schedulers' own schemas take them, and detaudit their commands."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from detaudit.errors import ExitCode
from detaudit.remote.commands import join, plan, worker
from tests.docs.blocks import Block, blocks

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "cluster.md"
VERSIONS = ("1.31", "1.34")
"""Of Kubernetes, whose schemas the manifest is checked against."""


def block(*parts: str) -> Block:
    (found,) = [one for one in blocks(PAGE, ROOT) if all(part in one.text for part in parts)]
    return found


@pytest.fixture
def manifest() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(block("kind: Job").text)
    return found


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the options of a command of detaudit. Raises UsageError for one that there is not."""
    commands = {"plan": plan, "worker": worker, "join": join}
    assert words[0].endswith("detaudit")
    context = commands[words[1]].make_context(words[1], words[2:])
    return dict(context.params)


def test_an_indexed_job_gives_each_pod_a_run_of_its_own(manifest: dict[str, Any]) -> None:
    spec = manifest["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["completionMode"], pod["restartPolicy"]) == ("Indexed", "Never")
    assert spec["completions"] == spec["parallelism"] > 1
    assert spec["backoffLimitPerIndex"] > 0
    refused, disrupted = spec["podFailurePolicy"]["rules"]
    assert refused["onExitCodes"]["containerName"] == container["name"]
    assert (refused["action"], refused["onExitCodes"]["values"]) == ("FailIndex", [ExitCode.USAGE])
    assert disrupted["onPodConditions"][0]["type"] == "DisruptionTarget"
    assert pod["enableServiceLinks"] is False
    words = [word.replace("$(JOB_COMPLETION_INDEX)", str(spec["completions"] - 1)) for word in container["command"]]
    options = parsed(words)
    assert (options["index"], options["number"]) == (spec["completions"] - 1, None)
    assert options["plan"].startswith(options["url"]), "the plan lies beside the runs"


@pytest.mark.launches
def test_an_array_of_slurm_does_each_run_once() -> None:
    script = block("#SBATCH")
    assert subprocess.run(["bash", "-n"], input=script.text, text=True, check=False).returncode == 0
    assert "#SBATCH --array=1-8\n" in script.text
    last = script.text.splitlines()[-1].replace("$SLURM_ARRAY_TASK_ID", "8")
    words = shlex.split(last)
    assert words[0] == "exec", "so that scancel ends the run"
    assert parsed(words[1:])["number"] == 8


def test_a_workflow_of_github_plans_runs_and_joins() -> None:
    text = block("download-artifact").text
    jobs = yaml.safe_load(text)["jobs"]
    assert (jobs["run"]["needs"], jobs["join"]["needs"]) == ("plan", "run")
    lines = [step.get("run", "").replace("${{ matrix.run }}", "1") for job in jobs.values() for step in job["steps"]]
    words = [shlex.split(line) for line in lines if line.startswith("detaudit ")]
    commands = {line[1]: parsed(line) for line in words}
    assert list(commands) == ["plan", "worker", "join"]
    assert jobs["run"]["strategy"]["matrix"]["run"] == [*range(1, commands["plan"]["runs"] + 1)]
    assert commands["worker"]["plan"] == str(commands["plan"]["output"])


@pytest.mark.launches
def test_the_workflow_is_one_of_github(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    for name, text in (("good", "on: push\n"), ("bad", "on: never\n")):
        (tmp_path / f"{name}.yml").write_text(text + block("download-artifact").text)
        done = subprocess.run([*words, tmp_path / f"{name}.yml"], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is (name == "good"), done.stdout


@pytest.mark.engines
@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifest_is_one_of_kubernetes(version: str, manifest: dict[str, Any]) -> None:
    import kubernetes_validate

    kubernetes_validate.validate(manifest, version, strict=True)
    for change in ({"backoffLimitPerindex": 2}, {"completions": "eight"}):
        broken = {**manifest, "spec": {**manifest["spec"], **change}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(broken, version, strict=True)
