"""Options that are declared once are read again as they were written: in plans, projects, and suggested commands."""

import re
import string

import click
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from detaudit import wire
from detaudit.cli.options import declared
from detaudit.config import options
from detaudit.config.options import DECLARED, EVERY, RunOptions, Until, declaration
from detaudit.errors import UsageError
from detaudit.model.outputs import Compare, FileBudget

TEXTS = st.lists(st.text(string.ascii_letters + "*./_ ", min_size=1, max_size=9), max_size=3, unique=True).map(tuple)
OPTIONS = st.builds(
    RunOptions,
    timeout=st.none() | st.integers(1, 900).map(float),
    until=st.none() | st.builds(Until, step=st.integers(1, 10**6)) | st.builds(Until, seconds=st.just(90.0)),
    fail_fast=st.booleans(),
    vary=st.sampled_from([(), ("all",), ("hash-seed", "threads")]),
    stages=st.sampled_from([wire.DEFAULT_STAGES, wire.STAGES, ("init", "update")]),
    loss_pattern=st.none() | st.just(re.compile(r"loss (\S+)")),
    artifacts=TEXTS,
    files=st.booleans(),
    compare=st.sampled_from(Compare),
    ignore=TEXTS,
    ignore_text=st.sampled_from([(), ("^a.*", "b")]),
    measured=st.sampled_from([(), ("spent", "*_sec")]),
    results=st.sampled_from([(), ("p_time",)]),
    redact=TEXTS,
    file_budget=st.sampled_from([FileBudget(), FileBudget(120.0, 2**30)]),
    isolate=st.booleans(),
)


@given(OPTIONS)
def test_what_is_written_is_read_again(chosen: RunOptions) -> None:
    stored = msgspec.json.decode(msgspec.json.encode(options.written(chosen)))
    assert options.read(stored) == chosen


@given(OPTIONS)
def test_a_suggested_command_has_the_same_options(chosen: RunOptions) -> None:
    parsed: list[RunOptions] = []

    @click.command
    @declared(*DECLARED)
    def command(**values: object) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        parsed.append(RunOptions(**given))  # type: ignore[arg-type]

    words = [*options.words(chosen, "run")]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert parsed == [chosen]


def test_a_command_inherits_what_it_takes() -> None:
    chosen = RunOptions(
        fail_fast=True, until=Until(step=4), stages=wire.STAGES, redact=("token",), isolate_root="/repo"
    )
    assert [[*options.words(chosen, command)] for command in EVERY] == [
        ["--until", "4", "--fail-fast", "--stages", "all", "--redact", "token", "--isolate-root", "/repo"],
        ["--until", "4", "--stages", "all", "--redact", "token", "--isolate-root", "/repo"],
        ["--redact", "token", "--isolate-root", "/repo"],
        ["--redact", "token", "--isolate-root", "/repo"],
    ]


@pytest.mark.parametrize(
    ("texts", "message", "hint"),
    [
        ({"until": "soon"}, "until: 'soon' is neither a step", 'Write until = 400, or until = "90s".'),
        ({"file_budget": "much"}, "file-budget: 'much' is neither a time", 'Write file-budget = "120s,20GiB".'),
        ({"artifacts": [""]}, "--artifact takes the path of a file", "Name a file that the script writes."),
        ({"measured": [" "]}, "--measured and --result take the name of a value", "Give the one that the report shows"),
        ({"ignore_text": ["("]}, "--ignore-text '(' is not a valid regex", "Fix the regex."),
        ({"loss_pattern": "loss"}, "--loss-pattern 'loss' has no capture group", "Put parentheses around the number"),
    ],
)
def test_what_an_option_does_not_take_is_named(texts: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        options.read(texts)
    assert error.value.hint is not None
    assert error.value.hint.startswith(hint)


def test_each_declaration_says_what_it_is() -> None:
    for name in DECLARED:
        one = declaration(name)
        assert one.flag.startswith("--")
        assert one.help.rstrip("]").endswith((".", "s", "e", "B")), one.help
