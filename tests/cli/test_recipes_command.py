"""``detaudit recipes``: the lists, and the details of one recipe or flag."""

import json

import pytest

from detaudit.cli import main
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe, names, read_recipe
from detaudit.report import catalogue
from detaudit.rules import TABLE
from tests.report.widths import too_wide


def recipes(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["recipes", *arguments]) == 0
    return capsys.readouterr().out


def test_every_recipe_and_flag_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    first = {line.split()[0] for line in recipes(capsys).splitlines() if line}
    assert first >= {*names(), *load_catalogue().ids, *(rule.name for rule in TABLE)}
    data = json.loads(recipes(capsys, "--format", "json"))
    assert [flag["id"] for flag in data["flags"]] == list(load_catalogue().ids)
    assert {recipe["name"] for recipe in data["recipes"]} == set(names())
    assert "| `torch-seed`" in recipes(capsys, "--format", "markdown")


def test_lists_only_the_flags_of_a_framework_or_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(recipes(capsys, "--framework", "nccl", "--format", "json"))
    assert {flag["framework"] for flag in data["flags"]} == {"nccl"}
    assert {recipe["name"] for recipe in data["recipes"]} == {"horovod", "torch-ddp"}
    data = json.loads(recipes(capsys, "--device", "multi-gpu", "--framework", "torch", "--format", "json"))
    ids = {flag["id"] for flag in data["flags"]}
    assert "torch-ddp-buckets" in ids
    assert "torch-one-thread" not in ids
    assert "no matching flags" in recipes(capsys, "--device", "cpu", "--framework", "nccl")


@pytest.mark.parametrize("format_", catalogue.FORMATS)
def test_each_flag_can_be_shown_in_every_format(format_: str) -> None:
    for flag in load_catalogue():
        text = catalogue.one_flag(flag, ["mine"], format_)
        facts = (flag.id, flag.title, flag.source, flag.cost, flag.note, flag.by_hand, "mine")
        for fact in facts if format_ != "json" else (json.dumps(fact, ensure_ascii=False)[1:-1] for fact in facts):
            assert fact in text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_catalogue_fits_into_the_terminal(width: int) -> None:
    catalogue_ = load_catalogue()
    known = [(read_recipe(name), load_recipe(name, catalogue_)) for name in names()]
    assert too_wide(catalogue.listing(known, list(catalogue_), TABLE, "table", width), width) == []
    for flag in catalogue_:
        text = catalogue.one_flag(flag, [], "table", width)
        assert flag.note in " ".join(text.split())
        assert too_wide(text, width) == []
    for rule in TABLE:
        text = catalogue.one_rule(rule, "table", width)
        assert rule.never in " ".join(text.split())
        assert width < 80 or too_wide(text, width) == []  # an example is code, which is not wrapped
    for one in known:
        assert too_wide(catalogue.one_recipe(one, "table", width), width) == []


def test_show_explains_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split(None, 1) for line in recipes(capsys, "show", "torch-deterministic-warn").splitlines()]
    facts = {parts[0]: parts[1] for parts in lines if len(parts) > 1}
    assert facts["calls"] == "torch.use_deterministic_algorithms(True, warn_only=True)"
    assert facts["variables"] == "CUBLAS_WORKSPACE_CONFIG=:4096:8"
    assert facts["versions"] == "since 1.11"
    assert facts["conflicts"] == "torch-deterministic-algorithms"
    assert facts["applied"] == "after import torch"
    assert "torch-cuda-warn" in recipes(capsys, "show", "torch-deterministic-warn")
    assert "random.seed(SEED)" in recipes(capsys, "show", "python-random-seed")
    assert "by hand only" in recipes(capsys, "show", "torch-ddp-buckets")
    assert json.loads(recipes(capsys, "show", "nccl-proto-simple", "--format", "json"))["recipes"] == ["torch-ddp"]


def test_show_explains_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    text = recipes(capsys, "show", "torch-ddp")
    assert "Extends: torch-cuda" in text
    assert "Force NCCL's ring algorithm" in text
    assert "Seed NumPy's global generator" in text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("show", "torch-dpd"), "Did you mean 'torch-ddp'?"),
        (("show", "torch-sede"), "Did you mean 'torch-seed'?"),
        (("show", "TF_CUDNN_USE_FRONTEND"), "hint: Use 'tensorflow-op-determinism' instead."),
        (("--framework", "toch"), "Did you mean 'torch'?"),
        (("shwo",), "unknown command 'shwo'"),
    ],
)
def test_unknown_names(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str) -> None:
    assert main(["recipes", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_show_explains_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    text = recipes(capsys, "show", "set-order")
    assert "Before:\n\n    names = " in text
    assert "enumerate(sorted(names))" in text
    assert "```python\nnames = " in recipes(capsys, "show", "set-order", "--format", "markdown")
    assert json.loads(recipes(capsys, "show", "set-order", "--format", "json"))["kinds"] == [
        "object-set-order",
        "set-order",
    ]
    assert main(["recipes", "show", "set-ordr"]) == 2
    assert "Did you mean 'set-order'?" in capsys.readouterr().err


def test_rules_are_listed_unless_flags_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert [rule["name"] for rule in json.loads(recipes(capsys, "--format", "json"))["rules"]] == [
        rule.name for rule in TABLE
    ]
    assert json.loads(recipes(capsys, "--device", "gpu", "--format", "json"))["rules"] == []
