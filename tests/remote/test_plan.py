"""A plan holds all that makes runs equal."""

import json
from pathlib import Path

import pytest

from detaudit.config.options import Until
from detaudit.errors import ConfigError, UsageError
from detaudit.launch.target import Target
from detaudit.model.stage import Records
from detaudit.remote.plan import other_sources, plan_of, read_plan, sources, to_file
from tests.fakes import settings
from tests.remote.attempts import plan


def test_a_file_is_read_back(tmp_path: Path) -> None:
    made = plan_of(settings(tmp_path, "seeds"), python=None, variables={"OMP_NUM_THREADS": "2"}, passed=("DATA",))
    found = read_plan(to_file(made), "plan.json")
    assert found == made
    assert found.id == made.id
    assert found.recipes[0].flags, "flags travel with what they set"


def test_two_plans_of_one_audit_are_two(tmp_path: Path) -> None:
    first, second = (plan_of(settings(tmp_path), python=None, variables={}, passed=()) for _ in range(2))
    assert first.id != second.id


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a plan"),
        (b"[]", "is not a plan"),
        (b"{}", "has schema version None"),
        (b'{"schema_version": "1.0"}', "is not a plan"),
        (b'{"schema_version": "9.0"}', "has schema version 9.0"),
        (b'{"schema_version": ' + b"[" * 100_000, "is not a plan"),
        ("é".encode("latin-1"), "is not a plan"),
    ],
)
def test_anything_else_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read_plan(data, "plan.json")
    assert "detaudit plan" in caught.value.hint


def test_runs_are_numbered_over_all_recipes() -> None:
    made = plan(2, "n", "none", "seeds")
    assert [(made.recipe_and_number(run)[0].name, made.recipe_and_number(run)[1]) for run in range(1, 5)] == [
        ("none", 1),
        ("none", 2),
        ("seeds", 1),
        ("seeds", 2),
    ]
    for run in (0, 5):
        with pytest.raises(UsageError, match=f"no run {run}"):
            made.recipe_and_number(run)


def test_a_time_cannot_be_planned(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="after a time"):
        plan_of(settings(tmp_path, until=Until(seconds=90)), python=None, variables={}, passed=())


def test_trees_are_of_whole_runs(tmp_path: Path) -> None:
    planned = plan_of(settings(tmp_path), python=None, variables={}, passed=(), records=Records.TREES)
    assert read_plan(to_file(planned), "plan.json").records is Records.TREES
    ended = settings(tmp_path, until=Until(step=5))
    with pytest.raises(UsageError, match="--until") as caught:
        plan_of(ended, python=None, variables={}, passed=(), records=Records.TREES)
    assert "Leave out one" in caught.value.hint


def test_a_script_is_named_from_the_working_directory(tmp_path: Path) -> None:
    import dataclasses

    here = settings(tmp_path)
    absolute = dataclasses.replace(here, target=Target((), script=str(here.cwd / "train.py")))
    with pytest.raises(UsageError) as caught:
        plan_of(absolute, python=None, variables={}, passed=())
    assert "train.py" in caught.value.hint


def test_code_that_changed_is_noticed(tmp_path: Path) -> None:
    for name in ("train.py", "pkg/model.py", "data.csv", ".detaudit/x/y.py", "env/pyvenv.cfg", "env/lib/z.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert list(sources(tmp_path)) == ["pkg/model.py", "train.py"]
    made = plan(sources=sources(tmp_path))
    (tmp_path / "data.csv").write_text("new")
    (tmp_path / "generated.py").write_text("by a run")
    assert other_sources(made, tmp_path) == []
    (tmp_path / "pkg" / "model.py").write_text("changed")
    (tmp_path / "train.py").unlink()
    assert other_sources(made, tmp_path) == ["pkg/model.py", "train.py"]


def test_of_a_notebook_its_code_counts(tmp_path: Path) -> None:
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "loss = 1"}
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    notebook = tmp_path / "train.ipynb"
    notebook.write_text(json.dumps(content))
    (tmp_path / "broken.ipynb").write_text("not JSON")
    made = plan(sources=sources(tmp_path))
    assert list(made.sources) == ["broken.ipynb", "train.ipynb"]
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    notebook.write_text(json.dumps(content))
    assert other_sources(made, tmp_path) == []
    cell["source"] = "loss = 2"
    notebook.write_text(json.dumps(content))
    assert other_sources(made, tmp_path) == ["train.ipynb"]


def test_secrets_of_the_command_line_are_not_shown(tmp_path: Path) -> None:
    import dataclasses

    hidden = dataclasses.replace(settings(tmp_path), target=Target(("--token", "abc"), script="train.py"))
    made = plan_of(hidden, python=None, variables={}, passed=())
    assert json.loads(to_file(made))["command"] == ["detaudit", "run", "train.py"]
    assert made.arguments == ("--token", "abc"), "the run needs it"
