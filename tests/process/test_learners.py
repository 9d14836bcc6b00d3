"""Libraries whose models learn in one method are recorded by what that method leaves in them."""

from pathlib import PurePath

import pytest

from tests.process.conftest import Project
from tests.process.test_fits import first_run, fits, logs_of

LIBRARIES = {
    # As in their sources: a model makes an object of what was fitted, fits itself, or is trained when it is made.
    "statsmodels": (
        "statsmodels/base/model.py",
        """
        class Results:
            def __init__(self, model, params, **kwd):
                self.model, self.params = model, params
        class OLSResults(Results):
            pass
        """,
        "from statsmodels.base.model import OLSResults\nheld = OLSResults(None, numpy.array([1.0, DRAWN]))\n",
        "OLSResults",
    ),
    "prophet": (
        "prophet/forecaster.py",
        """
        class Prophet:
            def __init__(self):
                self.params, self.fit_kwargs = {}, object()
            def fit(self, df):
                self.params = {"k": df[:1], "beta": df}
                return self
            def predict(self, df):
                return self.params["beta"] + df
        """,
        "from prophet.forecaster import Prophet\nheld = Prophet().fit(numpy.array([1.0, DRAWN]))\n",
        "Prophet.fit",
    ),
    "gensim": (
        "gensim/models/word2vec.py",
        """
        class Vectors:
            pass
        class Word2Vec:
            def __init__(self, sentences):
                self.wv = Vectors()
                self.train(sentences)
            def train(self, sentences):
                self.wv.vectors, self.wv.index_to_key = sentences, ["a", "b"]
        class FastText(Word2Vec):
            pass
        """,
        "from gensim.models.word2vec import FastText\nheld = FastText(numpy.array([1.0, DRAWN]))\n",
        "FastText.train",
    ),
    "lifelines": (
        "lifelines/fitters.py",
        """
        class BaseFitter:
            def __init__(self):
                self._time_fit_was_called = None
        class Cox(BaseFitter):
            def fit(self, durations):
                self._model = Semiparametric()
                self._model.fit(durations)
                return self
        class Semiparametric(BaseFitter):
            def fit(self, durations):
                self.params_, self._time_fit_was_called = durations, object()
        """,
        "from lifelines.fitters import Cox\nheld = Cox().fit(numpy.array([1.0, DRAWN]))\n",
        "Cox.fit",
    ),
    "implicit": (
        "implicit/recommender_base.py",
        """
        class RecommenderBase:
            pass
        """,
        "from implicit.recommender_base import RecommenderBase\n"
        "class Own(RecommenderBase):\n    def fit(self, seen):\n        self.item_factors = seen\n"
        "held = Own()\nheld.fit(numpy.array([1.0, DRAWN]))\n",
        "Own.fit",
    ),
    "pymc": (
        "pymc/__init__.py",
        """
        from arviz.data.inference_data import Draws, InferenceData
        def sample(draws):
            return InferenceData(Draws({"mean": Draws(draws)}), object())
        """,
        "import pymc\nheld = pymc.sample(numpy.array([1.0, DRAWN]))\n",
        "pymc.sample",
    ),
}

ARVIZ = """
class Draws:
    def __init__(self, held):
        self.data_vars = self.values = held
class InferenceData:
    def __init__(self, posterior, sample_stats):
        self.posterior, self.sample_stats = posterior, sample_stats
"""


def test_a_saved_model_that_predicts_is_compared(project: Project) -> None:
    project.write("prophet/__init__.py", "")
    project.write("prophet/forecaster.py", LIBRARIES["prophet"][1])
    saved = "from prophet.forecaster import Prophet\nmodel = Prophet()\nmodel.params = {'beta': numpy.ones(2)}\n"
    project.write("train.py", "import numpy\n" + saved + "model.predict(numpy.ones(2))\n")
    done = project.run("train.py", "--runs", "2")
    assert (done.code, first_run(done)["ranks"][0]["framework"]) == (0, "prophet inference")


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_library_learned_is_compared(project: Project, library: str) -> None:
    path, source, script, name = LIBRARIES[library]
    for folder in list(PurePath(path).parents)[:-1]:
        project.write(f"{folder}/__init__.py", "")
    project.write(path, source)
    for arviz in ("arviz/__init__.py", "arviz/data/__init__.py"):
        project.write(arviz, "")
    project.write("arviz/data/inference_data.py", ARVIZ)
    project.write("train.py", "import numpy\n" + script.replace("DRAWN", "0.5"))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    run = first_run(done)
    assert [(rank["framework"], rank["steps"]) for rank in run["ranks"]] == [(library, 1)]
    assert fits(logs_of(project, run)) == [name]
    assert run["warnings"] == []
    project.write("train.py", "import numpy\n" + script.replace("DRAWN", "numpy.random.default_rng().random()"))
    assert project.run("train.py", "--runs", "2").code == 1
