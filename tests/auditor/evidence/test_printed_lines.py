"""Lines of two runs are compared but for what is different in every run anyway."""

from pathlib import Path

import pytest

from detaudit.auditor.evidence.printed_lines import difference

EQUAL = [
    ("step 3 took 0.0123 s", "step 3 took 0.0456 s"),
    ("2026-11-22 21:57:11,123 INFO loss 0.5", "2026-11-23 08:00:00,001 INFO loss 0.5"),
    ("saved to /tmp/abc/model.pt", "saved to /tmp/xyz/model.pt"),
    ("10%|#   | 10/100 [00:03<00:27, 3.31it/s]", "10%|#   | 10/100 [00:04<00:30, 2.91it/s]"),
    ("<object at 0x7f001122>", "<object at 0x7f334455>"),
    ("1/5 - 2s 31ms/step - loss: 0.5", "1/5 - 1s 29ms/step - loss: 0.5"),
    ("elapsed: 12.5", "elapsed: 13.75"),
    ("pid 4711 started", "pid 4799 started"),
    ("first\nsecond", "second\nfirst"),
    ("a\r50%\rdone", "b\r40%\rdone"),
]


def compare(folder: Path, ours: str, theirs: str) -> tuple[str, str] | None:
    (folder / "a").write_text(ours)
    (folder / "b").write_text(theirs)
    return difference(folder / "a", folder / "b")


@pytest.mark.parametrize(("ours", "theirs"), EQUAL)
def test_what_differs_in_every_run_is_left_out(tmp_path: Path, ours: str, theirs: str) -> None:
    assert compare(tmp_path, ours, theirs) is None


def test_the_first_line_that_differs(tmp_path: Path) -> None:
    ours, theirs = "start 1 s\naccuracy 0.91\nbest 3\n", "start 2 s\naccuracy 0.92\nbest 4\n"
    assert compare(tmp_path, ours, theirs) == ("accuracy 0.91", "accuracy 0.92")
    assert compare(tmp_path, "loss 0.5\n", "loss 0.5\nloss 0.25\n") == ("", "loss 0.25")
    assert difference(tmp_path / "none", tmp_path / "none") is None
