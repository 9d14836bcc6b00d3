"""The page of messages has every error that the source code can raise, and what to do about each."""

import ast
import re
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from docs._generate import errors, messages
from docs._generate.errors import Message
from docs._generate.messages import MissingFixError
from docs._generate.templates import Module, Scope, is_known, texts

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"(?:UsageError|ConfigError|UnknownNameError|NothingToAuditError|WorkspaceError|AuditNotFoundError|"
                  r"NothingToCompareError)\(\s*f?[\"']([^\"'{}<]{6,})")  # fmt: skip
"""How an error begins in the source, read in a way of its own."""

MODULES = errors.modules()
"""Read before a test begins, in which no module can be imported that starts processes."""


def module(source: str) -> Module:
    made = ModuleType("detaudit.cli.example")
    vars(made).update({"LIMIT": 5, "HINTS": {1: "Free space, or c"}})
    return Module(Path("example.py"), ast.parse(textwrap.dedent(source)), made)


def found(source: str) -> list[Message]:
    return errors.messages([module(source)])


def test_every_message_has_a_fix() -> None:
    assert messages.page().count("\n| ") > 150


def test_no_error_of_the_source_is_missing() -> None:
    page = [message.text for message in errors.messages(MODULES)]
    sources = [path for path in (ROOT / "detaudit").rglob("*.py") if "recorder" not in path.parts]
    begins = [begin for path in sources for begin in WORD.findall(path.read_text())]
    assert len(begins) > 30
    assert not [begin for begin in begins if not any(begin in text for text in page)]


def test_an_error_has_its_hint_and_its_exit_status() -> None:
    assert found("raise UsageError(f'no {name!r} in {path}', 'Check it.')") == [
        Message("no '<name>' in <path>", ("Check it.",), 2, "cli")
    ]


def test_a_new_error_without_a_hint_and_without_a_fix_fails() -> None:
    new = found("raise UsageError('something new')")
    with pytest.raises(MissingFixError, match="something new"):
        messages.of_errors(new, {})
    assert "Do this." in messages.of_errors(new, {"something new": "Do this."})


def test_an_error_whose_text_only_a_run_knows_needs_a_fix_too() -> None:
    new = found("raise UsageError(f'{path}: {error}', 'Fix it.')")
    with pytest.raises(MissingFixError, match="<path>: <error>"):
        messages.of_errors(new, {})


def test_a_fix_for_an_error_that_is_gone_fails() -> None:
    with pytest.raises(MissingFixError, match="was once"):
        messages.of_errors([], {"was once": "Do this."})


def test_a_new_fact_without_a_fix_fails() -> None:
    known = dict(messages.fixes().facts)
    del known["timed-out"]
    with pytest.raises(MissingFixError, match="timed-out"):
        messages.of_facts(known)
    with pytest.raises(MissingFixError, match="was-once"):
        messages.of_facts({**messages.fixes().facts, "was-once": "Do this."})


def test_an_error_of_a_function_that_is_given_its_text_is_read_from_its_callers() -> None:
    source = """
        def _fail(problem, hint="Look."):
            raise UsageError(f"mark: {problem}", hint)

        def a():
            _fail("a is missing")
            _fail(f"{b} is wrong", "Fix it.")
    """
    assert [(one.text, one.hints) for one in found(source)] == [
        ("mark: a is missing", ("Look.",)),
        ("mark: <b> is wrong", ("Fix it.",)),
    ]


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        ("'a' + f'{b}'", ("a<b>",)),
        ("'is a file' if x else 'is gone'", ("is a file", "is gone")),
        ("f'at most {LIMIT}'", ("at most 5",)),
        ("f'{HINTS.get(n, \"C\")}hoose'", ("Free space, or choose", "Choose")),
        ("f'{a.b.strerror}: {c(d)} {e[0]}'", ("<reason>: <d> <e>",)),
        ("f'{shown(x)} left'", ("<size> GiB left",)),
        ("x or 'none'", ("<x>",)),
    ],
)
def test_the_texts_of_an_expression(expression: str, known: tuple[str, ...]) -> None:
    here = module(f"def shown(size):\n    return f'{{size}} GiB'\n\ndef f(x):\n    return {expression}\n")
    returned = here.functions["f"].body[0]
    assert isinstance(returned, ast.Return)
    assert texts(returned.value, Scope(here, here.functions["f"])) == known


def test_a_variable_that_is_made_from_itself_ends() -> None:
    here = module("def f(x):\n    x = x or 'none'\n    return x\n")
    assert texts(ast.Name("x"), Scope(here, here.functions["f"])) == ("<x>",)


def test_a_text_is_known_by_its_words() -> None:
    assert is_known("no <name>")
    assert not is_known("<path>:<line>: <problem>")
