"""Whole reports are compared with golden/. A mismatch is saved beside it, so that it can be accepted with mv."""

import re
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from detaudit import __version__
from detaudit.model import (
    SCHEMA_VERSION,
    AppliedRecipe,
    Audit,
    Confidence,
    Difference,
    Divergence,
    Explanation,
    FlagOutcome,
    FlagState,
    Group,
    LikelyCause,
    NextStep,
    OutputDifference,
    OutputKind,
    Purpose,
    RankRecord,
    Replicas,
    Report,
    Run,
    Source,
    SourceKind,
    Stage,
    Status,
    Varied,
    Verdict,
    as_number,
    digits,
)
from detaudit.model.difference import Probe, ProbeDifference
from detaudit.model.fact import shortened
from detaudit.model.problems import Failed, OutputsOpen, RunUnusable
from detaudit.model.sources import NoSecondLocale, TooOld
from detaudit.model.warnings import FlagNotApplied, LeftoverFilesRead
from detaudit.report import FORMATS, groups, render
from tests.report.bisections import BISECTIONS
from tests.report.checks import REPORTS
from tests.report.comparisons import COMPARISONS
from tests.report.fixes import FIXES
from tests.report.resumes import RESUMPTIONS
from tests.report.traces import TRACES

GOLDEN = Path(__file__).parent / "golden"


def a_run(number: int, total: float, *, first: Difference | None = None, ranks: int = 1) -> Run:
    records = tuple(
        RankRecord(
            rank=rank,
            framework="torch",
            steps=90,
            sum_of_weights=total + rank,
            final_loss=0.1,
            digest=f"{number}{rank}abcdef0123",
            loss_dtype="float32",
        )
        for rank in range(ranks)
    )
    return Run(id=number, status=Status.OK, exit_code=0, wall_s=3.25, steps=90, ranks=records, first_difference=first)


UNSEEDED = Source(file="train.py", line=7, kind=SourceKind.UNSEEDED, call="numpy.random.default_rng")
KERNEL = Explanation(matching=(Stage.FORWARD,), likely=(LikelyCause.BACKWARD_KERNEL,))
DIFFERS = Difference(rank=0, step=1, stage=Stage.UPDATE)
PROBE = ProbeDifference(
    name="conv2",
    occurrence=3,
    step=2,
    gradient=False,
    runs=(1, 2),
    rank=0,
    last_match=Probe(name="conv1", occurrence=3, step=2, gradient=False),
)
FAILED = Run(
    id=2,
    status=Status.FAILED,
    exit_code=1,
    wall_s=0.5,
    steps=0,
    errors=(Failed(exit_code=1),),
    stderr_tail=("Traceback (most recent call last):", "ValueError: bad | batch"),
    log_dir="runs/none/2",
)

AUDITS = {
    "nondeterministic": Audit(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "run", "train.py"),
        environment={"python": "3.11.7"},
        verdict=Verdict.NONDETERMINISTIC,
        groups=(
            Group(
                recipe=AppliedRecipe(name="none", seed=0, flags=()),
                verdict=Verdict.NONDETERMINISTIC,
                distinct_results=2,
                confidence=None,
                runs=(a_run(1, 241.42266417505016), a_run(2, 241.42266139595449, first=DIFFERS)),
                first_difference=Divergence(
                    runs=(1, 2), rank=0, step=1, stage=Stage.UPDATE, site=None, explanation=KERNEL
                ),
                stages=(Stage.INIT, Stage.FORWARD, Stage.UPDATE),
                sources=(UNSEEDED,),
                probe_count=3,
                first_probe_difference=PROBE,
                varied=(Varied(id="hash-seed", values=("PYTHONHASHSEED=0", "PYTHONHASHSEED=1")),),
                not_varied={"locale": NoSecondLocale()},
            ),
            Group(
                recipe=AppliedRecipe(name="all", seed=7, flags=("torch-seed", "tensorflow-seed")),
                verdict=Verdict.DETERMINISTIC,
                distinct_results=1,
                confidence=Confidence(level=0.95, max_differing_rate=0.95),
                runs=(a_run(1, 241.42266558895062, ranks=2), a_run(2, 241.42266558895062, ranks=2)),
                first_difference=None,
                stages=(Stage.FORWARD, Stage.UPDATE),
                replicas=Replicas(ranks=2, run=1, first_difference=Difference(rank=1, step=3, stage=Stage.UPDATE)),
                flags=(
                    FlagState(id="torch-seed", state=FlagOutcome.APPLIED),
                    FlagState(id="tensorflow-seed", state=FlagOutcome.NOT_IMPORTED),
                ),
            ),
        ),
        warnings=(
            LeftoverFilesRead(files=("cache/a.pt", "cache/b.pt"), more=3),
            FlagNotApplied(recipe="all", flag="jax-prng", reason=TooOld(framework="jax", since="0.5", found="0.4")),
        ),
        next_steps=(NextStep(command="detaudit report x", purpose=Purpose.PRINT_AGAIN),),
    ),
    "inconclusive": Audit(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "run", "train.py"),
        environment={},
        verdict=Verdict.INCONCLUSIVE,
        groups=(
            Group(
                recipe=AppliedRecipe(name="none", seed=0, flags=()),
                verdict=Verdict.INCONCLUSIVE,
                distinct_results=1,
                confidence=None,
                runs=(a_run(1, float("1.5")), FAILED),
                first_difference=None,
                reason=RunUnusable(run=2, errors=(Failed(exit_code=1),)),
            ),
        ),
        interrupted=True,
    ),
}


