"""Losses from stdout: what a pattern takes, and that a log with losses missing is never read."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.config.options import compiled
from detaudit.errors import UsageError
from detaudit.launch import local
from detaudit.model import RunError, Stage
from detaudit.model.problems import (
    LossPatternFlood,
    LossPatternMisfit,
    LossPatternUnmatched,
    StdoutTruncated,
    StdoutUnreadable,
)
from detaudit.outputs.text import Recorder
from detaudit.runs import printed


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stdout") / "stdout.log"


def read(log: Path, text: str, pattern: str) -> printed.Printed:
    log.write_text(text)
    return printed.read(log, compiled(pattern))


def losses(log: Path, text: str, pattern: str) -> dict[int, int]:
    """Return how many losses each step has."""
    training = read(log, text, pattern).training
    assert training is not None
    return {step: len(texts) for step, texts in training.digests[Stage.STDOUT].items()}


def test_each_match_is_a_step(log: Path) -> None:
    assert losses(log, "loss 1.5 loss 1.25\nother\nloss nan\n", r"loss (\S+)") == {1: 1, 2: 1, 3: 1}


def test_progress_that_rewrites_its_line_counts_as_lines(log: Path) -> None:
    assert losses(log, "loss 1\rloss 2\rloss 3\n", r"^loss (\S+)$") == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize(
    ("pattern", "last"),
    [
        (r"step (\d+) loss (\S+)", 7),
        (r"step (?P<step>\d+) loss (\S+)", 0.5),
        (r"step (\d+) loss (?P<loss>\S+)", 0.5),
        (r"(?P<loss>\S+) at (?P<step>\d+)$", 0.5),
    ],
)
def test_which_group_is_the_loss(log: Path, pattern: str, last: float) -> None:
    training = read(log, "step 7 loss 0.5 and again 0.5 at 7\n", pattern).training
    assert training is not None
    assert training.last_loss == last


def test_steps_as_they_are_printed(log: Path) -> None:
    text = "step 10 loss 1\nstep 20 loss 1\nstep 20 loss 1\n"
    assert losses(log, text, r"step (?P<step>\d+) loss (\S+)") == {10: 1, 20: 2}


@pytest.mark.parametrize(("text", "value"), [("inf", "inf"), ("-inf", "-inf"), ("1e-3", 0.001)])
def test_values(log: Path, text: str, value: float | str) -> None:
    training = read(log, f"loss {text}\n", r"loss (\S+)").training
    assert training is not None
    assert training.last_loss == value


@given(st.floats(), st.floats())
def test_losses_are_equal_if_and_only_if_their_texts_are(log: Path, a: float, b: float) -> None:
    one, two = (read(log, f"loss {value!r}\n", r"loss (\S+)").training for value in (a, b))
    assert one is not None
    assert two is not None
    assert (one.digests == two.digests) == (repr(a) == repr(b))


def test_every_letter_counts(log: Path) -> None:
    assert read(log, "loss 0.5\n", r"loss (\S+)").training != read(log, "loss 0.50\n", r"loss (\S+)").training


def test_a_pattern_that_never_matches_shows_the_last_line(log: Path) -> None:
    found = read(log, "Loss: 1\nthe end\n\n", r"loss (\S+)")
    assert found == printed.Printed(error=LossPatternUnmatched(pattern=r"loss (\S+)", last_line="the end"))


def test_a_pattern_that_never_matches_an_empty_log(log: Path) -> None:
    found = read(log, "", r"loss (\S+)")
    assert found == printed.Printed(error=LossPatternUnmatched(pattern=r"loss (\S+)", last_line=""))


MISFIT = r"step (?P<step>\S+) loss (\S+)"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("step 1 loss x\n", LossPatternMisfit(pattern=MISFIT, group="loss", matched="x")),
        ("step -1 loss 1\n", LossPatternMisfit(pattern=MISFIT, group="step", matched="-1")),
        (f"step {'9' * 99} loss 1\n", LossPatternMisfit(pattern=MISFIT, group="step", matched="9" * 99)),
        (f"step 1 loss {'x' * 200}\n", LossPatternMisfit(pattern=MISFIT, group="loss", matched="x" * 120)),
    ],
)
def test_a_pattern_that_finds_something_else(log: Path, text: str, error: RunError) -> None:
    assert read(log, text, MISFIT) == printed.Printed(error=error)


def test_more_losses_than_are_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed, "MOST_LOSSES", 2)
    found = read(log, "1\n1\n1\n", r"(\d)")
    assert found == printed.Printed(error=LossPatternFlood(pattern=r"(\d)", limit=2))


def test_a_log_that_was_cut_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LIMIT", 100)
    monkeypatch.setattr(local, "TAIL", 20)
    path = tmp_path / "stdout.log"
    with local.Log(path, Recorder()) as log:
        os.write(log.input, b"loss 1\n" * 20)
    found = printed.read(path, compiled(r"loss (\S+)"))
    assert found == printed.Printed(error=StdoutTruncated())


def test_a_log_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    found = printed.read(path, compiled("(.)"))
    assert found == printed.Printed(error=StdoutUnreadable(detail=f"[Errno 2] No such file or directory: '{path}'"))


def test_a_broken_pattern_shows_where_it_breaks() -> None:
    with pytest.raises(UsageError) as raised:
        compiled(r"loss (\S+")
    assert raised.value.message.endswith("at position 5\n  loss (\\S+\n       ^")
    assert "for example" in raised.value.hint


@pytest.mark.parametrize("pattern", [r"loss \S+", r"(?:loss) \S+", r"step (?P<step>\d+)", ""])
def test_a_pattern_without_a_group_for_the_loss(pattern: str) -> None:
    with pytest.raises(UsageError, match="has no capture group for the loss"):
        compiled(pattern)
