"""Notebooks are read as one script whose lines say the cell, and cells are written back where they were."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from detaudit.notebooks import cells, writing
from detaudit.notebooks.cells import Cell, NotebookError

SHAPES = sorted((Path(__file__).parent / "shapes").glob("*.ipynb"))


def notebook(*sources: str, **changes: Any) -> bytes:
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **changes}).encode()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("x = 1\ny = 2", ["x = 1", "y = 2"]),
        ("%matplotlib inline\nx = 1", ["pass  # %matplotlib inline", "x = 1"]),
        ("text = '''\n%matplotlib\n!ls\n'''\n%who", ["text = '''", "%matplotlib", "!ls", "'''", "pass  # %who"]),
        ("x = (7\n  % 4)\n%who", ["x = (7", "  % 4)", "pass  # %who"]),
        ("# %who\n\n%who", ["# %who", "", "pass  # %who"]),
        ("for i in x:\n    %time f(i)", ["for i in x:", "    f(i)"]),
        ("%timeit -n 3 -r2 f(x)", ["f(x)"]),
        ("%%time\nf()", ["# %%time", "f()"]),
        ("%%time\n%who\nf()", ["# %%time", "pass  # %who", "f()"]),
        ("%%timeit n = 3\nf(n)", ["n = 3  # %%timeit n = 3", "f(n)"]),
        ("%env A=b c", ["__import__('os').environ['A'] = 'b c'"]),
        ("%cd ../data", ["__import__('os').chdir(__import__('os').path.expanduser('../data'))"]),
        ("f?", ["pass  # f?"]),
        ("?f.g", ["pass  # ?f.g"]),
        ("%load_ext autoreload", ["pass  # %load_ext autoreload"]),
        ("!pip install \\\n  torch\nx = 1", ["pass  # !pip install torch", "#   torch", "x = 1"]),
        ("%%html\n<b>a</b>", ["# %%html", "# <b>a</b>"]),
        ("await f()\n%who", ["await f()", "pass  # %who"]),
    ],
)
def test_what_only_ipython_reads_becomes_python_line_by_line(source: str, code: list[str]) -> None:
    cell = Cell(1, source)
    assert (cell.code, cell.ipython) == (code, [])
    ast.parse("\n".join(cell.code))


@pytest.mark.parametrize(
    ("source", "line"),
    [("x = 1\n!ls {x}", 2), ("files = !ls", 1), ("%sql select 1", 1), ("%%bash\nls", 1), ("%load_ext sql", 1)],
)
def test_other_magics_are_left_to_ipython(source: str, line: int) -> None:
    cell = Cell(1, source)
    assert cell.ipython == [line]
    assert "get_ipython()" in cell.code[line - 1]
    assert len(cell.code) == len(cell.lines)
    ast.parse("\n".join(cell.code))


@pytest.mark.parametrize("source", ["!pip install x", "!{sys.executable} -m pip install x", "%pip install x"])
def test_nothing_is_installed(source: str) -> None:
    assert Cell(1, source).installs == [1]


def test_the_number_of_a_line_says_its_cell() -> None:
    read = cells.read(notebook("a = 1\nb = 2", "", "  \n", "c = 3"))
    lines = cells.script(read).split("\n")
    assert (lines[1000], lines[1001], lines[2000]) == ("a = 1", "b = 2", "c = 3")
    assert cells.location_of("a/thesis.ipynb", 2001) == "a/thesis.ipynb cell 2, line 1"
    assert cells.location_of("train.py", 2001) == "train.py:2001"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "is not a notebook"),
        (b"[]", "has no cells"),
        (b'{"nbformat": 3, "worksheets": []}', "format 3"),
        (notebook("x", metadata={"kernelspec": {"language": "R"}}), "in R, not in Python"),
        (notebook("x\n" * 1200), "1201 lines, more than 999"),
        (notebook("%%bash\npip install x\nls"), "installs packages and does something else"),
    ],
)
def test_what_cannot_be_run_is_an_error_with_a_hint(data: bytes, said: str) -> None:
    with pytest.raises(NotebookError, match=said) as raised:
        cells.read(data)
    assert raised.value.hint


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_an_edited_cell_is_all_that_changes_in_the_file(path: Path) -> None:
    data = path.read_bytes()
    lines = cells.script(cells.read(data)).splitlines(keepends=True)
    assert writing.with_lines(data, lines) == data
    before = [cell.lines for cell in cells.read(data)]
    for number, cell in enumerate(cells.read(data), 1):
        at = cells.PER_CELL * number + len(cell.code) - 1
        edited = writing.with_lines(data, [*lines[: at + 1], "added = 'ä'\n", *lines[at + 1 :]])
        after = [one.lines for one in cells.read(edited)]
        assert after == [*before[: number - 1], [*before[number - 1], "added = 'ä'"], *before[number:]]
        old, new = json.loads(data), json.loads(edited)
        for one in (*old["cells"], *new["cells"]):
            one.pop("source")
        assert old == new
        kept = [line for line in data.splitlines() if line in edited.splitlines()]
        assert len(kept) >= len(data.splitlines()) - 1, "every other line of the file stays"


def test_a_magic_cannot_be_edited() -> None:
    data = notebook("%who\nx = 1")
    lines = cells.script(cells.read(data)).splitlines(keepends=True)
    lines[1000] = "pass\n"
    with pytest.raises(ValueError, match="only IPython"):
        writing.with_lines(data, lines)