ALL: dict[str, Report] = {**AUDITS, **BISECTIONS, **COMPARISONS, **FIXES, **REPORTS, **RESUMPTIONS, **TRACES}


IN_ALL_FORMATS = ("nondeterministic", "fixed", "traced-kernel")
"""An audit, a bisection and a trace; a file of each has all formats, so that a changed sentence changes one file."""


def rendered(name: str, format_: str) -> str:
    text = click.unstyle(render(ALL[name], format_)).replace(__version__, "VERSION")
    text = re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1></\1>", text)  # and the policy has their digests
    return re.sub(r"sha256-[\w+/=]*", "sha256-DIGEST", text) if format_ == "html" else text


@pytest.mark.parametrize("name", IN_ALL_FORMATS)
def test_a_report_is_the_golden_one_in_all_formats(name: str) -> None:
    shown = "".join(f"======== {format_} ========\n{rendered(name, format_)}\n" for format_ in FORMATS)
    assert_golden(f"{name}.txt", shown)


@pytest.mark.parametrize("name", [name for name in ALL if name not in IN_ALL_FORMATS])
def test_a_report_is_the_golden_one(name: str) -> None:
    assert_golden(f"{name}.json", rendered(name, "json"))
    assert all(rendered(name, format_) for format_ in FORMATS)


def assert_golden(name: str, text: str) -> None:
    golden = GOLDEN / name
    expected = golden.read_text() if golden.exists() else ""
    if text != expected:
        actual = golden.with_suffix(golden.suffix + ".actual")
        actual.write_text(text)
        assert text == expected, f"to accept it: mv {actual} {golden}"


def test_numbers_have_all_their_digits() -> None:
    assert digits(0.1) == "0.10000000000000001"
    assert float(digits(241.42266417505016)) == 241.42266417505016
    assert digits(as_number(float("-inf"))) == "-inf"
    assert digits(None) == "-"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {},
            "first probe to differ: 'conv2' (value 3, step 2), runs 1 and 2; last to match: 'conv1' (value 3, step 2)",
        ),
        (
            {"gradient": True, "occurrence": 11},
            "first probe to differ: gradient of 'conv2' (gradient 11, step 2), runs 1 and 2;",
        ),
        ({"values": ("0.5", "0.25"), "step": None}, "differ: 'conv2' (value 3): 0.5 in run 1, 0.25 in run 2;"),
        ({"missing": 2, "last_match": None}, "differ: 'conv2' (value 3, step 2), missing in run 2"),
        ({"rank": 1, "occurrence": 22}, "first probe to differ on rank 1: 'conv2' (value 22, step 2)"),
    ],
)
def test_a_probe_in_words(changed: dict[str, Any], expected: str) -> None:
    group = AUDITS["nondeterministic"].groups[0]
    sentence = groups.probe_sentence(
        msgspec.structs.replace(group, first_probe_difference=msgspec.structs.replace(PROBE, **changed))
    )
    assert expected in sentence
    assert not sentence.startswith("the results match")


