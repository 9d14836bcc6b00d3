"""Every fact has a sentence; golden/messages.txt lists them all."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec
import pytest

from detaudit.model import (
    Cause,
    Condition,
    Confidence,
    Doubt,
    Evidence,
    FlagOutcome,
    GateDetail,
    How,
    Inapplicable,
    LikelyCause,
    ModeEffect,
    NextStep,
    NotVaried,
    Obstacle,
    Purpose,
    Reason,
    ReplayVerdict,
    Risk,
    RunError,
    SourceKind,
    Stage,
    Status,
    Warning,  # the term for it
    evidence,
)
from detaudit.model.against import Attribution
from detaudit.model.audit import FLAG_OUTCOMES
from detaudit.model.fact import Fact, both, brief, either, every, kinds, shortened
from detaudit.model.stage import STATUSES
from detaudit.report import traces
from detaudit.report.plain import line
from tests.report import facts
from tests.report.test_ci_formats import HOSTILE
from tests.report.test_reporters import assert_golden

STEPS = tuple(
    NextStep(
        command="detaudit …",
        purpose=purpose,
        run=2 if purpose is Purpose.READ_STDERR else None,
        audit="digits" if purpose is Purpose.COMPARE_STEPS else "",
    )
    for purpose in Purpose
)
SITES = {Stage.STATE: "Net.bn.running_mean", Stage.ARTIFACT: "model.pt", Stage.RETURNED: "[0]['loss']"}
ENDED_EARLY = Evidence(
    runs=16,
    confidence=None,
    assumed_rate=0.25,
    miss_probability=0.013,
    through=225,
    whole=2,
    whole_confidence=Confidence(level=0.95, max_differing_rate=0.95),
)
EVIDENCE = (
    evidence.would_catch(Confidence(level=0.95, max_differing_rate=1 - 0.05 ** (1 / 4)), 5),
    evidence.would_catch(Confidence(level=0.95, max_differing_rate=1 - 0.05 ** (1 / 28)), 29),
    evidence.would_catch(Confidence(level=0.95, max_differing_rate=1 - 0.05 ** (1 / 29)), 30),
    evidence.may_go_unnoticed(Evidence(runs=16, confidence=None, assumed_rate=0.25, miss_probability=0.013)),
    evidence.begins_later(ENDED_EARLY),
    evidence.begins_later(msgspec.structs.replace(ENDED_EARLY, whole=6)),
)


def kind(fact: Any) -> str:
    return str(fact.__struct_config__.tag)


def topics() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield all messages by topic, each with its kind."""
    yield "sources of differences", [(one.kind, one.text()) for one in facts.SOURCES]
    yield "where runs differ", [(stage, stage.where(3, SITES.get(stage))) for stage in Stage]
    yield "what differs, and the likely cause", [(at, one.text(at)) for at, one in facts.EXPLANATIONS]
    yield "why a run is not compared", [(kind(one), one.text()) for one in facts.RUN_ERRORS]
    yield "why a group is inconclusive", [(kind(one), one.text()) for one in facts.REASONS]
    yield "warnings", [(kind(one), one.sentence()) for one in facts.WARNINGS]
    yield "overridden flags", [(one.at, one.text()) for one in facts.OVERRIDES]
    yield "flags", list(FLAG_OUTCOMES.items())
    yield "why a flag is not applied", [(kind(one), one.text()) for one in facts.INAPPLICABLE]
    yield "why a variation does not vary", [(kind(one), one.text()) for one in facts.NOT_VARIED]
    yield "runs", list(STATUSES.items())
    yield "evidence", [("", one) for one in EVIDENCE]
    yield "why nothing follows from two sides", [(kind(one), one.text()) for one in facts.DOUBTS]
    partings = (*facts.PARTINGS, *facts.ENVIRONMENT_PARTINGS)
    yield "where two sides part", [(one.apart, "; ".join([one.text(), *one.places()])) for one in partings]
    yield "what a difference from a baseline belongs to", [(kind(one), one.text()) for one in facts.ATTRIBUTIONS]
    yield "gates", [(kind(one), one.text()) for one in facts.GATE_DETAILS]
    yield "changes of the lock file", [("", one.text()) for one in facts.LOCK_CHANGES]
    yield "culprits", [(one.how, traces.culprit_sentence(one)) for one in facts.CULPRITS]
    yield "how a difference entered", list(traces.HOW.items())
    yield "between which events", [("", traces.narrowed(one)) for one in facts.NARROWED]
    yield "causes", list(traces.CAUSES.items())
    yield "what a replay shows", list(traces.REPLAY_VERDICTS.items())
    yield "why an operation is not replayed", list(traces.OBSTACLES.items())
    yield "a deterministic mode", list(traces.REPLAY_MODES.items())
    yield "risks", [(kind(one), f"{one.text()} / {one.fix()}") for one in facts.RISKS]
    yield "next steps", [(one.purpose, one.comment()) for one in STEPS]


