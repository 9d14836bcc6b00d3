"""What detaudit cannot hook: losses on stdout, and files written by a script or by a program in another language."""

import pytest

from tests.process.conftest import Project

SHELL = """
    #!/bin/sh
    echo "step 1 loss 0.5"
    echo "step 2 loss LOSS"
    echo MODEL > model.bin
"""


def shell(project: Project, model: str = "weights", loss: str = "0.25") -> tuple[str, ...]:
    text = SHELL.replace("MODEL", model).replace("LOSS", loss).strip()
    project.write("train.sh", "\n".join(line.strip() for line in text.splitlines())).chmod(0o755)
    return ("--", "./train.sh")


LOSS = r"step (?P<step>\d+) loss (\S+)"


def test_a_program_that_is_not_python(project: Project) -> None:
    words = shell(project)
    done = project.run("--runs", "3", "--artifact", "model.bin", "--loss-pattern", LOSS, *words)
    assert done.code == 0
    printed, written = done.json["groups"][0]["runs"][2]["ranks"]
    assert (printed["framework"], printed["steps"], printed["final_loss"]) == ("stdout", 2, 0.25)
    assert (written["framework"], written["sum_of_weights"]) == ("artifact", None)
    command = done.json["next_steps"][0]["command"]
    assert "--artifact model.bin -- ./train.sh" in command
    assert f"--loss-pattern '{LOSS}'" in command


def test_a_differing_program_that_is_not_python(project: Project) -> None:
    done = project.run("--runs", "2", "--artifact", "model.bin", *shell(project, model="$$"))
    assert done.code == 1
    found = done.json["groups"][0]["first_difference"]
    assert (found["stage"], found["site"]) == ("artifact", "model.bin: line 1")


def test_printed_losses_alone(project: Project) -> None:
    same = project.run("--runs", "2", "--loss-pattern", LOSS, *shell(project))
    assert same.code == 125
    assert same.json["groups"][0]["reason"] == {"kind": "only-losses"}
    other = project.run("--runs", "2", "--loss-pattern", LOSS, *shell(project, loss="0.$$"))
    assert other.code == 1
    found = other.json["groups"][0]["first_difference"]
    assert (found["step"], found["stage"]) == (2, "stdout")


def test_a_pattern_that_never_matches(project: Project) -> None:
    words = shell(project)
    done = project.run("--runs", "2", "--loss-pattern", r"Loss (\S+)", "--artifact", "model.bin", *words)
    assert done.code == 125
    unmatched = {"kind": "loss-pattern-unmatched", "pattern": r"Loss (\S+)", "last_line": "step 2 loss 0.25"}
    assert done.json["groups"][0]["reason"] == {"kind": "run-unusable", "run": 1, "errors": [unmatched]}


def test_a_broken_pattern_is_shown_before_any_run(project: Project, seeded: str) -> None:
    done = project.detaudit("run", seeded, "--loss-pattern", r"loss (\S+")
    assert done.code == 2
    assert "\n  loss (\\S+\n       ^\n" in done.err
    assert not (project.folder / ".detaudit").exists()


def test_losses_are_lost_from_truncated_stdout(project: Project) -> None:
    project.write(
        "train.py",
        """
        import sys
        print("loss 1")
        for _ in range(70):
            sys.stdout.write("x" * 2**20)
        print("\\nloss 0.5")
        """,
    )
    done = project.run("train.py", "--runs", "2", "--loss-pattern", r"^loss (\S+)")
    assert done.code == 125
    truncated = {"kind": "stdout-truncated"}
    assert done.json["groups"][0]["reason"] == {"kind": "run-unusable", "run": 1, "errors": [truncated]}


def test_a_file_that_only_the_first_run_writes(project: Project) -> None:
    project.write("train.py", "import os\nif not os.path.exists('m'):\n    open('m', 'w').write('1')\n")
    done = project.run("train.py", "--runs", "2", "--artifact", "m")
    assert done.code == 125
    old = {"kind": "artifacts-not-written", "files": ["m"], "more": 0}
    assert done.json["groups"][0]["reason"] == {"kind": "run-unusable", "run": 2, "errors": [old]}
    isolated = project.run("train.py", "--runs", "2", "--artifact", str(project.folder / "m"), "--isolate")
    assert isolated.code == 125  # it is in the repository by now, and in every copy of it
    (project.folder / "m").unlink()
    for path in ("m", str(project.folder / "m")):
        assert project.run("train.py", "--runs", "2", "--artifact", path, "--isolate").code == 0
        assert not (project.folder / "m").exists()


@pytest.mark.slow
def test_scikit_learn_and_joblib(project: Project) -> None:
    project.write(
        "train.py",
        """
        import joblib
        from sklearn.datasets import load_digits
        from sklearn.linear_model import SGDClassifier
        x, y = load_digits(return_X_y=True)
        joblib.dump(SGDClassifier(max_iter=3, tol=None).fit(x, y), "model.joblib")
        """,
    )
    done = project.run("train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds", "--artifact", "*.joblib")
    assert [group["verdict"] for group in done.json["groups"]] == ["nondeterministic", "deterministic"]


@pytest.mark.slow
def test_saved_models_are_compared_without_dates_names_and_addresses(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os, time
        os.environ["KERAS_BACKEND"] = "torch"
        import keras, numpy as np, torch
        keras.utils.set_random_seed(0)
        shared = keras.layers.Dense(4)
        x = keras.Input((4,))
        model = keras.Model(x, keras.layers.Dense(1)(shared(shared(x))))
        model.compile("sgd", "mse")
        model.fit(np.ones((8, 4)), np.ones((8, 1)), verbose=0)
        model.save("m.keras")
        model.save_weights("m.weights.h5")
        name = f"{time.time_ns()}.pt"
        torch.save({"w": torch.randn(9)}, name)
        os.rename(name, "m.pt")
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    (group,) = done.json["groups"]
    for run in group["runs"]:
        assert [(file["path"], file["by"]) for file in run["saved"]] == [
            ("m.keras", "keras"),
            ("m.pt", "torch"),
            ("m.weights.h5", "hdf5"),
        ]
    one, two = ({file["path"]: file for file in run["saved"]} for run in group["runs"])
    assert [one[path]["digest"] == two[path]["digest"] for path in one] == [True] * 3
    assert one["m.keras"]["sha256"] != two["m.keras"]["sha256"]  # it holds a date
