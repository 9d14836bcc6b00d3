"""Fits of estimators are trainings: what they learned is compared, each outermost fit is a step."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from detaudit.runs.log_text import entries
from tests.process.conftest import Project

DATA = """
    import os
    import numpy as np
    from sklearn.datasets import load_iris
    x, y = load_iris(return_X_y=True)
"""


def fits(folder: Path) -> list[str]:
    """Return the names of the fits of a run, in their order."""
    lines = [line for log in folder.glob("logs/*.jsonl") for line in entries(log)]
    return [line["name"] for line in lines if line.get("stage") == "update"]


def first_run(done: Any) -> dict[str, Any]:
    run: dict[str, Any] = done.json["groups"][0]["runs"][0]
    return run


def logs_of(project: Project, run: dict[str, Any]) -> Path:
    """Return where the logs of a run of the only audit of a project are."""
    (found,) = project.folder.glob(f".detaudit/*/{run['log_dir']}")
    return found


MANY = """
    import warnings
    warnings.simplefilter("ignore")
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.cluster import KMeans
    from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    class Nearest(ClassifierMixin, BaseEstimator):
        def __init__(self, power=2):
            self.power = power

        def fit(self, x, y):
            StandardScaler().fit(x)
            self.classes_ = np.unique(y)
            self.means_ = [x[y == one].mean(0) for one in self.classes_]
            return self

        def predict(self, x):
            return np.argmin([(abs(x - mean) ** self.power).sum(1) for mean in self.means_], 0)

    if __name__ == "__main__":
        scaled = StandardScaler().fit_transform(x)
        make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0, n_jobs=2)).fit(scaled, y)
        search = GridSearchCV(Nearest(), {"power": [1, 2]}, n_jobs=2).fit(x, y)
        BaggingClassifier(Nearest(), 4, n_jobs=2, random_state=0).fit(x, y)
        cross_val_score(SGDClassifier(random_state=0), x, y)
        learning_curve(SGDClassifier(random_state=0), x, y, train_sizes=[60], cv=2, return_times=True)
        KMeans(3, n_init=1, random_state=0).fit_predict(x)
        classifier = SGDClassifier(random_state=0)
        for part in range(3):
            classifier.partial_fit(x[part::3], y[part::3], classes=range(3))
        MLPClassifier((4,), max_iter=3, random_state=0).fit(x, y)
        print(search.best_score_)
"""

EXPECTED = [
    "StandardScaler.fit_transform",
    "Pipeline.fit",
    "GridSearchCV.fit",
    "BaggingClassifier.fit",
    "sklearn.cross_validate",
    "sklearn.learning_curve",
    "KMeans.fit_predict",
    *["SGDClassifier.partial_fit"] * 3,
    "MLPClassifier.fit",
]


@pytest.mark.full
def test_each_outermost_fit_is_a_step_and_times_and_workers_do_not_count(project: Project) -> None:
    project.write("train.py", DATA + MANY)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out + done.err
    run = first_run(done)
    warnings = {one["kind"] for one in run["warnings"]}
    assert warnings <= {"processes-killed"}  # joblib's workers may outlive the script on a busy machine
    assert fits(logs_of(project, run)) == EXPECTED
    (rank,) = run["ranks"]
    assert (rank["framework"], rank["steps"]) == ("sklearn", len(EXPECTED))
    assert isinstance(rank["final_loss"], float)
    assert isinstance(rank["sum_of_weights"], float)


FOREST = """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import StandardScaler
    x = StandardScaler().fit_transform(x)
    forest = RandomForestClassifier(5).fit(x, y)
"""


@pytest.mark.slow
def test_a_forest_without_a_seed_is_named_and_fixed(project: Project) -> None:
    project.write("train.py", DATA + FOREST)
    done = project.run("train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds")
    assert done.code == 1, done.out + done.err
    none, seeds = done.json["groups"]
    found = none["first_difference"]
    assert (found["step"], found["stage"], found["site"]) == (2, "update", "RandomForestClassifier.fit")
    assert found["explanation"]["likely"] == ["random-state", "threads"]
    (source,) = none["sources"]
    assert (source["line"], source["call"], source["generators"]) == (
        10,
        "RandomForestClassifier.fit",
        ["numpy.random"],
    )
    assert seeds["verdict"] == "deterministic"


@pytest.mark.slow
def test_bisect_finds_the_seed_of_a_forest(project: Project) -> None:
    project.write("train.py", DATA + FOREST)
    done = project.detaudit("bisect", "train.py", "--format", "json")
    assert done.code == 0, done.out + done.err
    assert [flag["flag"] for flag in done.json["needed"]] == ["numpy-seed"]


UNDIGESTED = """
    import threading
    from sklearn.base import BaseEstimator

    class Mean(BaseEstimator):
        def fit(self, x, y):
            self.mean_ = x.mean()
            self.lock_ = threading.Lock()
            return self

    Mean().fit(x, y)
