"""Recipes and flags: what ships is right, what users write is checked, names are helped with."""

import json
from pathlib import Path

import pytest

from detaudit.errors import ConfigError, ExitCode, UnknownNameError, UsageError
from detaudit.recipe import yamlfile
from detaudit.recipe.flags import Catalogue, load_catalogue
from detaudit.recipe.recipes import RecipeFile, load_recipe, names
from detaudit.recorder.patches import PATCHES


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def test_the_first_ten_flags_are_there(catalogue: Catalogue) -> None:
    assert set(catalogue.ids) >= {
        "python-hash-seed",
        "python-random-seed",
        "numpy-seed",
        "torch-seed",
        "tensorflow-seed",
        "numpy-default-rng",
        "torch-deterministic-algorithms",
        "torch-cudnn-benchmark-off",
        "tensorflow-op-determinism",
        "system-aslr-off",
    }


def test_every_flag_does_something_and_says_where_it_comes_from(catalogue: Catalogue) -> None:
    for flag in catalogue:
        assert flag.env or flag.call or flag.set or flag.patch or flag.launcher, flag.id
        assert flag.runs_inside == bool(flag.call or flag.set or flag.patch), flag.id
        assert not flag.patch or flag.patch in PATCHES
        assert flag.source
        assert flag.in_script


def test_an_order_holds_the_seed_and_names_the_module(catalogue: Catalogue) -> None:
    module, order = catalogue.get("numpy-seed").order(42).split("\t")
    assert module == "numpy.random"
    assert json.loads(order) == {"id": "numpy-seed", "call": {"numpy.random.seed": [42]}}
    assert catalogue.get("python-hash-seed").environment(42) == {"PYTHONHASHSEED": "42"}


def test_shipped_recipes(catalogue: Catalogue) -> None:
    assert names() == ["all", "none", "seeds"]
    assert load_recipe("none", catalogue).flags == ()
    assert {flag.id for flag in load_recipe("all", catalogue).flags} == catalogue.automatic
    assert {cause for flag in load_recipe("seeds", catalogue).flags for cause in flag.causes} == {
        "seed",
        "hash",
        "order",
    }


def test_flags_are_added_with_what_they_require_and_taken_away(catalogue: Catalogue) -> None:
    added = load_recipe("none", catalogue, add=["tensorflow-op-determinism"])
    assert {"tensorflow-seed", "python-random-seed"} < {flag.id for flag in added.flags}
    assert added.name == "none +tensorflow-op-determinism"
    assert added.options == ("--flag", "tensorflow-op-determinism")
    less = load_recipe("seeds", catalogue, remove=["torch-seed"])
    assert "torch-seed" not in {flag.id for flag in less.flags}
    assert less.name == "seeds -torch-seed"
    assert less.options == ("--recipe", "seeds", "--no-flag", "torch-seed")


def test_the_seed_asked_for_wins_over_the_files(catalogue: Catalogue, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: mine\nflags: [torch-seed]\nextends: [seeds]\nseed: 5\n")
    assert load_recipe(str(mine), catalogue).seed == 5
    assert load_recipe(str(mine), catalogue, seed=6).seed == 6
    assert len(load_recipe(str(mine), catalogue).flags) == 5


def test_unknown_names_get_the_nearest(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_recipe("none", catalogue, add=["torch-determinstic"])
    assert "'torch-deterministic-algorithms'" in caught.value.cure
    assert caught.value.exit_code == ExitCode.USAGE
    with pytest.raises(UnknownNameError, match="no-such"):
        load_recipe("no-such.yaml", catalogue)


def test_a_recipe_that_extends_itself(catalogue: Catalogue, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"name: mine\nflags: []\nextends: [{mine}]\n")
    with pytest.raises(ConfigError, match="extends itself"):
        load_recipe(str(mine), catalogue)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: a\nflags: [x\n", ":3:1"),
        ("name: a\nflags: 3\n", ":2:8"),
        ("name: a\nflags: []\nseed: one\n", ":3:7"),
        ("name: a\nextends: [1]\nflags: []\n", ":2:11"),
        ("a: b: c\n", ":1:5"),
        ("flags: []\n", ":1:1"),
        ("", ":"),
        ("{{", ":1:"),
    ],
)
def test_broken_yaml_has_a_line_and_a_column(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        yamlfile.load(path, RecipeFile)
    assert f"mine.yaml{place}" in caught.value.message


def test_a_flag_that_is_there_twice(tmp_path: Path) -> None:
    row = "- {id: a, title: t, framework: torch, when: after-import, causes: [], in_script: s, source: s}\n"
    (tmp_path / "flags.yaml").write_text(row * 2)
    with pytest.raises(ConfigError, match="'a' is there twice"):
        load_catalogue(tmp_path / "flags.yaml")


def test_a_flag_that_takes_a_value(catalogue: Catalogue) -> None:
    recipe = load_recipe("none", catalogue, add=["torch-on-cpu=encoder.0", "torch-on-cpu=decoder", "torch-seed"])
    assert [flag.id for flag in recipe.flags] == ["torch-seed", "torch-on-cpu=decoder", "torch-on-cpu=encoder.0"]
    assert json.loads(recipe.flags[-1].order(0).split("\t")[1])["value"] == "encoder.0"
    assert not [flag.id for flag in catalogue if flag.parameter and flag.action in ("auto", "fallback")]
    for wrong, message in (("torch-on-cpu", "needs a value"), ("torch-seed=3", "takes no value")):
        with pytest.raises(UsageError, match=message):
            load_recipe("none", catalogue, add=[wrong])


def test_a_variable_may_name_a_folder_of_the_run(catalogue: Catalogue) -> None:
    variables = catalogue.get("torch-fresh-compile-cache").environment(0, "/runs/live/scratch")
    assert variables["TORCHINDUCTOR_CACHE_DIR"] == "/runs/live/scratch/inductor"
