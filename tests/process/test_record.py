"""detaudit.record: a script reports a training that detaudit cannot hook."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Project

GRADIENT_DESCENT = """
    import detaudit, numpy as np
    from sklearn.datasets import load_digits
    data = load_digits()
    x, y = data.data / 16, (data.target > 4).astype(float)
    w = SEEDED.normal(size=64)
    for _ in range(5):
        error = x @ w - y
        w -= 0.1 * x.T @ error / len(x)
        detaudit.record(loss=(error**2).mean(), weights={"w": w, "bias": [0.0]})
    print(f"{w.sum():.17g}")
"""


def failed_at_record(run: int, error: str) -> dict[str, object]:
    """Return a warning as it is in audit.json."""
    about = {"kind": "recorder-failed", "audit": "", "recipe": "none", "run": run, "recording": ""}
    return {**about, "where": "detaudit.record", "error": error}


@pytest.mark.slow
def test_a_training_in_numpy(project: Project) -> None:
    project.write("train.py", GRADIENT_DESCENT.replace("SEEDED", "np.random"))
    done = project.run("train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds", "--out", "results")
    assert done.code == 1
    bare, seeded = done.json["groups"]
    assert (bare["verdict"], seeded["verdict"]) == ("nondeterministic", "deterministic")
    rank = seeded["runs"][0]["ranks"][0]
    assert (rank["framework"], rank["steps"]) == ("script", 5)
    printed = float((project.folder / "results" / "runs" / "seeds" / "1" / "stdout.log").read_text())
    assert abs(printed - rank["sum_of_weights"]) < 1e-9


@pytest.mark.slow
def test_scikit_learn(project: Project) -> None:
    project.write(
        "train.py",
        """
        import detaudit
        from sklearn.datasets import load_digits
        from sklearn.linear_model import SGDClassifier
        x, y = load_digits(return_X_y=True)
        model = SGDClassifier(max_iter=5, tol=None).fit(x, y)
        detaudit.record(weights=[model.coef_, model.intercept_])
        """,
    )
    done = project.run("train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds")
    assert [group["verdict"] for group in done.json["groups"]] == ["nondeterministic", "deterministic"]


def test_the_script_may_number_its_steps(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os, detaudit
        for step in (10, 20, 20):
            other = step * int(os.environ["HERE"] == "b" and step == 20)
            detaudit.record(step=step, loss=0.5, weights=[1.0 + other])
        """,
    )
    project.write("run.sh", 'HERE=$(cat here 2>/dev/null || echo a)\nexport HERE\necho b > here\nexec python "$@"\n')
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = project.run("--runs", "2", "--", "sh", "run.sh", "train.py", env=environment)
    group = done.json["groups"][0]
    assert [run["steps"] for run in group["runs"]] == [21, 21]
    assert group["first_difference"]["step"] == 20
    counted = "ValueError: step 20 after step 20 was recorded as step 21"
    error = f"{counted}; step numbers start at 1 and must increase (reported once)"
    warned = [one for one in done.json["warnings"] if one["kind"] == "recorder-failed"]
    assert warned == [failed_at_record(run, error) for run in (1, 2)]


def test_values_that_cannot_be_recorded_are_reported_and_raise_nothing(project: Project) -> None:
    project.write("train.py", "import detaudit\ndetaudit.record(weights=['a name'])\nprint('went on')\n")
    done = project.run("train.py", "--runs", "2", "--out", "results")
    assert done.code == 125
    error = "TypeError: detaudit.record accepts numbers and arrays, not str"
    assert done.json["warnings"] == [failed_at_record(run, error) for run in (1, 2)]
    shown = project.detaudit("report", "results").out
    assert f"warning: none run 1: the recorder failed at detaudit.record: {error}\n" in shown
    assert (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text() == "went on\n"


def test_outside_an_audit_it_does_nothing_and_imports_nothing(project: Project) -> None:
    code = (
        "import sys, detaudit as d; d.record(loss=1, weights=[2]); d.record_weights(3); "
        "d.monitor(d.monitor_layer(4), 'x'); d.monitor_gradients([]); "
        "print(sorted({'numpy', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
