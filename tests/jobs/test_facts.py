"""Who reads and judges runs states facts with types and fields; only ``report`` puts them into words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import detaudit

PACKAGE = Path(detaudit.__file__).parent
FORMATS = PACKAGE / "runs" / "formats"
"""What is in a file has names that people read, such as ``row 1, target``: no facts."""

ON_THE_COMMAND_LINE = {PACKAGE / "ops" / "__init__.py", PACKAGE / "ops" / "command.py"}

ROOMS = ("runs", "judge", "source", "bisect", "trace", "ops")
JOBS = ("advice", "audit", "baseline", "check", "compare", "doctor", "earlier_audits", "runner", "store")
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if FORMATS not in path.parents
    and path not in ON_THE_COMMAND_LINE
    and path.relative_to(PACKAGE).parts[0].removesuffix(".py") in ROOMS + JOBS
)

COMMANDS = ("detaudit ", "less ")
"""What the format strings of commands begin with."""

ALLOWED = {
    ("bisect/flags.py", "# Found by detaudit bisect; use it with --recipe.\n"): "a comment in the recipe file",
    ("judge/comparer.py", "{} and {} more"): "the names of the files that differ, and how many more",
    ("runs/values.py", "needs {} to be read"): "as File.problem has it",
    ("runs/values.py", "cannot be read as {}: {}: {}"): "as File.problem has it",
    ("runs/values.py", "the budget was spent while it was read (--file-budget)"): "as File.problem has it",
    ("ops/replay.py", "replay of {}"): "the name of a group of runs in the progress line",
    ("ops/replay.py", "exit status {}"): "in place of the error that a process would have written",
}
"""Sentences that are no facts, each with the reason."""


def is_sentence(text: str) -> bool:
    """Whether a text has three words in a row, two of them in lower case; values in an f-string count as words."""
    run: list[str] = []
    for token in [*text.split(), ""]:
        if re.fullmatch(r"(?:[A-Za-z][a-z]*(?:'[a-z]+)?|\{\})[,.;:]?", token):
            run.append(token)
            continue
        if len(run) >= 3 and sum(token[0].islower() for token in run) >= 2:
            return True
        run = []
    return False


def template(node: ast.JoinedStr) -> str:
    """Return an f-string with ``{}`` for each value."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def is_error(node: ast.AST) -> bool:
    """Whether a node raises an error; ``unknown`` returns the one for a name that does not exist."""
    call = node.exc if isinstance(node, ast.Raise) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("Error", "unknown"))


def of_errors(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what is passed to errors: as an argument, or by a name that is bound in the same function or module."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for scope in (tree, *functions):
        raised = [node for node in ast.walk(scope) if is_error(node)]
        names = {name.id for error in raised for name in ast.walk(error) if isinstance(name, ast.Name)}
        bound = scope.body if scope is tree else ast.walk(scope)
        for node in (*raised, *bound):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if node in raised or any(isinstance(target, ast.Name) and target.id in names for target in targets):
                yield from ast.walk(node)


def skipped(tree: ast.Module) -> set[ast.AST]:
    """Return the texts that may be sentences: docstrings, what errors say, and regular expressions."""
    found = set(of_errors(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            found |= set(ast.walk(node))
    return found


def sentences(code: str) -> Iterator[tuple[int, str]]:
    """Yield the lines and the texts of sentences that a module states as facts."""
    tree = ast.parse(code)
    ignored = skipped(tree)
    ignored |= {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in ignored:
            text = node.value
        elif isinstance(node, ast.JoinedStr) and node not in ignored:
            text = template(node)
        if is_sentence(text) and not text.startswith(COMMANDS):
            yield getattr(node, "lineno", 0), text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_that_judges_has_a_sentence(path: Path) -> None:
    name = str(path.relative_to(PACKAGE))
    found = [(line, text) for line, text in sentences(path.read_text()) if (name, text) not in ALLOWED]
    assert not found, f"{name} states a fact in words; give it a type in detaudit/model, and words in detaudit/report"


def test_everything_allowed_is_there() -> None:
    found = {(str(path.relative_to(PACKAGE)), text) for path in MODULES for _, text in sentences(path.read_text())}
    assert set(ALLOWED) == found & set(ALLOWED)


@pytest.mark.parametrize(
    "code",
    [
        'reason = "the script failed"',
        'reason = f"run {number} differs from run {other}"',
        'def f():\n    yield f"{name} is not set"',
        'text = f"{place} has no losses"\nraise ValueError',
        'def f():\n    message = "not an error at all"\n\ndef g(message):\n    raise UsageError(message)',
    ],
)
def test_a_sentence_is_found(code: str) -> None:
    assert list(sentences(code))


@pytest.mark.parametrize(
    "code",
    [
        '"""A docstring of the module."""\nX = 1\n"""What this constant is."""',
        'raise UsageError(f"there is no {name}", "Name one that exists.")',
        'HINT = "Name one that exists."\ndef f():\n    hint = "or not at all"\n    raise UsageError(HINT, hint)',
        'command = f"detaudit compare {lock} with {out}"',
        'found = re.compile("one or more words")',
        'kinds = ("set-order", "two words", "aten.mm", "")',
        'needs = (f"import {module}",)',
    ],
)
def test_what_is_not_a_fact_is_skipped(code: str) -> None:
    assert not list(sentences(code))
