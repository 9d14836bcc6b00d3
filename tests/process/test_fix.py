"""detaudit fix as a real process: what it advises was run, and what it applies makes the training deterministic."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from detaudit.fix.changes import AFTER_IMPORTS, Change, Text, all_applied, diff
from tests.process.conftest import Project

DESCENT = """
    import random

    import detaudit
    import numpy as np

    x = np.linspace(0, 1, 200).reshape(50, 4)
    names = {"alpha", "beta", "gamma", "delta", "epsilon"}
    scale = 1 + 0.01 * sum(3**n * len(name) for n, name in enumerate(names))
    rng = np.random.default_rng()
    w = np.zeros(4)
    for _ in range(5):
        order = rng.random(50) + random.random()
        w -= 0.001 * scale * (x * order[:, None]).T @ (x @ w - 1) / 50
        detaudit.record(loss=float(w.sum()), weights=w)
"""
"""Three causes, each of which shows at the first step."""

ITEMS = """
    import detaudit
    import numpy as np


    class Items:
        def __init__(self):
            self.seen = 0

        def __iter__(self):
            for _ in range(6):
                yield np.random.default_rng().random(4)


    w = np.zeros(4)
    for x in Items():
        w -= 0.1 * (w - x)
        detaudit.record(loss=float(w.sum()), weights=w)
"""
"""A generator is made for each item: with a constant seed, all items are the same."""


@pytest.mark.full
def test_what_is_applied_is_all_that_is_needed(project: Project) -> None:
    path = project.write("train.py", DESCENT)
    path.chmod(0o750)
    before = path.read_text()
    done = project.detaudit("fix", "train.py", "--format", "json", "--out", "results", "--diff", "fix.diff")
    assert done.code == 0, done.err
    fix = done.json
    assert fix["verdict"] == "deterministic"
    assert path.read_text() == before
    added = {line.strip() for hunk in fix["hunks"] for line in hunk["new"] if line}
    assert added == {
        "random.seed(0)",
        "rng = np.random.default_rng(0)",
        "scale = 1 + 0.01 * sum(3**n * len(name) for n, name in enumerate(sorted(names)))",
    }
    assert all(hunk["without"]["step"] == 1 for hunk in fix["hunks"])
    assert Path(project.folder / "fix.diff").read_text() == fix["diff"]
    assert not (project.folder / "results" / "tree").exists()

    applied = project.detaudit("fix", "train.py", "--apply", "--out", "applied")
    assert applied.code == 0, applied.err
    assert path.stat().st_mode & 0o777 == 0o750
    run = project.detaudit("run", "train.py", "--runs", "3", "--full", "--out", "after")
    assert run.code == 0, run.out
    again = project.detaudit("fix", "train.py", "--out", "again")
    assert (again.code, "nothing to fix" in again.out) == (0, True)
    subprocess.run(["git", "apply", "applied/undo.diff"], cwd=project.folder, check=True)
    assert path.read_text() == before


def test_a_seed_that_would_repeat_the_items_is_not_advised(project: Project) -> None:
    project.write("train.py", ITEMS)
    done = project.detaudit("fix", "train.py", "--format", "json", "--out", "results")
    assert done.code == 0, done.out
    new = [line.strip() for hunk in done.json["hunks"] for line in hunk["new"] if line]
    assert new == ["generator = np.random.default_rng(0)", "yield generator.random(4)"]  # made once


def test_a_file_outside_of_only_is_left_alone(project: Project) -> None:
    project.write("train.py", DESCENT)
    project.write("other.py", "x = 1")
    done = project.detaudit("fix", "train.py", "--only", "other.py", "--apply", "--format", "json", "--out", "results")
    assert done.code == 1
    assert done.json["hunks"] == []
    assert "default_rng()" in (project.folder / "train.py").read_text()


def test_an_order_of_printed_lines_is_fixed_once_it_counts_as_a_result(project: Project) -> None:
    loop = "for name in {'alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta'}:"
    project.write("train.py", f"import detaudit\ndetaudit.record(loss=1.0, weights=[1.0])\n{loop}\n    print(name)\n")
    for verb in ("run", "fix"):
        undecided = project.detaudit(verb, "train.py", "--runs", "2")
        assert (undecided.code, "detaudit fix train.py --compare all" in undecided.out) == (125, True), undecided.out
    done = project.detaudit("fix", "train.py", "--format", "json", "--compare", "all")
    assert (done.code, done.json["verdict"]) == (0, "deterministic"), done.out
    (hunk,) = done.json["hunks"]
    assert hunk["new"] == [loop.replace("{", "sorted({").replace("}", "})")]


QUEUE = """
    import json
    import time

    import numpy as np

    began, rng = time.time(), np.random.RandomState()
    waits = rng.exponential(size=100).cumsum().tolist()
    with open("queue.json", "w") as file:
        json.dump({"waits": waits, "elapsed_s": time.time() - began}, file)
    print(f"longest {waits[-1]:.6f}")
