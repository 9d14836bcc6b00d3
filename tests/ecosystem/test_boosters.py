"""XGBoost, LightGBM and CatBoost are recorded through their functions, their boosters and their estimators."""

import pytest

from tests.process.conftest import Project
from tests.process.test_fits import DATA, first_run, fits, logs_of

pytestmark = pytest.mark.ecosystem

LIBRARIES = {
    "xgboost": ("""
        import xgboost
        options = {"max_depth": 3, "objective": "multi:softprob", "num_class": 3, "subsample": 0.5, "seed": SEED}
        data = xgboost.DMatrix(x, y)
        xgboost.train({**options, "nthread": 2}, data, 3)
        booster = xgboost.Booster(options, [data])
        booster.update(data, 0)
        xgboost.cv(options, data, 2)
        xgboost.XGBClassifier(n_estimators=3, subsample=0.5, random_state=SEED).fit(x, y)
    """, ["xgboost.train", "Booster.update", "xgboost.cv", "XGBClassifier.fit"]),
    "lightgbm": ("""
        import lightgbm
        options = {"objective": "multiclass", "num_class": 3, "bagging_fraction": 0.5, "bagging_freq": 1, "verbose": -1}
        options["seed"] = SEED
        data = lightgbm.Dataset(x, y, free_raw_data=False)
        lightgbm.train({**options, "num_threads": 2}, data, 3)
        lightgbm.cv(options, data, 2)
        lightgbm.LGBMClassifier(
            n_estimators=3, subsample=0.5, subsample_freq=1, random_state=SEED, verbose=-1
        ).fit(x, y)
    """, ["lightgbm.train", "lightgbm.cv", "LGBMClassifier.fit"]),
    "catboost": ("""
        import catboost
        options = {"iterations": 3, "verbose": 0, "allow_writing_files": False, "random_seed": SEED}
        catboost.CatBoostClassifier(**options).fit(x, y)
        catboost.train(catboost.Pool(x, y), {**options, "loss_function": "MultiClass"})
    """, ["CatBoostClassifier.fit", "CatBoost.fit"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_models_are_compared_without_their_times_and_names(project: Project, name: str) -> None:
    pytest.importorskip(name)
    text, names = LIBRARIES[name]
    project.write("train.py", DATA + text.replace("        ", "    ").replace("SEED", "0"))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out + done.err
    run = first_run(done)
    assert run["warnings"] == []
    assert fits(logs_of(project, run)) == names
    assert [(rank["framework"], rank["steps"]) for rank in run["ranks"]] == [(name, len(names))]
    assert run["ranks"][0]["sum_of_weights"] != 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_models_with_different_seeds_differ(project: Project, name: str) -> None:
    pytest.importorskip(name)
    seed = 'int.from_bytes(os.urandom(2), "little")'
    project.write("train.py", DATA + LIBRARIES[name][0].replace("        ", "    ").replace("SEED", seed))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out + done.err
    found = done.json["groups"][0]["first_difference"]
    seeded = found["stage"] == "rng"  # the seed is among what a function is called with, or a parameter of the model
    assert (found["step"], found["site"]) == (1, None if seeded else LIBRARIES[name][1][0])
    assert seeded or found["stage"] == "update"


def test_a_seed_among_parameters_is_a_seed_and_no_data(project: Project) -> None:
    pytest.importorskip("lightgbm")
    project.write(
        "train.py",
        DATA
        + """
    import lightgbm
    seed = os.urandom(1)[0]
    options = {"bagging_seed": seed, "bagging_fraction": 0.5, "bagging_freq": 1, "num_threads": 1, "verbose": -1}
    lightgbm.train(options, lightgbm.Dataset(x, y), 3)
    """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out
    group = done.json["groups"][0]
    assert group["first_difference"]["stage"] == "rng"
    assert "lightgbm.train(bagging_seed)" in [source["call"] for source in group["sources"]]


@pytest.mark.parametrize("noise", ["0", "os.urandom(1)[0]"])
def test_a_refit_is_a_fit(project: Project, noise: str) -> None:
    pytest.importorskip("lightgbm")
    project.write(
        "train.py",
        DATA
        + f"""
    import lightgbm
    options = {{"num_threads": 1, "verbose": -1}}
    booster = lightgbm.train(options, lightgbm.Dataset(x, y), 3)
    booster = booster.refit(x, y + {noise})
    """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == (noise != "0"), done.out
    assert first_run(done)["steps"] == 2