def test_probes_that_differ_although_the_results_match_are_reported() -> None:
    group = msgspec.structs.replace(AUDITS["nondeterministic"].groups[1], first_probe_difference=PROBE)
    expected = "the results match, but probes differ; first probe to differ on rank 0: 'conv2'"
    assert groups.probe_sentence(group).startswith(expected)


def test_quoted_and_edited_code_has_colors_of_its_own() -> None:
    lines = render(ALL["traced-order"], "table").splitlines()
    found = {click.unstyle(line).strip()[0]: line[:5] for line in lines if line.startswith("\x1b[3")}
    assert {sign: found[sign] for sign in ">-+"} == {">": "\x1b[36m", "-": "\x1b[31m", "+": "\x1b[32m"}


def test_a_column_of_ranks_has_numbers_only() -> None:
    group = AUDITS["nondeterministic"].groups[1]
    assert groups.runs_table(group).headers[:2] == ["RUN", "RANK"]
    with_file = tuple(
        msgspec.structs.replace(
            run, ranks=(run.ranks[0], msgspec.structs.replace(run.ranks[1], framework=Stage.ARTIFACT))
        )
        for run in group.runs
    )
    table = groups.runs_table(msgspec.structs.replace(group, runs=with_file))
    assert list(table.headers[:2]) == ["RUN", "PART"]
    assert [row[1] for row in table.rows] == ["0", "artifact"] * 2


def test_a_table_of_many_parts_has_the_first_and_those_that_differ() -> None:
    group = AUDITS["nondeterministic"].groups[1]
    first, other = group.runs[:2]
    assert first.ranks[1].rank == 1
    parts = (first.ranks[0], *[first.ranks[1]] * 40)
    differs = Difference(rank=7, step=1, stage=Stage.UPDATE)
    odd = msgspec.structs.replace(first.ranks[1], rank=7)
    runs = (
        msgspec.structs.replace(first, ranks=parts),
        msgspec.structs.replace(other, ranks=(*parts, odd), first_difference=differs),
    )
    rows = groups.runs_table(msgspec.structs.replace(group, runs=runs)).rows
    assert [row[-1] for row in rows if row[-1]] == ["(and 25 more)", "step 1, update", "(and 25 more)"]
    assert len(rows) == 17 + 18


def differing(kind: OutputKind, *files: str) -> tuple[OutputDifference, ...]:
    return tuple(OutputDifference(path=file, kind=kind, at="row 1") for file in files)


def test_all_files_that_differ_are_in_the_verdict() -> None:
    group = AUDITS["nondeterministic"].groups[0]
    outputs = differing(OutputKind.VALUE, "a.csv", "b.csv", "c.csv", "d.csv") + differing(OutputKind.WORDS, "stdout")
    assert group.first_difference is not None
    first = msgspec.structs.replace(group.first_difference, stage=Stage.SAVED, output=outputs[0])
    found = msgspec.structs.replace(group, first_difference=first, output_differences=outputs)
    sentence = "the trainings match, a.csv differs (row 1), and so do other outputs: b.csv, c.csv, d.csv; "
    assert groups.verdict_sentence(found).startswith(sentence)
    alone = msgspec.structs.replace(found, output_differences=outputs[:1])
    assert groups.verdict_sentence(alone).startswith("the trainings match, a.csv differs (row 1); ")


def test_all_files_that_may_differ_are_in_the_reason() -> None:
    outputs = differing(OutputKind.UNREADABLE, "a.bin", "b.bin", "c.bin", "d.bin")
    group = msgspec.structs.replace(
        AUDITS["inconclusive"].groups[0],
        output_differences=outputs,
        reason=OutputsOpen(first=outputs[0], more=3),
    )
    assert ", and 3 more differences like this (b.bin, c.bin, d.bin). " in groups.verdict_sentence(group)


def test_no_single_word_is_left_out() -> None:
    assert shortened("abcd", most=3) == "a, b, c, d"
    assert shortened("abcde", most=3) == "a, b, c and 2 more"
    assert shortened("abcd", more=2, most=3) == "a, b, c and 3 more"
