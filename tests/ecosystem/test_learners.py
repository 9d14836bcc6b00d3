"""Libraries whose models learn in one method are recorded by what their models learned."""

import pytest

from tests.process.conftest import Project
from tests.process.test_fits import DATA, first_run, fits, logs_of

pytestmark = pytest.mark.ecosystem

LIBRARIES = {
    "statsmodels": ("""
        import statsmodels.api
        generator = numpy.random.default_rng(SEED)
        chosen = generator.integers(0, len(x), len(x))
        statsmodels.api.OLS(y[chosen], statsmodels.api.add_constant(x[chosen])).fit()
        statsmodels.api.Logit(y[chosen] > 0, x[chosen]).fit(disp=0)
    """, ("batch", 1)),
    "arch": ("""
        from arch import arch_model
        returns = numpy.random.default_rng(SEED).normal(size=300)
        arch_model(returns, rescale=False).fit(disp="off")
    """, ("batch", 1)),
    "prophet": ("""
        import pandas, prophet
        days = pandas.date_range("2024-01-01", periods=100)
        noise = numpy.random.default_rng(SEED).normal(size=100)
        prophet.Prophet().fit(pandas.DataFrame({"ds": days, "y": numpy.arange(100) / 9 + noise}))
    """, ("batch", 1)),
    "gensim": ("""
        from gensim.corpora import Dictionary
        from gensim.models import Doc2Vec, LdaModel, Word2Vec
        from gensim.models.doc2vec import TaggedDocument
        texts = [[str(int(4 * value)) for value in row] for row in x]
        Word2Vec(texts, vector_size=4, min_count=1, workers=1, seed=SEED)
        Doc2Vec([TaggedDocument(text, [0]) for text in texts], vector_size=4, min_count=1, workers=1, seed=1)
        words = Dictionary(texts)
        LdaModel([words.doc2bow(text) for text in texts], 2, id2word=words, random_state=0)
    """, ("update", 1)),
    "lifelines": ("""
        import lifelines, pandas
        table = pandas.DataFrame(x[:, :2], columns=["a", "b"])
        table["weeks"] = 1 + numpy.random.default_rng(SEED).random(len(x))
        lifelines.CoxPHFitter().fit(table, "weeks")
        lifelines.KaplanMeierFitter().fit(table["weeks"])
        lifelines.WeibullFitter().fit(table["weeks"])
    """, ("batch", 1)),
    "implicit": ("""
        import scipy.sparse
        from implicit.als import AlternatingLeastSquares
        from implicit.nearest_neighbours import CosineRecommender
        seen = scipy.sparse.csr_matrix(x > x.mean())
        AlternatingLeastSquares(4, iterations=2, num_threads=1, random_state=SEED).fit(seen, show_progress=False)
        CosineRecommender().fit(seen, show_progress=False)
    """, ("update", 1)),
    "pymc": ("""
        import pymc
        with pymc.Model():
            mean = pymc.Normal("mean", 0, 1)
            pymc.Normal("y", mean, 1, observed=y[:20])
            pymc.sample(20, tune=20, chains=2, cores=2, random_seed=SEED, progressbar=False)
    """, ("rng", 1)),
}  # fmt: skip


def written(project: Project, library: str, seed: str) -> None:
    text = LIBRARIES[library][0].replace("        ", "    ").replace("SEED", seed)
    project.write("train.py", DATA + "    import numpy\n" + text)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_library_learned_is_compared(project: Project, library: str) -> None:
    pytest.importorskip(library)
    written(project, library, "0")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out + done.err
    run = first_run(done)
    assert run["warnings"] == []
    assert [rank["framework"] for rank in run["ranks"]] == [library]
    assert run["ranks"][0]["steps"] == len(fits(logs_of(project, run))) > 0
    assert run["ranks"][0]["sum_of_weights"] != 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_seed_from_the_system_is_seen(project: Project, library: str) -> None:
    pytest.importorskip(library)
    written(project, library, "int.from_bytes(os.urandom(2), 'little')")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out + done.err
    found = done.json["groups"][0]["first_difference"]
    assert (found["stage"], found["step"]) == LIBRARIES[library][1]