ALL = [text for _, messages in topics() for _, text in messages]


def test_the_sentences_are_the_golden_ones() -> None:
    lines = []
    for topic, messages in topics():
        lines += [topic, *(f"  {f'{name}: ' if name else ''}{text}" for name, text in messages), ""]
    assert_golden("messages.txt", "\n".join(lines))


@pytest.mark.parametrize(
    ("sort", "examples"),
    [
        (RunError, facts.RUN_ERRORS),
        (Reason, facts.REASONS),
        (Warning, facts.WARNINGS),
        (GateDetail, facts.GATE_DETAILS),
        (Doubt, facts.DOUBTS),
        (Attribution, facts.ATTRIBUTIONS),
        (Risk, facts.RISKS),
        (Inapplicable, facts.INAPPLICABLE),
        (NotVaried, facts.NOT_VARIED),
    ],
    ids=["run errors", "reasons", "warnings", "gates", "doubts", "attributions", "risks", "inapplicable", "not varied"],
)
def test_every_fact_has_an_example(sort: type[Fact], examples: tuple[object, ...]) -> None:
    assert {type(one) for one in examples} == {*kinds(sort)}


@pytest.mark.parametrize(
    ("members", "examples"),
    [
        (SourceKind, [one.kind for one in facts.SOURCES]),
        (Stage, [stage for stage, _ in facts.EXPLANATIONS]),
        (LikelyCause, [cause for _, one in facts.EXPLANATIONS for cause in one.likely]),
        (Purpose, [one.purpose for one in STEPS]),
        (How, [one.how for one in facts.CULPRITS]),
        (How, traces.HOW),
        (Cause, traces.CAUSES),
        (ReplayVerdict, traces.REPLAY_VERDICTS),
        (Obstacle, traces.OBSTACLES),
        (ModeEffect, traces.REPLAY_MODES),
        (Condition, traces.CONDITIONS),
        (FlagOutcome, FLAG_OUTCOMES),
        (Status, STATUSES),
    ],
)
def test_every_member_of_an_enum_has_an_example(members: type[Enum], examples: Any) -> None:
    assert set(examples) == set(members)


@pytest.mark.parametrize("text", ALL)
def test_a_message_is_one_plain_line(text: str) -> None:
    assert line(text) == text


@pytest.mark.parametrize(
    "fact", [*facts.RUN_ERRORS, *facts.REASONS, *facts.WARNINGS, *facts.GATE_DETAILS, *facts.RISKS]
)
def test_a_fact_with_any_text_in_it_makes_one_plain_line(fact: Any) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(type(fact))}
    texts = {name: HOSTILE for name, type_ in fields.items() if type_ is str}
    lists = {name: (HOSTILE,) for name, type_ in fields.items() if type_ == tuple[str, ...]}
    found = msgspec.structs.replace(fact, **texts, **lists)
    text = line(found.sentence() if isinstance(found, Warning) else found.text())
    assert not set(text) & set("\n\r\x1b\x00\x07")
    text.encode()
    assert text


def test_lists_of_words() -> None:
    assert [both("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert [either("abc"[:n]) for n in (1, 2, 3)] == ["a", "a, or b", "a, b, or c"]
    assert [every(n, "run") for n in (2, 5, 1000)] == ["both runs", "all 5 runs", "all 1,000 runs"]
    assert shortened("abcde", most=3) == "a, b, c and 2 more"
    assert shortened("abc", 2, most=3) == "a, b, c and 2 more"
    assert shortened("abc", most=3) == "a, b, c"
    assert shortened(()) == ""


def test_brief_numbers() -> None:
    assert [brief(n) for n in (8.6999999e-11, 0.5, 0.0, "nan", None)] == ["8.7e-11", "0.5", "0", "nan", "-"]
