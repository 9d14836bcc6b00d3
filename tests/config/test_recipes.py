"""Recipes: those that ship are valid, those that users write are checked, unknown names get a hint."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from detaudit.config import choice, recipes, yamlfile
from detaudit.config.flags import SEARCHED, Catalogue, load_catalogue
from detaudit.config.recipes import RecipeFile, load_recipe, names, read_recipe
from detaudit.config.yamlfile import configs_dir
from detaudit.errors import ConfigError, ExitCode, UnknownNameError, UsageError


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def test_an_order_has_the_seed_and_the_module(catalogue: Catalogue) -> None:
    module, order = catalogue.get("numpy-seed").order(42).split("\t")
    assert module == "numpy.random"
    assert json.loads(order) == {"id": "numpy-seed", "call": {"numpy.random.seed": [42]}}
    assert catalogue.get("python-hash-seed").environment(42) == {"PYTHONHASHSEED": "42"}


def test_shipped_recipes(catalogue: Catalogue) -> None:
    assert {"all", "none", "seeds"} < set(names())
    assert load_recipe("none", catalogue).flags == ()
    assert {cause for flag in load_recipe("seeds", catalogue).flags for cause in flag.causes} == {
        "seed",
        "hash",
        "order",
    }


def test_flags_are_added_with_what_they_require_and_removed(catalogue: Catalogue) -> None:
    added = load_recipe("none", catalogue, add=["tensorflow-op-determinism"])
    assert {"tensorflow-seed", "python-random-seed"} < {flag.id for flag in added.flags}
    assert added.name == "none +tensorflow-op-determinism"
    assert added.options == ("--flag", "tensorflow-op-determinism")
    less = load_recipe("seeds", catalogue, remove=["torch-seed"])
    assert "torch-seed" not in {flag.id for flag in less.flags}
    assert less.name == "seeds -torch-seed"
    assert less.options == ("--recipe", "seeds", "--no-flag", "torch-seed")


def test_the_seed_option_overrides_the_file(catalogue: Catalogue, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: mine\nflags: [torch-seed]\nextends: [seeds]\nseed: 5\n")
    assert load_recipe(str(mine), catalogue).seed == 5
    assert load_recipe(str(mine), catalogue, seed=6).seed == 6
    assert len(load_recipe(str(mine), catalogue).flags) == 5


def test_unknown_names_get_the_nearest_as_a_hint(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_recipe("none", catalogue, add=["torch-determinstic"])
    assert "'torch-deterministic-" in caught.value.hint
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
def test_invalid_yaml_is_reported_with_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        yamlfile.load(path, RecipeFile)
    assert f"mine.yaml{place}" in caught.value.message


CONFLICT = ["torch-deterministic-warn", "torch-deterministic-algorithms"]


def test_conflicting_flags_are_an_error(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe("none", catalogue, add=CONFLICT)
    assert "'torch-deterministic-algorithms' and 'torch-deterministic-warn'" in caught.value.message
    assert "--no-flag torch-deterministic-warn" in caught.value.hint
    resolved = load_recipe("all", catalogue, add=CONFLICT[:1], remove=CONFLICT[1:])
    assert "torch-deterministic-warn" in {flag.id for flag in resolved.flags}


def test_a_flag_that_is_set_by_hand_only_comes_with_the_code_to_add(catalogue: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot set 'torch-loader-generator'") as caught:
        load_recipe("none", catalogue, add=["torch-loader-generator"])
    assert "generator=torch.Generator().manual_seed(0)" in caught.value.hint
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: mine\nflags:\n  - torch-seed\n  - torch-loader-generator\n")
    with pytest.raises(UsageError, match=r"mine.yaml:4:5: detaudit cannot set"):
        load_recipe(str(mine), catalogue)


@pytest.mark.parametrize(
    ("text", "place", "nearest"),
    [
        ("name: mine\nflags:\n  - torch-seed\n  - torch-sede\n", ":4:5: unknown flag 'torch-sede'", "'torch-seed'"),
        ("name: mine\nflags: [numpy-seed, TF_CUDNN_USE_FRONTEND]\n", ":2:21: 'TF_CUDNN", "tensorflow-op-determinism"),
        ("name: mine\nextends: [sedes]\nflags: []\n", ":2:11: unknown recipe 'sedes'", "'seeds'"),
    ],
)
def test_unknown_names_in_a_file_are_reported_with_line_and_column(
    catalogue: Catalogue, tmp_path: Path, text: str, place: str, nearest: str
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    with pytest.raises(UnknownNameError) as caught:
        load_recipe(str(mine), catalogue)
    assert f"mine.yaml{place}" in caught.value.message
    assert nearest in caught.value.hint


@pytest.mark.parametrize("name", names())
def test_every_shipped_recipe_can_be_loaded_and_is_named_like_its_file(catalogue: Catalogue, name: str) -> None:
    assert read_recipe(name).name == name
    assert read_recipe(name).title
    recipe = load_recipe(name, catalogue)
    assert {needed for flag in recipe.flags for needed in flag.requires} <= {flag.id for flag in recipe.flags}


def test_the_documented_recipes_exist() -> None:
    assert set(names()) >= {
        "none", "seeds", "seeds-strict", "torch-cpu", "torch-cuda", "torch-cuda-warn", "torch-compile", "torch-ddp",
        "tensorflow-cpu", "tensorflow-gpu", "horovod", "jax", "inference", "cross-machine-cpu", "diagnose", "all",
    }  # fmt: skip


def test_named_flags_are_applied_without_a_gpu_too(catalogue: Catalogue) -> None:
    ids = {flag.id for flag in load_recipe("all", catalogue, add=["cuda-launch-blocking"], devices={"cpu"}).flags}
    assert "cuda-launch-blocking" in ids
    assert "torch-cudnn-benchmark-off" not in ids
    assert "torch-cudnn-benchmark-off" in {f.id for f in load_recipe("torch-cuda", catalogue, devices={"cpu"}).flags}


@pytest.mark.parametrize(
    ("files", "devices"),
    [
        ({"null", "nvram"}, {"cpu"}),
        ({"nvidiactl", "nvidia0", "nvidia-uvm"}, {"cpu", "gpu"}),
        ({"nvidia0", "nvidia1"}, {"cpu", "gpu", "multi-gpu"}),
        ({"kfd"}, {"cpu", "gpu", "multi-gpu"}),
    ],
)
def test_devices_of_a_machine(files: set[str], devices: set[str]) -> None:
    assert choice.devices(files) == devices


def test_the_schema_file_is_up_to_date() -> None:
    path = configs_dir() / recipes.FILE
    if path.read_text() != recipes.text():
        path.with_suffix(".actual").write_text(recipes.text())
        pytest.fail(f"{path} is outdated; if the change is intended, copy {path.with_suffix('.actual').name} over it")


def recipe_validator() -> Any:
    found = json.loads((configs_dir() / recipes.FILE).read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("name", names())
def test_every_shipped_recipe_matches_the_schema(name: str) -> None:
    recipe_validator().validate(yaml.safe_load((configs_dir() / "recipes" / f"{name}.yaml").read_text()))


@pytest.mark.parametrize(
    "data",
    [
        {"name": "a"},
        {"flags": []},
        {"name": "", "flags": []},
        {"name": "a", "flags": "some"},
        {"name": "a", "flags": [1]},
        {"name": "a", "flags": [], "seed": -1},
        {"name": "a", "flags": [], "seed": 2**32},
        {"name": "a", "flags": [], "flagz": []},
    ],
)
def test_detaudit_rejects_what_the_schema_rejects(tmp_path: Path, data: dict[str, object]) -> None:
    assert not recipe_validator().is_valid(data)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError):
        read_recipe(str(tmp_path / "mine.yaml"))


def test_a_duplicate_flag_is_an_error(tmp_path: Path) -> None:
    row = "- {id: a, title: t, framework: torch, when: after-import, causes: [], by_hand: s, source: s}\n"
    (tmp_path / "flags.yaml").write_text(row * 2)
    with pytest.raises(ConfigError, match="duplicate flag 'a'"):
        load_catalogue(tmp_path / "flags.yaml")


def test_a_flag_may_take_a_value(catalogue: Catalogue) -> None:
    recipe = load_recipe("none", catalogue, add=["torch-on-cpu=encoder.0", "torch-on-cpu=decoder", "torch-seed"])
    assert [flag.id for flag in recipe.flags] == ["torch-seed", "torch-on-cpu=decoder", "torch-on-cpu=encoder.0"]
    assert json.loads(recipe.flags[-1].order(0).split("\t")[1])["value"] == "encoder.0"
    assert not [flag.id for flag in catalogue if flag.parameter and flag.action in SEARCHED]
    for wrong, message in (("torch-on-cpu", "needs a value"), ("torch-seed=3", "takes no value")):
        with pytest.raises(UsageError, match=message):
            load_recipe("none", catalogue, add=[wrong])


def test_a_variable_may_contain_the_folder_of_the_run(catalogue: Catalogue) -> None:
    variables = catalogue.get("torch-compile-cache-per-run").environment(0, "/runs/live/scratch")
    assert variables["TORCHINDUCTOR_CACHE_DIR"] == "/runs/live/scratch/inductor"
