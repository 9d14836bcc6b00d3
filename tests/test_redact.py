"""Secrets in command lines, lines and variables."""

import shlex

import pytest

from detaudit import redact


@pytest.mark.parametrize(
    "name",
    [
        "--token", "--hf-token", "--hub_token", "-token", "--accessToken", "API_TOKEN", "GITHUB_TOKEN", "--api-key",
        "OPENAI_API_KEY", "--apikey", "--db.password", "--client-secret", "AWS_SECRET_ACCESS_KEY", "--credentials",
        "--passphrase", "+wandb.api_key", "--backend-token",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert redact.is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "--tokenizer", "--max-tokens", "--max_new_tokens", "--pad-token-id", "--eos-token", "--pad_token", "--key",
        "--keys", "--monkey", "--lr", "PATH", "--seed", "--pass", "--tokens-per-batch", "train.py", "",
    ],
)  # fmt: skip
def test_names_of_other_options(name: str) -> None:
    assert not redact.is_secret(name)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train.py --token abc --lr 0.1", "train.py --token *** --lr 0.1"),
        ("train.py --token=abc", "train.py --token=***"),
        ("train.py --api-key=a=b", "train.py --api-key=***"),
        ("train.py --ask-password --lr 0.1", "train.py --ask-password --lr 0.1"),
        ("train.py --password", "train.py --password"),
        ("train.py --password 'two words' last", "train.py --password *** last"),
        ("train.py --password='two words' last", "train.py --password=*** last"),
        ("env HF_TOKEN=abc LR=0.1 python train.py", "env HF_TOKEN=*** LR=0.1 python train.py"),
        ("train.py wandb.api_key=abc model.lr=0.1", "train.py wandb.api_key=*** model.lr=0.1"),
        ("train.py --data https://ann:abc@host:80/d?x=1", "train.py --data https://***@host:80/d?x=1"),
        ("train.py --data=https://abc@host", "train.py --data=https://***@host"),
        ("train.py s3://a/b,https://u:p@c/d", "train.py s3://a/b,https://***@c/d"),
        ("sh -c 'python train.py --token abc --lr 1'", "sh -c 'python train.py --token *** --lr 1'"),
        ("sh -c 'TOKEN=abc exec train.py'", "sh -c 'TOKEN=***'"),
        ("train.py --tokenizer gpt2 --name a@b --url https://h/d", "train.py --tokenizer gpt2 --name a@b --url https://h/d"),
    ],
)  # fmt: skip
def test_command_lines(words: str, expected: str) -> None:
    found = redact.command(shlex.split(words))
    assert found == tuple(shlex.split(expected))
    assert redact.command(found) == found


@pytest.mark.parametrize("line", ["", " ", "step 3  loss=0.25", "a = b", "https://", "://", "x@y", "=", "--", " -- "])
def test_other_lines_are_left_as_they_are(line: str) -> None:
    assert redact.text(line) == line


def test_a_line_that_repeats_arguments() -> None:
    assert (
        redact.text("error: unrecognized arguments: --token abc -v") == "error: unrecognized arguments: --token *** -v"
    )


def test_secrets_to_look_for() -> None:
    words = shlex.split("train.py --token 'a b c' --password=word --secret no --url https://ann:word@host")
    variables = {"API_TOKEN": "abcd", "HOME": "/home/ann", "MY_SECRET": ""}
    assert redact.secrets(words, variables) == ("abcd", "a b c", "word")
