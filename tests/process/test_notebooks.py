"""Notebooks of the shapes that tutorials have, audited as real processes: verdicts, places, traces and fixes."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.process.conftest import Project

SHAPES = Path(__file__).parents[1] / "notebooks" / "shapes"

QUICK = {
    "async_loading": (0, "bit-identical"),
    "async_order": (1, "async_order.ipynb cell 2, line 2: random.random() draws from the unseeded"),
    "captured_output": (0, "bit-identical"),
    "colab_unseeded": (1, "colab_unseeded.ipynb cell 2, line 1: numpy.random.default_rng() is called without a seed"),
    "display_magics": (0, "bit-identical"),
    "environment": (0, "bit-identical"),
    "fails_late": (125, 'fails_late.ipynb", cell 4, line 2, in check'),
    "global_seed_missing": (1, "global_seed_missing.ipynb cell 2, line 1: random.gauss()"),
    "installs_first": (0, "bit-identical"),
    "linear_regression": (0, "bit-identical"),
    "own_module": (0, "bit-identical"),
    "raw_and_empty": (0, "bit-identical"),
    "saved_result_differs": (1, "x.npy"),
    "set_order": (1, "set_order.ipynb cell 3, line 1: "),
    "skipped_cells": (0, "bit-identical"),
    "timed_cells": (0, "bit-identical"),
    "unseeded_data": (1, "unseeded_data.ipynb cell 2, line 3: numpy.random.default_rng() is called without a seed"),
    "windows_unseeded": (1, "windows_unseeded.ipynb cell 2, line 1: "),
    "writes_files": (0, "w.npy"),
}
"""The exit status and what the report says."""

IN_EACH_RUN = {"async_order", "fails_late", "global_seed_missing", "own_module", "set_order", "writes_files"}
"""Those of `make test`."""

WITH_FRAMEWORKS = {
    "sklearn_forest": (1, "cell 3, line 2: RandomForestClassifier.fit() draws"),
    "sklearn_pipeline": (0, "bit-identical"),
    "torch_seeded": (0, "bit-identical"),
    "torch_unseeded": (1, "the initial weights differ"),
    "keras_seeded": (0, "bit-identical"),
    "keras_unseeded": (1, "nondeterministic: 2 runs gave 2 different results"),
}

WITH_PACKAGES = {"data_frame": "pandas", "plots": "matplotlib", "shell_commands": "IPython", "widgets": "ipywidgets"}
"""Deterministic notebooks, and the package that each needs beside those of the other tests."""


def audited(project: Project, name: str, expected: tuple[int, str]) -> None:
    for path in (SHAPES / f"{name}.ipynb", SHAPES / "helpers.py"):
        shutil.copy(path, project.folder)
    done = project.detaudit("run", f"{name}.ipynb", "--runs", "2")
    assert (done.code, expected[1] in done.out) == (expected[0], True), done.out + done.err


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IN_EACH_RUN else pytest.mark.full) for name in QUICK]
)
def test_notebooks_are_audited_as_scripts(project: Project, name: str) -> None:
    audited(project, name, QUICK[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_FRAMEWORKS)
def test_notebooks_with_frameworks(project: Project, name: str) -> None:
    audited(project, name, WITH_FRAMEWORKS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_PACKAGES)
def test_notebooks_with_packages_that_show_something(project: Project, name: str) -> None:
    if find_spec(WITH_PACKAGES[name]) is None:
        pytest.skip(f"{WITH_PACKAGES[name]} is not installed")
    audited(project, name, (0, "bit-identical"))


def test_every_shape_has_an_expectation() -> None:
    assert {path.stem for path in SHAPES.glob("*.ipynb")} == {*QUICK, *WITH_FRAMEWORKS, *WITH_PACKAGES}


@pytest.mark.skipif(find_spec("IPython") is not None, reason="IPython is installed")
def test_a_magic_without_ipython_is_an_error_before_any_run(project: Project) -> None:
    shutil.copy(SHAPES / "shell_commands.ipynb", project.folder)
    done = project.detaudit("run", "shell_commands.ipynb")
    assert done.code == 2
    assert "shell_commands.ipynb cell 1, line 1 needs IPython" in done.err
    assert "!echo hello" in done.err


@pytest.mark.full
def test_tqdm_has_its_part_for_notebooks_as_in_jupyter(project: Project) -> None:
    (project.folder / "tqdm").mkdir()
    project.write("tqdm/__init__.py", "")
    project.write("tqdm/notebook.py", "tqdm = list")
    code = "import tqdm\nfor step in tqdm.notebook.tqdm(range(2)):\n    print('loss', 0.5)"
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "source": code,
        "outputs": [],
        "execution_count": None,
    }
    project.write("bars.ipynb", json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    done = project.run("bars.ipynb", "--runs", "1")
    (run,) = done.json["groups"][0]["runs"]
    assert run["exit_code"] == 0, done.err


@pytest.mark.full
def test_fix_writes_the_cell_and_nothing_else(project: Project) -> None:
    path = project.folder / "deep" / "thesis.ipynb"
    path.parent.mkdir()
    shutil.copy(SHAPES / "display_magics.ipynb", path)
    path.write_text(path.read_text().replace("default_rng(0)", "default_rng()"))
    before = path.read_text()

    tried = project.detaudit("fix", "deep/thesis.ipynb", "--runs", "3", "--format", "json", "--out", "tried")
    assert tried.code == 0, tried.err
    assert path.read_text() == before
    assert [(hunk["file"], hunk["line"]) for hunk in tried.json["hunks"]] == [("deep/thesis.ipynb", 3001)]
    assert "--- a/deep/thesis.ipynb cell 3\n" in tried.json["diff"]
    assert [step["command"] for step in tried.json["next_steps"]] == ["detaudit fix deep/thesis.ipynb --apply"]

    applied = project.detaudit("fix", "deep/thesis.ipynb", "--runs", "3", "--apply", "--out", "applied")
    assert applied.code == 0, applied.err
    assert path.read_text() == before.replace("default_rng()", "default_rng(0)")
    assert json.loads(path.read_text())["cells"][1]["outputs"]
    assert project.detaudit("run", "deep/thesis.ipynb", "--runs", "2").code == 0
    assert (project.folder / "applied" / "before-deep_thesis.ipynb").read_text() == before


@pytest.mark.slow
def test_a_trace_names_the_cell(project: Project) -> None:
    shutil.copy(SHAPES / "unseeded_data.ipynb", project.folder)
    done = project.detaudit("trace", "unseeded_data.ipynb")
    assert "unseeded_data.ipynb cell 2, line 3" in done.out, done.out + done.err
    assert "rng = np.random.default_rng(0)" in done.out


@pytest.mark.slow
def test_a_bisection_names_the_flag_and_the_cell(project: Project) -> None:
    shutil.copy(SHAPES / "unseeded_data.ipynb", project.folder)
    done = project.detaudit("bisect", "unseeded_data.ipynb", "--confirm", "3", "--format", "json")
    assert done.code == 0, done.err
    (needed,) = done.json["needed"]
    assert needed["flag"] == "numpy-default-rng"
    assert "unseeded_data.ipynb" in json.dumps(needed)


@pytest.mark.slow
def test_a_check_of_a_notebook_fails_for_an_edit_of_a_cell_and_not_for_an_output(project: Project) -> None:
    path = project.folder / "thesis.ipynb"
    shutil.copy(SHAPES / "linear_regression.ipynb", path)
    project.write("detaudit.yaml", "audits:\n  thesis:\n    command: thesis.ipynb\n    runs: 2\n")
    assert project.detaudit("check", "--update").code == 0

    notebook = json.loads(path.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        cell["outputs"], cell["execution_count"] = [], None
    path.write_text(json.dumps(notebook))
    kept = project.detaudit("check", "--evidence", "check.zip")
    assert (kept.code, "passed: 2 passed" in kept.out) == (0, True), kept.out + kept.err

    cells[0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["new\n"]}]
    path.write_text(json.dumps(notebook))
    checked = project.detaudit("verify", "check.zip", "--rerun")
    assert checked.code == 0, checked.out + checked.err

    cells[1]["source"] = "".join(cells[1]["source"]).replace("default_rng(0)", "default_rng(1)")
    path.write_text(json.dumps(notebook))
    checked = project.detaudit("verify", "check.zip")
    assert (checked.code, "changed: code: thesis.ipynb has changed" in checked.out) == (1, True), checked.out
    failed = project.detaudit("check")
    assert failed.code == 1, failed.out + failed.err
