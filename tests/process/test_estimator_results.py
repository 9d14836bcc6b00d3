"""What an estimator has after its fit is a result: parameters that it set, numbers named like times, later edits."""

import pytest

from tests.process.conftest import Project

BEGIN = """
    import gc
    import random
    import time
    import numpy as np
    from sklearn.base import BaseEstimator
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    x, y = load_iris(return_X_y=True)
    number = {number}

    class Own(BaseEstimator):
        def __init__(self, alpha=None, table=None):
            self.alpha, self.table = alpha, table

        def fit(self, x, y=None):
            self.mean_ = x.mean(0)
            self.learn(x)
            return self

        def score(self, x, y=None):
            return 1.0

"""

FITTED = {
    "a parameter that the fit sets": "self.alpha = number",
    "a parameter that the fit writes to": "self.table[:] = number",
    "a lifetime": "self.mean_lifetime_ = 10 * number",
    "a half-time": "self.half_time_ = 10 * number",
    "the time of an arrival": "self.arrival_time_ = number",
}
LATER = {
    "a parameter set in a search": """
    Own.learn = lambda self, x: setattr(self, "table", number)
    search = GridSearchCV(Own(), {"alpha": [1, 2]}).fit(x, y)
    """,
    "weights replaced before it is freed": """
    def fit():
        model = LogisticRegression(max_iter=20).fit(x, y)
        model.coef_ = model.coef_ + number
    fit()
    """,
    "weights written to in a cycle that is freed": """
    model = LogisticRegression(max_iter=20).fit(x, y)
    model.coef_[:] = number
    model.itself = model
    del model
    gc.collect()
    """,
    "a parameter set after the fit": """
    model = LogisticRegression(max_iter=20).fit(x, y)
    model.set_params(C=1 + number)
    """,
}
CLOCKS = {
    "a clock": "self.fit_time_ = time.perf_counter() - began",
    "clocks": "self.epoch_times_ = [time.perf_counter() - began] * 3; self.started_at_ = time.time()",
}


def code_of(name: str) -> str:
    if name in LATER:
        return LATER[name]
    learned = f"began = time.perf_counter(); {FITTED.get(name) or CLOCKS[name]}"
    return f"""
    def learn(self, x):
        {learned}
    Own.learn = learn
    model = Own(table=np.zeros(3)).fit(x)
    """


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FITTED, *LATER])
@pytest.mark.parametrize("number", ["0.5", "random.SystemRandom().random()"], ids=["equal", "differs"])
def test_what_an_estimator_has_after_its_fit_is_compared(project: Project, name: str, number: str) -> None:
    project.write("train.py", BEGIN.replace("{number}", number) + code_of(name))
    done = project.run("train.py", "--runs", "2")
    assert done.code == (number != "0.5"), done.out


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOCKS)
def test_how_long_a_fit_took_is_no_result(project: Project, name: str) -> None:
    project.write("train.py", BEGIN.replace("{number}", "0.5") + code_of(name))
    assert project.run("train.py", "--runs", "2").code == 0


@pytest.mark.full
def test_an_estimator_with_nothing_but_clocks_is_inconclusive(project: Project) -> None:
    project.write(
        "train.py",
        """
        import time
        from sklearn.base import BaseEstimator

        class Nothing(BaseEstimator):
            def fit(self, x):
                self.fit_time_ = 1e-3 * (time.perf_counter() % 1)
                return self

        Nothing().fit([[1.0]])
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125, done.out
