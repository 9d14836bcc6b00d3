"""Two recordings of real trainings: before and after a change, and an audit against a baseline."""

import shutil
from pathlib import Path

import pytest

from detaudit.baseline import load, thinned, write_lock
from tests.process.conftest import Finished, Project

SCRIPT = """
    import sys
    import torch

    seed, rate = int(sys.argv[1]), float(sys.argv[2])
    torch.manual_seed(seed)
    w, b = torch.randn(8, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    data = torch.Generator().manual_seed(3)
    linear = torch.nn.Linear(8, 1)
    linear.weight.data, linear.bias.data = w.detach().T.clone(), b.detach().clone()
    optimizer = torch.optim.SGD(linear.parameters(), lr=rate)
    for _ in range(6):
        x = torch.randn(32, 8, generator=data)
        loss = (linear(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of an audit, which each test compares another one with."""
    project = Project(tmp_path_factory.mktemp("before"))
    project.write("train.py", SCRIPT)
    audit(project, "before", "0", "0.1")
    return project.folder / "before"


@pytest.fixture
def trained(project: Project, before: Path) -> Project:
    project.write("train.py", SCRIPT)
    shutil.copytree(before, project.folder / "before")
    return project


def audit(project: Project, out: str, *arguments: str, options: tuple[str, ...] = ()) -> None:
    done = project.run("train.py", "--runs", "1", "--out", out, *options, "--", *arguments)
    assert done.json["groups"][0]["runs"][0]["status"] == "ok", done.err


def compare(project: Project, *words: str) -> Finished:
    return project.detaudit("compare", "--format", "json", *words)


@pytest.mark.slow
def test_the_same_script_twice(trained: Project) -> None:
    audit(trained, "after", "0", "0.1")
    done = compare(trained, "before", "after")
    assert (done.code, done.json["verdict"]) == (0, "identical")
    assert (done.json["first_difference"], done.json["differing_weights"]) == (None, [])
    assert done.json["weights_compared"] == 2
    assert [pair["distance"] for pair in done.json["losses"]] == [0.0] * 6
    table = trained.detaudit("compare", "before", "after/audit.json")
    assert "identical: bit-identical at the end and at all 6 steps recorded on both sides\n" in table.out


@pytest.mark.slow
def test_another_seed(trained: Project) -> None:
    audit(trained, "after", "1", "0.1")
    done = compare(trained, "before", "after")
    assert (done.code, done.json["verdict"]) == (1, "different")
    assert done.json["first_difference"] == {
        "rank": 0,
        "step": 0,
        "stage": "init",
        "site": None,
        "at_end": False,
        "call": False,
        "also": [],
        "output": None,
    }
    likely = ["seeds", "initialization-order"]
    assert done.json["explanation"] == {"matching": [], "likely": likely, "gap": None}
    assert [weight["shape"] for weight in done.json["differing_weights"]] == [[1, 8], [1]]


@pytest.mark.slow
def test_another_learning_rate(trained: Project) -> None:
    audit(trained, "after", "0", "0.2")
    shutil.move(trained.folder / "before", trained.folder / "moved")
    done = compare(trained, "moved", "after", "--loss-pattern", r"loss (\S+)")
    assert done.code == 1
    assert done.json["first_difference"] == {
        "rank": 0,
        "step": 1,
        "stage": "hyperparameters",
        "site": "lr 0.1 and 0.2",
        "at_end": False,
        "call": False,
        "also": [],
        "output": None,
    }
    matching, likely = ["rng", "batch", "forward"], ["hyperparameters"]
    assert done.json["explanation"] == {"matching": matching, "likely": likely, "gap": None}
    first, second = (pair for pair in done.json["losses"] if pair["step"] <= 2 and pair["rank"] == 0)
    assert first["distance"] == 0.0 < second["distance"]
    assert {pair["rank"] for pair in done.json["losses"]} == {0, 1}  # as recorded, and as printed
    markdown = trained.detaudit("compare", "moved", "after", "--format", "markdown")
    assert (markdown.code, "**different**: the hyperparameters first differ at step 1" in markdown.out) == (1, True)


@pytest.mark.slow
def test_files_that_differ_are_named(project: Project) -> None:
    for number, row in enumerate(("1,0.25", "1,0.5")):
        lines = "".join(f"open({name!r}, 'w').write('row,value\\n{row}\\n')\n" for name in ("a.csv", "b.csv", "c.csv"))
        project.write("train.py", f"import detaudit\ndetaudit.record(loss=1.0, weights=[1.0])\n{lines}")
        audit(project, f"out{number}")
    done = compare(project, "out0", "out1")
    assert (done.code, done.json["verdict"]) == (1, "different")
    assert [one["path"] for one in done.json["output_differences"]] == ["a.csv", "b.csv", "c.csv"]
    assert done.json["a"]["environment"]["python"] == done.json["b"]["environment"]["python"]
    table = project.detaudit("compare", "out0", "out1").out
    for name in ("a.csv", "b.csv", "c.csv"):
        assert f"\n  {name} (row 1, value: 0.25 and 0.5)\n" in table
    page = project.detaudit("compare", "out0", "out1", "--format", "html").out
    assert '<section id="outputs">' in page
    assert "<dt>python</dt>" in page


@pytest.mark.slow
def test_a_baseline(trained: Project) -> None:
    baseline = thinned(load(str(trained.folder / "before")).recording)
    write_lock(trained.folder / "detaudit.lock.json", {"digits": baseline})
    audit(trained, "after", "0", "0.1", options=("--recipe", "seeds"))
    same = compare(trained, "detaudit.lock.json#digits", "before")
    assert (same.code, same.json["weights_compared"]) == (0, 2)
    other = compare(trained, "detaudit.lock.json", "after", "--recipe", "seeds")
    assert other.code == 0  # the script sets its seed itself
    about = {"audit": "", "recipe": "", "run": 0, "recording": ""}
    assert {"kind": "recipes-differ", **about, "a": "none", "b": "seeds"} in other.json["warnings"]
    assert "PYTHONHASHSEED" not in {change["name"] for change in other.json["environment_changes"]}


def test_one_side_recorded_nothing(trained: Project) -> None:
    trained.write("train.py", "print('loss 0.5')\n")
    trained.run("train.py", "--runs", "1", "--out", "nothing")
    done = trained.detaudit("compare", "before", "nothing")
    assert done.code == 125
    assert "no training detected: none of torch, " in done.err
    losses = trained.run("train.py", "--runs", "1", "--out", "printed", "--loss-pattern", r"loss (\S+)")
    assert losses.json["groups"][0]["runs"][0]["status"] == "ok"
    done = trained.detaudit("compare", "printed", "printed/audit.json", "--loss-pattern", r"loss (\S+)")
    assert (done.code, "matching losses prove nothing on their own" in done.err) == (125, True)


def test_what_cannot_be_compared_is_said(trained: Project) -> None:
    for words, expected in (
        (("before", "gone"), "no audit in gone: No such file or directory"),
        (("before", "detaudit.lock.json#a"), "no lock file detaudit.lock.json"),
        (("before", "before", "--recipe", "seed"), "unknown recipe 'seed' in before"),
        (("before", "before", "--loss-pattern", "("), "--loss-pattern is not a valid regex"),
        (("before",), "two recordings are compared, or a target with --against REF"),
    ):
        done = trained.detaudit("compare", *words)
        assert (done.code, expected in done.err) == (2, True), done.err
    said = "A and B are the same recording, so the comparison proves nothing"
    assert said in trained.detaudit("compare", "before", "before").out
