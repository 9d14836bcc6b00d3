"""Changes of files: applied one after another, as a diff that git takes, and written all or none."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.errors import StorageError, UsageError
from detaudit.fix.changes import AFTER_IMPORTS, Change, Text, all_applied, applied, diff, hunk_lines, text_of, write_all

CODE = '''"""A script."""
from __future__ import annotations

import numpy as np

names = {"a", "b"}
for name in names:
    print(name)
'''


def text(code: str) -> Text:
    return Text.of(code.encode())


def after(code: str, *given_changes: Change) -> str:
    changed = all_applied({"train.py": text(code)}, given_changes)
    assert changed is not None
    return changed["train.py"].data.decode()


def setting(*lines: str, needs: tuple[str, ...] = ()) -> Change:
    return Change("train.py", AFTER_IMPORTS, (), lines, needs)


def edit(line: int, old: str, new: str, needs: tuple[str, ...] = ()) -> Change:
    return Change("train.py", line, (old,), (new,), needs)


def test_settings_go_below_the_imports_in_their_order() -> None:
    code = after(CODE, setting("random.seed(0)", needs=("import random",)), setting("np.random.seed(0)"))
    assert code == CODE.replace(
        "import numpy as np\n", "import numpy as np\nimport random\n\nrandom.seed(0)\nnp.random.seed(0)\n"
    )


def test_an_import_that_is_there_is_not_repeated() -> None:
    assert after(CODE, setting("np.random.seed(0)", needs=("import numpy as np",))).count("import numpy") == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1\n", "import random\n\nr()\n\nx = 1\n"),
        ("import random\nx = 1\n", "import random\n\nr()\n\nx = 1\n"),
        ("import os\n\nif x:\n import random\n", "import os\nimport random\n\nr()\n\nif x:\n import random\n"),
        ("import random", "import random\n\nr()\n"),
        ("", "import random\n\nr()\n"),
        ("#!/usr/bin/env python\n# coding: utf-8\nx = 1\n",
         "#!/usr/bin/env python\n# coding: utf-8\nimport random\n\nr()\n\nx = 1\n"),
    ],
    ids=["no imports", "code right below", "imported in a function", "no line end", "empty", "head"],
)  # fmt: skip
def test_where_the_imports_end(code: str, expected: str) -> None:
    assert after(code, setting("r()", needs=("import random",))) == expected


def test_code_goes_below_the_import_that_it_needs() -> None:
    code = 'import os\nif f:\n    os.environ["A"] = "1"\nimport numpy as np\nx = 1\nimport random\n'
    assert after(code, setting("np.random.seed(0)")) == code.replace("as np\n", "as np\n\nnp.random.seed(0)\n\n")
    assert after(code, setting("os.umask(0)")).startswith("import os\n\nos.umask(0)\n")


def test_imports_that_an_edit_needs_go_first_but_for_those_of_the_future() -> None:
    code = after(CODE, edit(7, "for name in names:", "for name in sorted(names, key=zlib.crc32):", ("import zlib",)))
    assert code.split("\n")[1:5] == ["from __future__ import annotations", "", "import zlib", "import numpy as np"]


def test_the_nearest_of_equal_lines_is_edited() -> None:
    code = "a = f()\nb = 1\na = f()\n"
    assert after(code, edit(3, "a = f()", "a = f(0)")) == "a = f()\nb = 1\na = f(0)\n"


def test_edits_find_their_lines_below_others() -> None:
    code = after(CODE, setting("np.random.seed(0)"), edit(9, "for name in names:", "for name in sorted(names):"))
    assert "for name in sorted(names):" in code


def test_what_cannot_be_applied_changes_nothing() -> None:
    assert applied(text(CODE), edit(1, "missing", "other")) is None
    assert applied(text(CODE), edit(7, "for name in names:", "for name in (names:")) is None
    assert all_applied({"train.py": text(CODE)}, [setting("np.random.seed(0)"), edit(1, "missing", "other")]) is None


@pytest.mark.parametrize(
    ("end", "encoding"),  # with \r alone, Python itself finds only UTF-8
    [(end, encoding) for end in ("\n", "\r\n") for encoding in ("utf-8", "utf-8-sig", "latin-1")]
    + [("\r", "utf-8"), ("\r", "utf-8-sig")],
)
def test_line_ends_and_encodings_stay(end: str, encoding: str) -> None:
    code = f"# -*- coding: {encoding.removesuffix('-sig')} -*-\nname = 'é'\nx = {{1, 2}}".replace("\n", end)
    data = code.encode(encoding)
    changed = applied(Text.of(data), edit(3, "x = {1, 2}", "x = [1, 2]"))
    assert changed is not None
    assert changed.data == code.replace("{1, 2}", "[1, 2]").encode(encoding)


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "if a:", "    c = 3", "", "# é"]), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_git_makes_of_one_text_the_other(before: list[str], other: list[str], end_a: bool, end_b: bool) -> None:
    a, b = ("\n".join(lines) + "\n" * (bool(lines) and end) for lines, end in ((before, end_a), (other, end_b)))
    patch = diff({"x.py": text(a)}, {"x.py": text(b)})
    if a == b:
        assert patch == ""
        return
    assert patched(a, patch) == b


def patched(code: str, patch: str) -> str:
    """Apply a diff of one file by hand, so that a hundred examples start no process."""
    source, result, at = code.splitlines(keepends=True), list[str](), 0
    lines = patch.splitlines(keepends=True)[2:]
    for number, line in enumerate(lines):
        bare = lines[number + 1 : number + 2] == ["\\ No newline at end of file\n"]
        content = line[1:].removesuffix("\n") if bare else line[1:]
        if line.startswith("@@"):
            start = line.split()[1][1:].split(",")
            first = int(start[0]) - (start[1:] != ["0"])
            result += source[at:first]
            at = first
        elif line[0] in " -":
            assert source[at] == content
            at += 1
            result += [content] if line[0] == " " else []
        elif line[0] == "+":
            result.append(content)
    return "".join([*result, *source[at:]])


def test_a_change_is_shown_by_its_lines() -> None:
    changed = applied(text(CODE), edit(7, "for name in names:", "for name in sorted(names):"))
    assert changed is not None
    assert list(hunk_lines(text(CODE), changed)) == [(7, ("for name in names:",), ("for name in sorted(names):",))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "%matplotlib inline\nimport random\nx = 1",
            " %matplotlib inline\n import random\n+\n+random.seed(0)\n+\n x = 1\n",
        ),
        ("x = 1", "+random.seed(0)\n+\n x = 1\n"),
    ],
)
def test_a_setting_goes_into_a_cell_and_is_shown_with_its_magics(source: str, expected: str) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    before = text_of("a.ipynb", json.dumps(notebook).encode())
    after = applied(before, Change("a.ipynb", AFTER_IMPORTS, (), ("random.seed(0)",)))
    assert after is not None
    assert diff({"a.ipynb": before}, {"a.ipynb": after}).endswith(expected)
    assert "random.seed(0)" in json.loads(after.data)["cells"][0]["source"]


def test_files_keep_their_modes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "a.py").chmod(0o750)
    write_all(tmp_path, {"a.py": text("x = 1\n")}, {"a.py": text("x = 2\n")})
    assert (tmp_path / "a.py").read_text() == "x = 2\n"
    assert (tmp_path / "a.py").stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_a_file_that_changed_meanwhile_stays(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("edited = True\n")
    before = {"a.py": text("x = 1\n"), "b.py": text("x = 1\n")}
    with pytest.raises(UsageError, match=r"b\.py changed"):
        write_all(tmp_path, before, {name: text("x = 2\n") for name in before})
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("failing", [1, 2])
def test_all_files_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    before = {name: text("x = 1\n") for name in ("a.py", "b.py")}
    for name in before:
        (tmp_path / name).write_text("x = 1\n")
    real, calls = os.replace, 0

    def replace(new: Path, path: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(28, "No space left on device", str(path))
        real(new, path)

    monkeypatch.setattr("os.replace", replace)
    with pytest.raises(StorageError, match="No space left"):
        write_all(tmp_path, before, {name: text("x = 2\n") for name in before})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.py": "x = 1\n", "b.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("lines", "needs", "above"),
    [
        (("np.random.seed(0)",), ("import numpy as np",), "x = load_digits()"),
        (("torch.manual_seed(0)",), (), "net = torch.nn.Linear(1, 1)"),  # torch is imported further down
        (("torch.manual_seed(0)",), ("import torch",), "net = torch.nn.Linear(1, 1)"),
    ],
)
def test_a_setting_goes_before_what_a_library_computes_between_imports(
    lines: tuple[str, ...], needs: tuple[str, ...], above: str
) -> None:
    text = (
        "import os\nos.environ['A'] = '1'\nfrom sklearn.datasets import load_digits\nx = load_digits()\nimport torch\n"
    )
    code = after(f"{text}net = torch.nn.Linear(1, 1)\n", setting(*lines, needs=needs))
    changed = [line for line in code.split("\n") if line]
    assert changed[changed.index(lines[0]) + 1] == above
