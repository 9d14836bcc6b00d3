"""``detaudit recipes``: lists, and all about one."""

import json

import pytest

from detaudit.cli import main
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import names
from detaudit.report import catalogue


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["recipes", *words]) == 0
    return capsys.readouterr().out


def test_every_recipe_and_flag_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    first = {line.split()[0] for line in ask(capsys).splitlines() if line}
    assert first >= {*names(), *load_catalogue().ids}
    data = json.loads(ask(capsys, "--format", "json"))
    assert [flag["id"] for flag in data["flags"]] == list(load_catalogue().ids)
    assert {recipe["name"] for recipe in data["recipes"]} == set(names())
    assert "| `torch-seed`" in ask(capsys, "--format", "markdown")


def test_the_flags_of_a_framework_or_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(ask(capsys, "--framework", "nccl", "--format", "json"))
    assert {flag["framework"] for flag in data["flags"]} == {"nccl"}
    assert {recipe["name"] for recipe in data["recipes"]} == {"horovod", "torch-ddp"}
    data = json.loads(ask(capsys, "--device", "multi-gpu", "--framework", "torch", "--format", "json"))
    ids = {flag["id"] for flag in data["flags"]}
    assert "torch-ddp-buckets" in ids
    assert "torch-one-thread" not in ids
    assert "no flag is for that" in ask(capsys, "--device", "cpu", "--framework", "nccl")


@pytest.mark.parametrize("format_", catalogue.FORMATS)
def test_all_about_every_flag(format_: str) -> None:
    for flag in load_catalogue():
        text = catalogue.one_flag(flag, ["mine"], format_)
        facts = (flag.id, flag.title, flag.source, flag.cost, flag.note, flag.in_script, "mine")
        for fact in facts if format_ != "json" else (json.dumps(fact, ensure_ascii=False)[1:-1] for fact in facts):
            assert fact in text


def test_one_flag(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split(None, 1) for line in ask(capsys, "show", "torch-deterministic-warn").splitlines()]
    facts = {words[0]: words[1] for words in lines if len(words) > 1}
    assert facts["calls"] == "torch.use_deterministic_algorithms(True, warn_only=True)"
    assert facts["variables"] == "CUBLAS_WORKSPACE_CONFIG=:4096:8"
    assert facts["versions"] == "since 1.11"
    assert facts["conflicts"] == "torch-deterministic-algorithms"
    assert facts["applied"] == "after the import of torch"
    assert "torch-cuda-warn" in ask(capsys, "show", "torch-deterministic-warn")
    assert "random.seed(SEED)" in ask(capsys, "show", "python-random-seed")
    assert "by you: detaudit cannot" in ask(capsys, "show", "torch-ddp-buckets")
    assert json.loads(ask(capsys, "show", "nccl-proto-simple", "--format", "json"))["recipes"] == ["torch-ddp"]


def test_one_recipe_tells_what_its_flags_do(capsys: pytest.CaptureFixture[str]) -> None:
    text = ask(capsys, "show", "torch-ddp")
    assert "It extends torch-cuda." in text
    assert "Sum over GPUs in rings" in text
    assert "Seed NumPy's global generator" in text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("show", "torch-dpd"), "Did you mean 'torch-ddp'?"),
        (("show", "torch-sede"), "Did you mean 'torch-seed'?"),
        (("show", "TF_CUDNN_USE_FRONTEND"), "'tensorflow-op-determinism' is what helps today."),
        (("--framework", "toch"), "torch"),
        (("shwo",), "No such command"),
    ],
)
def test_unknown_names(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str) -> None:
    assert main(["recipes", *words]) == 2
    assert problem in capsys.readouterr().err