"""


@pytest.mark.full
def test_a_fit_without_a_digest_is_inconclusive_and_the_report_says_how_to_change_that(project: Project) -> None:
    project.write("train.py", DATA + UNDIGESTED)
    done = project.detaudit("run", "train.py", "--runs", "2")
    assert done.code == 125, done.out + done.err
    assert "what Mean.fit() learned cannot be compared (Mean.lock_: cannot pickle" in done.out
    fixed = UNDIGESTED.replace(
        "        def fit", "        __getstate__ = lambda self: {'mean_': self.mean_}\n        def fit"
    )
    project.write("train.py", DATA + fixed)
    assert project.run("train.py", "--runs", "2").code == 0


EDITED = """
    from sklearn.linear_model import Ridge
    model = Ridge().fit(x, y)
    model.coef_ += int.from_bytes(os.urandom(2), "little")
"""


@pytest.mark.full
def test_an_estimator_that_is_changed_after_its_fit_is_compared_as_it_is_at_the_end(project: Project) -> None:
    project.write("train.py", DATA + EDITED)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out + done.err
    found = done.json["groups"][0]["first_difference"]
    assert (found["step"], found["stage"], found["at_end"]) == (1, "update", True)


NEUTRAL = """
    import inspect, pickle
    import cloudpickle, sklearn
    from sklearn.base import BaseEstimator, clone
    from sklearn.exceptions import UnsetMetadataPassedError
    from sklearn.preprocessing import StandardScaler
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier
    from sklearn.pipeline import Pipeline

    class Mean(BaseEstimator):
        def fit(self, x, y=None, *, weight=1):
            \"\"\"Take the mean.\"\"\"
            self.mean_ = weight * x.mean()
            return self

    model = Mean()
    print(inspect.signature(Mean.fit), inspect.signature(model.fit), Mean.fit.__doc__, Mean.fit.__qualname__)
    print(hasattr(model, "set_fit_request"), inspect.ismethod(model.fit), inspect.getsource(Mean.fit))
    print(b"detaudit" in cloudpickle.dumps(model), cloudpickle.loads(cloudpickle.dumps(Mean))().fit(x).mean_)
    print(Mean.fit(model, x).mean_, clone(model), pickle.loads(pickle.dumps(model.fit))(x, weight=2).mean_)
    print(hasattr(Pipeline([("one", model)]), "fit_predict"), hasattr(model, "partial_fit"))
    print(inspect.isfunction(Mean.fit), model.fit.__code__.co_varnames, Mean.fit is Mean.fit)
    with sklearn.config_context(enable_metadata_routing=True):
        print(sorted(Mean().get_metadata_routing().fit.requests))
        scaled = Pipeline([("scale", StandardScaler()), ("mean", Mean().set_fit_request(weight=True))])
        print(scaled.fit(x + 1, weight=3)["mean"].mean_)
        try:
            Pipeline([("mean", Mean())]).fit(x, weight=3)
        except UnsetMetadataPassedError as error:
            print(error)
    try:
        model.fit()
    except TypeError as error:
        print(error)
"""


def test_a_hooked_estimator_behaves_like_the_original(project: Project) -> None:
    script = project.write("train.py", DATA + NEUTRAL)
    bare = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, cwd=project.folder)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out + done.err
    folder = logs_of(project, first_run(done))
    assert (folder / "stdout.log").read_text() == bare.stdout
    assert (folder / "stderr.log").read_text() == bare.stderr


TORCH = """
    import torch
    from sklearn.preprocessing import StandardScaler
    from sklearn.ensemble import RandomForestClassifier
    torch.manual_seed(0)
    inputs = torch.tensor(StandardScaler().fit_transform(x), dtype=torch.float32)
    encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(head(encoder(inputs).tanh()), torch.tensor(y)).backward()
        optimizer.step()
"""

ON_FEATURES = "    RandomForestClassifier(5, random_state=SEED).fit(encoder(inputs).detach().numpy(), y)\n"


@pytest.mark.full
@pytest.mark.parametrize("seed", ["0", pytest.param("None", marks=pytest.mark.slow)])
def test_a_forest_on_the_features_of_an_encoder_is_part_of_the_verdict(project: Project, seed: str) -> None:
    project.write("train.py", DATA + TORCH + ON_FEATURES.replace("SEED", seed))
    done = project.run("train.py", "--runs", "2")
    (group,) = done.json["groups"]
    torch, sklearn = first_run(done)["ranks"]
    assert (torch["rank"], torch["framework"], torch["steps"]) == (0, "torch", 5)
    assert (sklearn["rank"], sklearn["framework"], sklearn["steps"]) == (1, "sklearn", 2)
    if seed == "0":
        assert done.code == 0, done.out
    else:
        assert done.code == 1, done.out
        assert group["first_difference"]["site"] == "RandomForestClassifier.fit"


EVERY = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.utils import all_estimators
from detaudit.recorder.frameworks import estimators
from detaudit.recorder.training import digest
generator = np.random.RandomState(0)
x, y = np.abs(generator.normal(size=(40, 6))), generator.randint(0, 2, 40)
reader = estimators.ArrayReader()
for name, kind in all_estimators():
    try:
        np.random.seed(0)
        model = kind().fit(x, y)
    except Exception:
        continue
    print(name, digest.of_parts(reader.parts(estimators.read(model))))
"""


@pytest.mark.slow
def test_every_estimator_has_the_same_digest_in_another_process() -> None:
    runs = [subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True, check=True) for _ in "12"]
    one, other = (run.stdout.splitlines() for run in runs)
    assert len(one) > 150
    assert one == other
