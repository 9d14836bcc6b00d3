"""How blocks of pages are read, and how an output is compared with what a page shows of it."""

from pathlib import Path

import pytest

from tests.docs.blocks import Block, Command, blocks, calls
from tests.docs.shown import missing

PAGE = """
<!-- test: file train.py -->
```python
print("$ detaudit run")
```

- in a list:

  <!-- test: exit 1, full -->
  ```console
  $ detaudit run train.py \\
      --runs 3
  deterministic
  $ detaudit check; echo $?
  ```

<!-- test: not here: needs a GPU -->
```console
$ detaudit doctor
```
"""


@pytest.fixture
def page(tmp_path: Path) -> list[Block]:
    (tmp_path / "page.md").write_text(PAGE)
    return blocks(tmp_path / "page.md", tmp_path)


def test_a_block_knows_its_place_and_how_it_is_run(page: list[Block]) -> None:
    file, console, other = page
    assert (file.file, file.runs, file.place) == ("train.py", False, "page.md:3")
    assert (console.exit_code, console.full, console.runs) == (1, True, True)
    assert (other.not_here, other.runs) == ("needs a GPU", False)


def test_commands_have_the_lines_that_are_shown_of_their_output(page: list[Block]) -> None:
    assert page[1].commands == [
        Command("detaudit run train.py \\\n    --runs 3", ("deterministic",)),
        Command("detaudit check; echo $?", ()),
    ]


def test_each_detaudit_of_a_shell_is_found(page: list[Block]) -> None:
    assert [call for block in page for call in calls(block)] == [
        ["run", "train.py", "--runs", "3"],
        ["check"],
        ["doctor"],
    ]


def test_comments_of_a_shell_are_no_arguments(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```sh\nOMP_NUM_THREADS=1 detaudit run a.py -- --x 'a b'  # why?\n```\n")
    assert [list(calls(block)) for block in blocks(tmp_path / "a.md", tmp_path)] == [
        [["run", "a.py", "--", "--x", "a b"]]
    ]


def test_a_misspelled_comment_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("<!-- test: exits 1 -->\n```console\n$ true\n```\n")
    with pytest.raises(ValueError, match=r"a.md:2: unknown `test: exits 1`"):
        blocks(tmp_path / "a.md", tmp_path)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["sum -127.71 of 36 steps, 10.5 s, b2558907"], "sum 1.2e-05 of 36 steps, 9.1 s,  0a3f5c77"),
        (["  RUN  LOSS", "-----  ----", "    1  -127.71  36  10.5 s"], "another table"),
        (["fixed: 2 flags (... trials, ... runs)"], "found\nfixed: 2 flags (4 trials, 27 runs)\n"),
        (["first", "...", "third"], "first\nsecond\nthird"),
        (["x -----"], "x -------"),
        (["fixed (4 trials, 27 runs)", "6 runs in total"], "fixed (1 trial, 2 runs)\n1 run in total"),
        (
            ["  detaudit report .detaudit/20261122-172312-4a97d8b9"],
            "detaudit report .detaudit/20270101-000000-12345678",
        ),
    ],
)
def test_what_changes_from_run_to_run_is_not_compared(shown: list[str], printed: str) -> None:
    assert missing(shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["deterministic: all 5 runs"], "nondeterministic: all 5 runs"),
        (["5 runs"], "6 runs"),
        (["second", "first"], "first\nsecond"),
        (["a ... 36"], "a 2 35"),
        (["step 1"], ""),
    ],
)
def test_what_a_page_shows_and_nothing_printed_is_missed(shown: list[str], printed: str) -> None:
    assert missing(shown, printed) in shown
