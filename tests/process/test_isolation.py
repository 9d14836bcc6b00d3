"""Runs start from the same state: files that a run leaves for the next are reported, and --isolate separates them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.process.conftest import Project

RESUMES = """
    import os, pathlib, detaudit
    path = pathlib.Path("checkpoints/last.pt")
    start = float(path.read_text()) if path.exists() else 0.0
    w = start - 0.01 * (start - 1)
    detaudit.record(loss=(start - 1) ** 2, weights=[w])
    path.parent.mkdir(exist_ok=True)
    SAVE
"""
RESUMES_IN_TORCH = """
    import os, torch
    path = "checkpoints/last.pt"
    start = torch.load(path) if os.path.exists(path) else torch.zeros(8, 1)
    torch.manual_seed(0)
    w = start.clone().requires_grad_()
    loss = (torch.ones(4, 8) @ w - 1).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
    os.makedirs("checkpoints", exist_ok=True)
    torch.save(w.detach(), path)
"""
IN_PLACE = "path.write_text(str(w))"
BY_RENAME = 'new = pathlib.Path("checkpoints/last.pt.new"); new.write_text(str(w)); os.replace(new, path)'


@pytest.mark.parametrize(
    "text",
    [
        RESUMES.replace("SAVE", IN_PLACE),
        RESUMES.replace("SAVE", BY_RENAME),
        pytest.param(RESUMES_IN_TORCH, marks=pytest.mark.full),
    ],
    ids=["in-place", "by-rename", "torch"],
)
def test_a_checkpoint_that_a_later_run_resumed_from_is_named(project: Project, text: str) -> None:
    project.write("train.py", text)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1
    (warning,) = done.json["warnings"]
    about = {"audit": "", "recipe": "", "run": 0, "recording": ""}
    assert warning == {
        "kind": "leftover-files-read",
        **about,
        "files": ["checkpoints/last.pt"],
        "more": 0,
        "isolated": False,
    }
    first, *_ = done.json["next_steps"]
    assert (first["purpose"], first["command"]) == ("isolate", "detaudit run train.py --runs 2 --isolate")


COUNTS_ITS_RUNS = """
    import json, os, training
    number = json.load(open("version.json"))["version"] + 1 if os.path.exists("version.json") else 1
    json.dump({"version": number}, open("version.json", "w"))
    training.train(seed=0)
    open("result.json", "w").write(json.dumps({"score": RESULT}))
    """


@pytest.mark.parametrize(
    ("result", "code", "warned"),
    [("1", 0, ["run-repeated"]), ("os.urandom(4)[0] / 7", 1, ["leftover-files-read"])],
    ids=["count", "result"],
)
def test_a_run_whose_training_matches_and_that_read_what_an_earlier_one_left_is_done_again(
    project: Project, result: str, code: int, warned: list[str]
) -> None:
    project.write("train.py", COUNTS_ITS_RUNS.replace("RESULT", result))
    done = project.run("train.py", "--runs", "3")
    assert [warning["kind"] for warning in done.json["warnings"]] == warned
    assert done.code == code


@pytest.mark.full
def test_a_bisection_does_not_take_a_resumed_training_for_one_that_needs_a_flag(project: Project) -> None:
    project.write("train.py", RESUMES.replace("SAVE", IN_PLACE))
    done = project.detaudit("bisect", "train.py", "--format", "json")
    assert (done.json["outcome"], done.code) == ("already-deterministic", 0)
    (warning,) = done.json["warnings"]
    assert (warning["kind"], warning["files"]) == ("run-repeated", ["checkpoints/last.pt"])


def test_isolated_runs_do_not_see_each_other(project: Project) -> None:
    project.write("train.py", RESUMES.replace("SAVE", IN_PLACE))
    done = project.run("train.py", "--runs", "2", "--isolate")
    assert done.code == 0
    assert done.json["warnings"] == []
    assert not (project.folder / "checkpoints").exists()


def test_a_file_that_is_only_written_or_appended_to_is_not_reported(project: Project) -> None:
    project.write(
        "train.py",
        """
        import training
        open("log.txt", "a").write("one more run\\n")
        open("result.txt", "w").write("done")
        open("result.txt").read()
        training.train(seed=0)
        """,
    )
    done = project.run("train.py", "--runs", "3")
    assert done.code == 0
    assert done.json["warnings"] == []


def test_an_isolated_run_starts_in_its_place_in_the_repository(project: Project, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "data.txt").write_text("12")
    (tmp_path / "link").symlink_to("data.txt")
    project.write(
        "train.py",
        """
        import os, pathlib, tempfile, training
        assert pathlib.Path("../data.txt").read_text() == "12"
        assert os.readlink("../link") == "data.txt"
        assert pathlib.Path("../.git").is_dir()
        pathlib.Path("../data.txt").write_text("13")
        left = pathlib.Path(tempfile.gettempdir(), "left")
        assert not left.exists()
        left.write_text("")
        print(os.getcwd(), tempfile.gettempdir())
        training.train(seed=0)
        """,
    )
    done = project.run(str(project.folder / "train.py"), "--runs", "2", "--isolate", "--out", "results")
    assert done.code == 0, done.out
    logs = [project.folder / "results" / "runs" / "none" / str(n) / "stdout.log" for n in (1, 2)]
    assert logs[0].read_text() == logs[1].read_text()  # The paths are the same, because a result may depend on them.
    assert str(project.folder) + " " not in logs[0].read_text()
    assert (tmp_path / "data.txt").read_text() == "12"
    assert not (project.folder / "results" / "work").exists()


def test_a_virtual_environment_is_linked_into_the_copy(project: Project) -> None:
    project.write("env/pyvenv.cfg", "")
    project.write("env/big", "x")
    project.write(
        "train.py",
        "import os, training\nassert os.path.islink('env') and os.path.exists('env/big')\ntraining.train(seed=0)\n",
    )
    assert project.run("train.py", "--runs", "2", "--isolate").code == 0


def test_a_copy_that_is_too_large_is_refused_with_a_hint(project: Project, seeded: str) -> None:
    with (project.folder / "huge.bin").open("wb") as file:
        file.truncate(5 * 2**30)
    done = project.run(seeded, "--runs", "2", "--isolate")
    shared = ["cp", "--reflink=always", "train.py", "shared.py"]
    if subprocess.run(shared, cwd=project.folder, capture_output=True, check=False).returncode == 0:
        assert done.code == 0  # The file system shares the blocks, so nothing is copied.
        return
    assert done.code == 2
    assert "5.0 GiB" in done.err
    assert "huge.bin" in done.err
    assert "--isolate-root" in done.err


def test_an_isolate_root_elsewhere_is_refused(project: Project, seeded: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    done = project.run(seeded, "--isolate-root", str(tmp_path / "other"))
    assert done.code == 2
    assert "does not contain the working directory" in done.err


FAILS_ON_ITS_OUTPUT = """
    import os, training
    os.mkdir("out")
    training.train(seed={seed})
    open("out/result.txt", "w").write("done")
    """


@pytest.mark.parametrize(("seed", "code"), [("0", 0), ("None", 1)])
def test_a_run_that_fails_on_what_an_earlier_one_left_is_repeated_without_it(
    project: Project, seed: str, code: int
) -> None:
    project.write("train.py", FAILS_ON_ITS_OUTPUT.format(seed=seed))
    done = project.run("train.py", "--runs", "3")
    assert done.code == code
    assert [run["status"] for run in done.json["groups"][0]["runs"]] == ["ok", "ok", "ok"]
    (warning,) = done.json["warnings"]
    assert (warning["kind"], warning["run"], warning["files"]) == ("run-repeated", 2, ["out"])
    assert "isolate" not in [step["purpose"] for step in done.json["next_steps"]]
    assert (project.folder / "out/result.txt").read_text() == "done"
    (failed,) = project.folder.glob("*/*/runs/*/2-first-attempt/stderr.log")
    assert "FileExistsError" in failed.read_text()


def test_a_run_that_fails_for_another_reason_beside_what_an_earlier_one_left_says_so(project: Project) -> None:
    text = FAILS_ON_ITS_OUTPUT.format(seed=0)
    project.write("train.py", text.replace("os.mkdir", "1 / (1 - os.path.exists('out')); os.mkdir"))
    done = project.run("train.py", "--runs", "3")
    assert done.code == 1
    (warning,) = done.json["warnings"]
    assert (warning["kind"], warning["run"], warning["finished"]) == ("failed-after-leftovers", 2, 1)
    assert warning["files"] == ["out"]
    _, cure, *_ = done.json["next_steps"]
    assert (cure["purpose"], cure["command"]) == (
        "isolate",
        "rm -r out && detaudit run train.py --runs 3 --isolate",
    )
    shutil.rmtree(project.folder / "out")
    assert project.run("train.py", "--runs", "3", "--isolate").code == 0


def test_a_run_that_fails_now_and_then_is_not_put_down_to_what_others_left(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os, training
        open("runs.txt", "a").write("x")
        training.train(seed=0)
        if os.path.getsize("runs.txt") == 2: raise SystemExit("now and then")
        """,
    )
    done = project.run("train.py", "--runs", "3")
    assert [run["status"] for run in done.json["groups"][0]["runs"]] == ["ok", "failed", "ok"]
    assert "failed-after-leftovers" not in [warning["kind"] for warning in done.json["warnings"]]
    assert "isolate" not in [step["purpose"] for step in done.json["next_steps"]]


