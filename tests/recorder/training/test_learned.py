"""What an estimator learned has a digest of its own: neither its parameters nor addresses or times are part of it."""

import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from detaudit.recorder.frameworks.estimators import UndigestedError, read

X, Y = load_iris(return_X_y=True)


def digest(value: Any) -> list[bytes]:
    return [array.tobytes() + f"{array.dtype}{array.shape}".encode() for array in read(value)]


class Held(BaseEstimator):  # type: ignore[misc]
    """An estimator with whatever a test sets."""

    def __init__(self, given: Any = None) -> None:
        self.given = given


def holding(**attributes: Any) -> Held:
    held = Held()
    held.__dict__.update(attributes)
    return held


def masked(hidden: float) -> Any:
    return np.ma.MaskedArray([1.0, hidden], mask=[False, True])


def padded(garbage: int) -> Any:
    array = np.frombuffer(bytes([garbage]) * 16, np.uint8).view({"names": ["a"], "formats": ["f8"], "itemsize": 16})
    return array.copy()


def cyclic(value: float) -> Any:
    found: list[Any] = [value]
    found.append(found)
    return found


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "a number": (1.0, 1.0000000000000002),
    "the sign of zero": (0.0, -0.0),
    "a text": ("a", "b"),
    "the type of a number": (1, 1.0),
    "an element of an array": (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "the dtype of an array": (np.array([1, 2], "i4"), np.array([1, 2], "i8")),
    "the shape of an array": (np.zeros((2, 3)), np.zeros((3, 2))),
    "an element of an array of objects": (np.array(["a", None], object), np.array(["b", None], object)),
    "a time in an array": (np.array(["2020"], "M8[Y]"), np.array(["2021"], "M8[Y]")),
    "a mask": (masked(0), np.ma.MaskedArray([1.0, 0.0])),
    "the last bits of a long number": (np.longdouble(1), np.nextafter(np.longdouble(1), np.longdouble(2))),
    "a sparse matrix": (sparse.csr_matrix([[1.0, 0.0]]), sparse.csr_matrix([[0.0, 1.0]])),
    "a value of a dict": ({"a": [1]}, {"a": [2]}),
    "an element of a set": ({"a", "b"}, {"a", "c"}),
    "the order of a list": (["a", "b"], ["b", "a"]),
    "the end of a cycle": (cyclic(1), cyclic(2)),
    "an attribute of an object": (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)),
    "what a function closes over": (closing_over(1), closing_over(2)),
    "the times of survival": (np.array([1.0]), np.array([2.0])),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_was_learned_differs(name: str) -> None:
    attribute = "event_times_" if "survival" in name else "learned_"
    one, other = (digest(holding(**{attribute: value})) for value in DIFFERENT[name])
    assert one != other


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a parameter": ({"given": 1}, {"given": 2}),
    "a generator": ({"g_": np.random.RandomState(1)}, {"g_": np.random.RandomState(2)}),
    "a new generator": ({"g_": np.random.default_rng(1)}, {"g_": np.random.default_rng(2)}),
    "a seed": ({"_random_seed": 1}, {"_random_seed": 2}),
    "the address of the stop words": ({"_stop_words_id": 1}, {"_stop_words_id": 2}),
    "what a callback logged": ({"_skl_callbacks": [{"run": "8e86"}]}, {"_skl_callbacks": [{"run": "43f6"}]}),
    "the run of MLflow": ({"_mlflow_run_id": "8e86"}, {"_mlflow_run_id": "43f6"}),
    "the time of a refit": ({"refit_time_": 1.0}, {"refit_time_": 2.0}),
    "the times of a search": ({"r_": {"mean_fit_time": [1.0]}}, {"r_": {"mean_fit_time": [2.0]}}),
    "the order of attributes": ({"a_": 1, "b_": 2}, {"b_": 2, "a_": 1}),
    "the order of a dict": ({"a_": {"x": [1], "y": [2]}}, {"a_": {"y": [2], "x": [1]}}),
    "what a mask hides": ({"a_": masked(1)}, {"a_": masked(2)}),
    "the layout of an array": ({"a_": np.zeros((2, 3))}, {"a_": np.zeros((2, 3), order="F")}),
    "an address": ({"a_": object()}, {"a_": object()}),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_count(name: str) -> None:
    one, other = (digest(holding(**attributes)) for attributes in SAME[name])
    assert one == other


