"""A release names one version everywhere, and its workflow has no more rights than each job needs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import release

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def repository(
    folder: Path, *, version: str = "1.2.0", cited: str = "1.2.0", changes: str = "## 1.2.0\n\nNew.\n"
) -> Path:
    (folder / "detaudit").mkdir()
    (folder / "detaudit" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (folder / "CITATION.cff").write_text(f"version: {cited}\n")
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{changes}\n## 1.1.0\n\nOld.\n")
    return folder


def test_the_package_the_citation_and_the_changelog_name_one_version() -> None:
    newest = next(iter(release.changes()))
    assert release.cited_version() == release.package_version()
    assert newest in (release.UNRELEASED, release.package_version())


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    assert release.notes("v1.2.0", repository(tmp_path)) == "New."


@pytest.mark.parametrize(
    ("tag", "files"),
    [
        ("v1.2.1", {}),
        ("1.2.0", {}),
        ("v1.2.0", {"version": "1.2.0.dev0"}),
        ("v1.2.0", {"cited": "1.1.0"}),
        ("v1.2.0", {"changes": "## Unreleased\n\nNew.\n\n## 1.2.0\n\nNew.\n"}),
        ("v1.2.0", {"changes": "## 1.2.0\n"}),
    ],
    ids=["tag", "no v", "package", "citation", "unreleased changes", "no notes"],
)
def test_a_release_whose_files_do_not_fit_together_is_refused(tmp_path: Path, tag: str, files: dict[str, str]) -> None:
    with pytest.raises(release.ReleaseError):
        release.notes(tag, repository(tmp_path, **files))


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    loaded = yaml.safe_load(WORKFLOW.read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_only_a_tag_starts_a_release(workflow: dict[Any, Any]) -> None:
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` as true


def test_each_job_of_a_release_has_the_rights_that_it_needs(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "publish": {"id-token": "write"},
        "attach": {"contents": "write", "id-token": "write", "attestations": "write"},
    }
    assert jobs["publish"]["environment"]
    assert not re.search(r"secrets\.|password", re.sub(" #.*", "", WORKFLOW.read_text()))


def test_what_is_published_was_built_and_checked_once(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands["build"][-1] == "make test-install"
    assert commands["publish"] == []
    assert [jobs[name].get("needs") for name in ("build", "publish", "attach")] == [None, "build", "publish"]
    built = {step["with"]["name"] for step in jobs["build"]["steps"] if "upload-artifact" in step.get("uses", "")}
    for name in ("publish", "attach"):
        steps = [step for step in jobs[name]["steps"] if "download-artifact" in step.get("uses", "")]
        assert {step["with"]["name"] for step in steps} <= built
        assert not [step for step in jobs[name]["steps"] if "checkout" in step.get("uses", "")]


def test_no_expression_becomes_part_of_a_command(workflow: dict[Any, Any]) -> None:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert not [step for step in steps if "${{" in step.get("run", "")]