def test_what_lies_outside_of_the_working_directory_is_no_matter_of_a_copy(project: Project, tmp_path: Path) -> None:
    text = f"import os, training\nif os.path.exists({str(tmp_path / 'out')!r}): raise SystemExit('no')\n"
    text += f"os.mkdir({str(tmp_path / 'out')!r})\ntraining.train(seed=0)\n"
    project.write("train.py", text + f"open({str(tmp_path / 'out' / 'x')!r}, 'w').write('done')\n")
    done = project.run("train.py", "--runs", "2", "--isolate")
    assert done.code == 1
    (warning,) = done.json["warnings"]
    assert (warning["kind"], warning["files"], warning["outside"]) == (
        "failed-after-leftovers",
        [str(tmp_path / "out")],
        True,
    )
    assert "isolate" not in [step["purpose"] for step in done.json["next_steps"]]


@pytest.mark.full
def test_a_long_training_that_refuses_to_start_where_the_first_run_left_its_folder_is_repeated(
    project: Project,
) -> None:
    """The first run was ended after seconds, and the second one has no step at all."""
    project.write(
        "train.py",
        """
        import os, time, torch
        os.mkdir("out")
        open("out/started", "w").write("yes")
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        for _ in range(160):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            time.sleep(0.05)
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    assert [run["status"] for run in done.json["groups"][0]["runs"]] == ["ended", "ok", "ok"]
    assert [warning["kind"] for warning in done.json["warnings"]] == ["run-repeated"]


LONG = """
    import os, time, torch
    {seed}
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    steps = 160
    {before}
    for step in range(steps):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        {each}
        time.sleep(0.05)
    {after}
"""
RESUMING = {
    "before": 'if os.path.exists("state.pt"): steps, state = torch.load("state.pt"); model.load_state_dict(state)',
    "each": 'torch.save((steps - step - 1, model.state_dict()), "state.pt")',
    "after": 'os.remove("state.pt")',
}
CACHING = {
    "before": 'os.path.exists("features.pt") or torch.save(torch.ones(2), "features.pt"); torch.load("features.pt")',
    "each": "pass",
    "after": "pass",
}


@pytest.mark.full
@pytest.mark.parametrize("seed", ["torch.manual_seed(0)", ""])
def test_no_run_resumes_from_one_that_was_ended_early(project: Project, seed: str) -> None:
    project.write("train.py", LONG.format(seed=seed, **RESUMING))
    done = project.run("train.py", "--runs", "2")
    runs = done.json["groups"][0]["runs"]
    if not seed:  # they differ without the state too
        assert done.code == 1
        repeated = [warning for warning in done.json["warnings"] if warning["kind"] == "run-repeated"]
        assert all(warning["after_failure"] for warning in repeated)  # ended while it wrote its state
        return
    assert done.code == 0
    assert [(run["status"], run["steps"]) for run in runs[1:]] == [("ok", 160), ("ok", 160)]
    (warning,) = done.json["warnings"]
    assert (warning["kind"], warning["files"], warning["removed"]) == ("run-repeated", ["state.pt"], True)
    assert not (project.folder / "state.pt").exists()


@pytest.mark.full
def test_no_run_fails_on_a_file_that_one_was_writing_when_it_was_ended(project: Project) -> None:
    cut_short = {**RESUMING, "each": 'torch.save((1, {}), "state.pt"); os.truncate("state.pt", 99)'}
    project.write("train.py", LONG.format(seed="torch.manual_seed(0)", **cut_short))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    (warning,) = done.json["warnings"]
    assert (warning["kind"], warning["after_failure"], warning["removed"]) == ("run-repeated", True, True)
    assert not (project.folder / "state.pt").exists()


@pytest.mark.full
def test_a_cache_that_a_run_made_which_was_ended_early_is_no_difference(project: Project) -> None:
    project.write("train.py", LONG.format(seed="torch.manual_seed(0)", **CACHING))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    group = done.json["groups"][0]
    assert [run["status"] for run in group["runs"]] == ["ended", "ok", "ok", "ok"]
    assert group["left_state"]["outcome"] == "same"
