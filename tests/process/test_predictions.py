"""A script that only predicts is compared by what its fitted models return."""

import pickle
from pathlib import PurePath

import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.process.conftest import Project
from tests.process.test_fits import first_run

PREDICTS = """
    import pickle, numpy
    from sklearn.datasets import load_digits
    x = load_digits().data[:100]
    model = pickle.load(open("model.pkl", "rb"))
    model.predict(x)
    model.predict_proba(x + DRAWN)
    print("done")
"""


@pytest.fixture
def fitted(project: Project) -> Project:
    x, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(x[:300], y[:300] > 4)
    (project.folder / "model.pkl").write_bytes(pickle.dumps(model))
    return project


def test_predictions_of_an_estimator_are_calls(fitted: Project) -> None:
    fitted.write("train.py", PREDICTS.replace("DRAWN", "0"))
    done = fitted.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    run = first_run(done)
    assert [(rank["framework"], rank["steps"]) for rank in run["ranks"]] == [("sklearn inference", 2)]
    assert run["warnings"] == []
    fitted.write("train.py", PREDICTS.replace("DRAWN", "numpy.random.default_rng().random()"))
    done = fitted.run("train.py", "--runs", "2")
    found = done.json["groups"][0]["first_difference"]
    assert (done.code, found["stage"], found["step"]) == (1, "batch", 2)
    assert "CALLS" in fitted.detaudit("report", "--last").out


def test_predictions_beside_a_fit_are_no_calls(fitted: Project) -> None:
    fit = "from sklearn.naive_bayes import GaussianNB\n    GaussianNB().fit(x, x[:, 2] > 3)\n    "
    fitted.write("train.py", PREDICTS.replace("DRAWN", "0").replace('print("done")', fit))
    run = first_run(fitted.run("train.py", "--runs", "2"))
    assert [(rank["framework"], rank["steps"]) for rank in run["ranks"]] == [("sklearn", 1)]


POOLED = """
    import pickle, time, os
    from concurrent.futures import ProcessPoolExecutor
    from sklearn.datasets import load_digits
    x = load_digits().data[:60]
    model = pickle.load(open("model.pkl", "rb"))
    def predicted(number):
        time.sleep(os.urandom(1)[0] / 2000)
        return model.predict_proba(x[number::6] + DRAWN).sum()
    if __name__ == "__main__":
        with ProcessPoolExecutor(2) as pool:
            print("sum %.1f" % sum(pool.map(predicted, range(6))))
"""


def test_chance_decides_which_worker_predicts_what(fitted: Project) -> None:
    fitted.write("train.py", POOLED.replace("DRAWN", "0"))
    done = fitted.run("train.py", "--runs", "4")
    assert done.code == 0, done.out
    assert [rank["steps"] for rank in first_run(done)["ranks"]] == [1] * 6
    fitted.write("train.py", POOLED.replace("DRAWN", "os.urandom(1)[0]"))
    assert fitted.run("train.py", "--runs", "2").code == 1


def test_what_a_model_returns_decides(project: Project) -> None:
    # As in its source: Python's classes of ONNX Runtime call compiled ones.
    source = "onnxruntime/capi/onnxruntime_inference_collection.py"
    for folder in list(PurePath(source).parents)[:-1]:
        project.write(f"{folder}/__init__.py", "")
    project.write(
        source,
        """
        import os, numpy
        class Session:
            def run(self, output_names, input_feed, run_options=None):
                return [numpy.frombuffer(os.urandom(4), "u1") * (DIFFERS) + 1]
        class InferenceSession(Session):
            def __init__(self, path):
                self._sess = object()
        """.replace("DIFFERS", "1 if os.environ.get('DIFFERS') else 0"),
    )
    project.write(
        "train.py",
        """
        import numpy
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
        InferenceSession("model.onnx").run(None, {"x": numpy.ones(3)})
        """,
    )
    assert project.run("train.py", "--runs", "2").code == 0
    project.write(
        "train.py",
        """
        import os
        os.environ["DIFFERS"] = "1"
        import numpy
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
        InferenceSession("model.onnx").run(None, {"x": numpy.ones(3)})
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert (done.code, done.json["groups"][0]["first_difference"]["stage"]) == (1, "output")
