"""The page of all messages, each with what to do about it."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from detaudit.config import yamlfile
from detaudit.model import Doubt, GateDetail, Reason, Risk, RunError, Warning  # the term for it
from detaudit.model.fact import Fact, kind_of, kinds
from docs._generate import errors
from docs._generate.errors import Message
from docs._generate.markdown import code, table
from docs._generate.places import DOCS
from docs._generate.templates import is_known
from tests.report import facts


class Fixes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What docs/fixes.yaml says."""

    errors: dict[str, str]
    facts: dict[str, str]


class MissingFixError(Exception):
    """A message without a fix, or a fix without a message."""


FOLDERS = {
    "cli": "The command line",
    "config": "Flags, recipes and configured audits",
    "launch": "Starting runs",
    "fix": "Fixing a training",
    "runs": "What runs recorded",
    "store": "Results folders",
    "baseline": "Baselines",
    "compare": "Comparisons",
    "against": "Another commit",
    "environments": "Another environment",
    "bisect": "Bisections",
    "ops": "Operations",
    "evidence": "Archives of evidence",
    "remote": "Runs on other machines",
    "exports": "Reports to trackers",
    "entry_points": "Parts of detaudit",
    "errors": "Storage",
    "pytest_plugin": "The pytest plugin",
}
"""The heading of the messages of each folder or module of the package."""

SORTS: Sequence[tuple[str, type[Fact], Iterable[Fact]]] = (
    ("Why a run is not compared", RunError, facts.RUN_ERRORS),
    ("Why the runs are inconclusive", Reason, facts.REASONS),
    ("Warnings", Warning, facts.WARNINGS),
    ("Gates of a check", GateDetail, facts.GATE_DETAILS),
    ("Why nothing follows from two sides", Doubt, facts.DOUBTS),
)
"""The sorts of facts, with an example of each kind."""


@functools.cache
def fixes() -> Fixes:
    """Return what docs/fixes.yaml says."""
    return yamlfile.load(DOCS / "fixes.yaml", Fixes)


def page() -> str:
    """Return a table of all messages for each section. Raises MissingFixError if one has no fix."""
    parts = ["## Errors", of_errors(errors.messages(errors.modules()), fixes().errors)]
    parts += of_facts(fixes().facts)
    rows = [[code(risk.text()), risk.fix()] for risk in _one_of_each(facts.RISKS, Risk)]
    return "\n\n".join([*parts, "## Risks that `detaudit doctor` names", table(["message", "what to do"], rows)])


def of_errors(messages: Sequence[Message], known: dict[str, str]) -> str:
    """Return a table for each folder that errors come from. ``known`` are fixes by text."""
    unused = set(known) - {message.text for message in messages}
    if unused:
        raise MissingFixError(f"docs/fixes.yaml has a fix for an error that does not exist: {min(unused)!r}")
    parts = []
    if unnamed := {message.folder for message in messages} - set(FOLDERS):
        raise MissingFixError(f"no heading for the errors of {min(unnamed)}")
    for folder, heading in FOLDERS.items():
        found = sorted((message for message in messages if message.folder == folder), key=lambda message: message.text)
        rows = [[code(one.text), _fix(one, known), _status(one)] for one in found]
        if rows:
            parts += [f"### {heading}", table(["error", "what to do", "exit status"], rows)]
    return "\n\n".join(parts)


def _fix(message: Message, known: dict[str, str]) -> str:
    if message.text in known:
        return known[message.text]
    if not message.hints or not is_known(message.text):
        raise MissingFixError(f"an error has no hint, and no fix in docs/fixes.yaml: {message.text!r}")
    return "<br>".join(hint.replace("<", "&lt;").replace("*", "\\*") for hint in message.hints)


def _status(message: Message) -> str:
    return "the test fails" if message.status is None else str(int(message.status))


def of_facts(known: dict[str, str]) -> list[str]:
    """Return a section for each sort of facts. ``known`` are fixes by kind."""
    parts: list[str] = []
    described: set[str] = set()
    for heading, sort, examples in SORTS:
        rows = []
        for fact in _one_of_each(examples, sort):
            kind = kind_of(type(fact).__name__)
            if kind not in known:
                raise MissingFixError(f"a fact has no fix in docs/fixes.yaml: {kind}")
            described.add(kind)
            said = fact.sentence() if isinstance(fact, Warning) else fact.text()
            rows.append([code(said), known[kind], code(kind)])
        parts += [f"## {heading}", table(["message, for example", "what to do", "kind in JSON"], rows)]
    if unused := set(known) - described:
        raise MissingFixError(f"docs/fixes.yaml has a fix for a fact that does not exist: {min(unused)}")
    return parts


def _one_of_each(examples: Iterable[Any], sort: type[Fact]) -> list[Any]:
    """Return the first example of each kind of a sort, in their order. Raises MissingFixError if one has none."""
    first: dict[type, Any] = {}
    for example in examples:
        first.setdefault(type(example), example)
    for kind in kinds(sort):
        if kind not in first:
            raise MissingFixError(f"tests/report/facts.py has no example of a fact: {kind.__name__}")
    return [first[kind] for kind in kinds(sort)]