def test_bytes_between_fields_do_not_count() -> None:
    one, other = padded(1), padded(2)
    one["a"] = other["a"] = 0.5
    assert one.tobytes() != other.tobytes()
    assert digest(holding(a_=one)) == digest(holding(a_=other))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_forest_is_its_trees(n_jobs: int) -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    again = RandomForestClassifier(5, random_state=0, n_jobs=n_jobs, verbose=0).fit(X, Y)
    assert digest(forest) == digest(again)
    again.estimators_[3].tree_.value[0, 0, 0] += 1e-9
    assert digest(forest) != digest(again)


def test_the_steps_of_a_pipeline_are_parameters_that_learn() -> None:
    one, other = (make_pipeline(StandardScaler(), KNeighborsClassifier(algorithm="kd_tree")) for _ in range(2))
    assert digest(one.fit(X, Y)) == digest(other.fit(X, Y))
    other.steps[0][1].mean_ = other.steps[0][1].mean_ + 1e-9
    assert digest(one) != digest(other)


def test_a_search_is_compared_without_its_times() -> None:
    one, other = (GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}).fit(X, Y) for _ in "12")
    assert one.cv_results_["mean_fit_time"].tolist() != other.cv_results_["mean_fit_time"].tolist()
    assert digest(one) == digest(other)


def test_an_attribute_without_a_digest_is_named() -> None:
    with pytest.raises(UndigestedError, match=r"^Held\.parts_\[1\]\.a: .*lock"):
        read(holding(parts_=[1, {"a": threading.Lock()}]))


class Dispatcher:
    """As numba's, which has another ID in each process, and pickles it."""

    __module__ = "numba.core.dispatcher"

    def __init__(self, function: Callable[..., Any], identity: str) -> None:
        self.py_func, self.identity = function, identity


def test_a_compiled_function_is_the_one_that_was_compiled() -> None:
    first, again, other = (
        digest(holding(metric_=Dispatcher(function, identity)))
        for function, identity in ((masked, "1f"), (masked, "a7"), (padded, "1f"))
    )
    assert first == again
    assert first != other


def test_of_a_search_by_flaml_its_best_model_counts_and_no_time_of_a_trial() -> None:
    class AutoML(Held):
        best_estimator, best_config, best_loss = "rf", {"depth": 3}, 0.25

        @property
        def model(self) -> Any:
            return types.SimpleNamespace(estimator=self.forest, train_time=self.seconds)

    AutoML.__module__, AutoML.__qualname__ = "flaml.automl.automl", "AutoML"

    def searched(seconds: float, seed: int) -> AutoML:
        search = AutoML()
        search.forest = RandomForestClassifier(3, random_state=seed).fit(X, Y)
        search.seconds, search.history = seconds, [("rf", seconds)]
        return search

    assert digest(searched(0.5, 0)) == digest(searched(0.75, 0))
    assert digest(searched(0.5, 0)) != digest(searched(0.5, 1))


def test_of_a_search_by_tpot_its_best_pipeline_counts_and_not_its_cluster() -> None:
    class TPOTEstimator(Held):
        pass

    TPOTEstimator.__module__, TPOTEstimator.__qualname__ = "tpot.tpot_estimator.estimator", "TPOTEstimator"

    def searched(seed: int) -> TPOTEstimator:
        search = TPOTEstimator()
        search.fitted_pipeline_ = RandomForestClassifier(3, random_state=seed).fit(X, Y)
        search.cluster = weakref.ref(search)
        return search

    assert digest(searched(0)) == digest(searched(0)) != digest(searched(1))


def test_parameters_may_be_named_by_a_method_of_instances() -> None:
    class Detector(Held):
        def _get_param_names(cls) -> list[str]:  # noqa: N805
            return ["given"]

    detector, other = Detector(1), Detector(2)
    detector.scores_ = other.scores_ = np.arange(3)
    assert digest(detector) == digest(other)
