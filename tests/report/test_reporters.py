"""Whole reports are compared with the ones in golden/; a mismatch is saved beside, so accepting it is a copy."""

from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from detaudit import __version__
from detaudit.model import (
    Audit,
    Confidence,
    Difference,
    Divergence,
    FlagState,
    Group,
    NextStep,
    RankRecord,
    Recipe,
    Replicas,
    Report,
    Run,
    Source,
    Stage,
    Status,
    Varied,
    Verdict,
    as_number,
    digits,
)
from detaudit.probe import Probe, ProbeDifference
from detaudit.report import FORMATS, probes, render
from tests.report.bisections import BISECTIONS
from tests.report.checks import REPORTS
from tests.report.comparisons import COMPARISONS
from tests.report.traces import TRACES

GOLDEN = Path(__file__).parent / "golden"


def a_run(number: int, total: float, *, differs: Difference | None = None, ranks: int = 1) -> Run:
    records = tuple(
        RankRecord(
            rank=rank,
            framework="torch",
            steps=90,
            sum_of_weights=total + rank,
            final_loss=0.1,
            digest=f"{number}{rank}abcdef0123",
        )
        for rank in range(ranks)
    )
    return Run(id=number, status=Status.OK, exit_code=0, wall_s=3.25, steps=90, ranks=records, differs=differs)


DIFFERS = Difference(rank=0, step=1, stage=Stage.UPDATE)
PROBE = ProbeDifference(
    name="conv2",
    occurrence=3,
    step=2,
    gradient=False,
    runs=(1, 2),
    rank=0,
    agrees=Probe(name="conv1", occurrence=3, step=2, gradient=False),
)
FAILED = Run(
    id=2,
    status=Status.FAILED,
    exit_code=1,
    wall_s=0.5,
    steps=0,
    problem="the script failed with exit status 1",
    stderr_tail=("Traceback (most recent call last):", "ValueError: bad | batch"),
    logs="/x/runs/none/2",
)

AUDITS = {
    "nondeterministic": Audit(
        schema_version=1,
        command=("detaudit", "run", "train.py"),
        environment={"python": "3.11.7"},
        verdict=Verdict.NONDETERMINISTIC,
        groups=(
            Group(
                recipe=Recipe(name="none", seed=0, flags=()),
                verdict=Verdict.NONDETERMINISTIC,
                distinct=2,
                confidence=None,
                runs=(a_run(1, 241.42266417505016), a_run(2, 241.42266139595449, differs=DIFFERS)),
                divergence=Divergence(
                    runs=(1, 2), rank=0, step=1, stage=Stage.UPDATE, site=None, cause="a backward kernel"
                ),
                stages=(Stage.INIT, Stage.FORWARD, Stage.UPDATE),
                sources=(Source(file="train.py", line=7, what="numpy.random.default_rng() without a seed"),),
                probes=3,
                probe=PROBE,
                varied=(Varied(id="hash-seed", values=("PYTHONHASHSEED=0", "PYTHONHASHSEED=1")),),
                not_varied={"locale": "no other locale is installed here"},
            ),
            Group(
                recipe=Recipe(name="all", seed=7, flags=("torch-seed", "tensorflow-seed")),
                verdict=Verdict.DETERMINISTIC,
                distinct=1,
                confidence=Confidence(level=0.95, max_deviation_rate=0.95),
                runs=(a_run(1, 241.42266558895062, ranks=2), a_run(2, 241.42266558895062, ranks=2)),
                divergence=None,
                stages=(Stage.FORWARD, Stage.UPDATE),
                replicas=Replicas(ranks=2, run=1, differs=Difference(rank=1, step=3, stage=Stage.UPDATE)),
                flags=(
                    FlagState(id="torch-seed", state="applied"),
                    FlagState(id="tensorflow-seed", state="not-reached"),
                ),
            ),
        ),
        warnings=("a run read what an earlier run wrote",),
        next_steps=(NextStep(command="detaudit report x", why="print this again"),),
    ),
    "inconclusive": Audit(
        schema_version=1,
        command=("detaudit", "run", "train.py"),
        environment={},
        verdict=Verdict.INCONCLUSIVE,
        groups=(
            Group(
                recipe=Recipe(name="none", seed=0, flags=()),
                verdict=Verdict.INCONCLUSIVE,
                distinct=1,
                confidence=None,
                runs=(a_run(1, float("1.5")), FAILED),
                divergence=None,
                reason="run 2: the script failed with exit status 1",
            ),
        ),
        interrupted=True,
    ),
}


ALL: dict[str, Report] = {**AUDITS, **BISECTIONS, **COMPARISONS, **REPORTS, **TRACES}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", ALL)
def test_a_report_is_the_golden_one(name: str, format_: str) -> None:
    golden = GOLDEN / f"{name}.{format_}"
    text = click.unstyle(render(ALL[name], format_)).replace(__version__, "VERSION")
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
            "probe that differs is 'conv2' (its 3rd value, step 2) between runs 1 and 2; 'conv1' (its 3rd value",
        ),
        ({"gradient": True, "occurrence": 11}, "is the gradient of 'conv2' (its 11th gradient, step 2) between"),
        ({"values": ("0.5", "0.25"), "step": None}, "'conv2' (its 3rd value): 0.5 in run 1, 0.25 in run 2"),
        ({"missing": 2, "agrees": None}, "'conv2' (its 3rd value, step 2), which run 2 does not have"),
        ({"rank": 1, "occurrence": 22}, "differs of rank 1 is 'conv2' (its 22nd value"),
    ],
)
def test_a_probe_in_words(changed: dict[str, Any], expected: str) -> None:
    group = AUDITS["nondeterministic"].groups[0]
    sentence = probes.sentence(msgspec.structs.replace(group, probe=msgspec.structs.replace(PROBE, **changed)))
    assert expected in sentence
    assert not sentence.startswith("the results agree")


def test_probes_that_differ_while_the_results_agree_are_said_to() -> None:
    group = msgspec.structs.replace(AUDITS["nondeterministic"].groups[1], probe=PROBE)
    assert probes.sentence(group).startswith(
        "the results agree all the same, but the first probe that differs of rank 0"
    )