"""
"""Nothing is trained: numbers in a file, beside a time that never counts, and one that is printed."""


@pytest.mark.full
def test_what_trains_nothing_is_fixed_by_what_it_writes_and_prints(project: Project) -> None:
    project.write("queue_.py", QUEUE)
    done = project.detaudit("fix", "queue_.py", "--format", "json")
    assert done.code == 0, done.err
    (hunk,) = done.json["hunks"]
    assert hunk["new"] == ["began, rng = time.time(), np.random.RandomState(0)"]
    (group,) = done.json["groups"]
    assert [one["at"] for one in group["output_differences"]] == ["elapsed_s"]


def test_what_no_line_can_do_is_named_as_a_variable(project: Project) -> None:
    project.write(
        "train.py",
        """
        import detaudit
        w = [hash("a") % 1000 / 1000]
        for _ in range(3):
            detaudit.record(loss=w[0], weights=w)
        """,
    )
    done = project.detaudit("fix", "train.py", "--format", "json", "--out", "results")
    lines = [line for hunk in done.json["hunks"] for line in hunk["new"]]
    named = [one["name"] for one in done.json["variables"]]
    assert (done.code == 0 and any("crc32" in line for line in lines)) or (done.code, named) == (1, ["PYTHONHASHSEED"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fix", "missing.py"), "missing.py"),
        (("fix", "train.py", "--only", "nowhere"), "--only nowhere does not exist"),
        (("fix", "train.py", "--stages", "all"), "does not support --stages"),
    ],
)
def test_bad_input_is_an_error(project: Project, words: tuple[str, ...], message: str) -> None:
    project.write("train.py", DESCENT)
    done = project.detaudit(*words)
    assert done.code == 2
    assert message in done.err


def test_a_training_that_fails_is_inconclusive(project: Project) -> None:
    project.write("train.py", "import sys; sys.exit(3)")
    done = project.detaudit("fix", "train.py")
    assert done.code == 125


def test_git_applies_a_diff_and_takes_it_back(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    for name, code in (("a.py", "import numpy as np\n\nx = 1\n"), ("b.py", "x = {1}")):
        (folder / name).write_text(code)
    before = {name: Text.of((folder / name).read_bytes()) for name in ("a.py", "b.py")}
    new = all_applied(
        before,
        [Change("a.py", AFTER_IMPORTS, (), ("np.random.seed(0)",)), Change("b.py", 1, ("x = {1}",), ("x = [1]",))],
    )
    assert new is not None
    (tmp_path / "do.diff").write_text(diff(before, new, "sub/"))
    (tmp_path / "undo.diff").write_text(diff(new, before, "sub/"))
    for name, expected in (("do.diff", new), ("undo.diff", before)):
        subprocess.run(["git", "apply", name], cwd=tmp_path, check=True)
        assert {one: Text.of((folder / one).read_bytes()) for one in before} == expected


def test_the_suggested_command_changes_files_outside_of_the_working_directory(project: Project) -> None:
    project.write("noise.py", "import numpy as np\n\nrng = np.random.default_rng()\n")
    script = """
        import sys
        sys.path.insert(0, "..")
        import detaudit
        import numpy as np
        from noise import rng
        w = np.zeros(4)
        for _ in range(3):
            w -= 0.1 * (w - rng.normal(size=4))
            detaudit.record(loss=float(w.sum()), weights=w)
    """
    project.write("scripts/train.py", script)
    subprocess.run(["git", "init", "-q"], cwd=project.folder, check=True)
    done = project.detaudit("fix", "train.py", "--format", "json", cwd=project.folder / "scripts")
    assert done.code == 0, done.err
    (step,) = done.json["next_steps"]
    subprocess.run(step["command"].split(), cwd=project.folder / "scripts", check=True)
    assert "default_rng(0)" in (project.folder / "noise.py").read_text()


def test_what_a_run_writes_over_stays_as_the_user_has_it(project: Project) -> None:
    script = """
        import detaudit
        import numpy as np
        w = np.load("model.npy")
        w[:4] += np.random.rand(4)
        detaudit.record(loss=float(w[:4].sum()), weights=w[:4])
        np.save("model.npy", w)
    """
    project.write("train.py", script)
    np.save(project.folder / "model.npy", np.ones(400_000))
    before = (project.folder / "model.npy").read_bytes()
    done = project.detaudit("fix", "train.py", "--format", "json", "--out", "results")
    lines = [line for hunk in done.json["hunks"] for line in hunk["new"] if line]
    assert (done.code, lines) == (0, ["np.random.seed(0)"])
    assert (project.folder / "model.npy").read_bytes() == before


def test_a_diff_that_cannot_be_written_is_an_error_with_its_cure(project: Project) -> None:
    project.write("train.py", ITEMS.replace("np.random.default_rng().random(4)", "np.random.rand(4)"))
    done = project.detaudit("fix", "train.py", "--diff", "missing/fix.diff", "--out", "results")
    assert "missing/fix.diff" in done.err
    assert "--diff" in done.err
