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
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_library_learned_is_compared(project: Project, library: str) -> None:
    path, source, script, name = LIBRARIES[library]
    for folder in list(PurePath(path).parents)[:-1]:
        project.write(f"{folder}/__init__.py", "")
    project.write(path, source)
    project.write("train.py", "import numpy\n" + script.replace("DRAWN", "0.5"))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    run = first_run(done)
    assert [(rank["framework"], rank["steps"]) for rank in run["ranks"]] == [(library, 1)]
    assert fits(logs_of(project, run)) == [name]
    assert run["warnings"] == []
    project.write("train.py", "import numpy\n" + script.replace("DRAWN", "numpy.random.default_rng().random()"))
    assert project.run("train.py", "--runs", "2").code == 1
