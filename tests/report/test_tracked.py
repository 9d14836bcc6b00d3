"""What experiment trackers show of reports."""

import json
import re

import pytest
from msgspec.structs import replace

from detaudit.model import Audit, Bisection, Check, RankRecord, Run, Status
from detaudit.model.figures import Figures, GroupFigures, LossSamples
from detaudit.report.tracked import TrackedAudit, tracked
from tests.report.bisections import BISECTIONS
from tests.report.checks import CHECK
from tests.report.test_reporters import ALL, AUDITS
from tests.report.traces import TRACES
from tests.words import different, same

STORED = {name: report for name, report in ALL.items() if isinstance(report, Audit | Check)}
NONDETERMINISTIC = AUDITS["nondeterministic"]


def one(audit: Audit, figures: Figures | None = None) -> TrackedAudit:
    (found,) = tracked(audit, figures or Figures())
    return found


@pytest.mark.parametrize("name", STORED)
def test_every_report_that_is_kept_can_be_tracked(name: str) -> None:
    report = STORED[name]
    found = tracked(report, Figures())
    audits = [one.audit for one in report.audits] if isinstance(report, Check) else [report]
    assert [one.tags["verdict"] for one in found] == [audit.verdict for audit in audits]
    assert len({one.id for one in found}) == len(audits)
    for tracked_, audit in zip(found, audits, strict=True):
        assert [run.number for run in tracked_.runs] == [run.id for group in audit.groups for run in group.runs]
        assert len({run.key for run in tracked_.runs}) == len(tracked_.runs)
        names = [*tracked_.tags, *tracked_.params, *tracked_.metrics]
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)
        assert "answer" in " ".join(names)
        json.dumps([tracked_.metrics, [run.metrics for run in tracked_.runs]])


def test_recipes_have_names_of_their_own_if_there_are_several() -> None:
    found = one(NONDETERMINISTIC)
    assert found.script == "train.py"
    assert found.params["recipe"] == "none, all"
    assert found.tags["verdict"] == "nondeterministic"
    assert found.tags["verdict.all"] == "deterministic"
    assert found.tags["first_difference.none"].startswith("runs 1 and 2 first differ at step 1 (update)")
    assert found.tags["culprit.none"].startswith("train.py:7: ")
    assert found.tags["flags.all"] == "torch-seed, tensorflow-seed"
    assert found.metrics["distinct_results.none"] == 2
    assert found.metrics["first_difference_step.none"] == 1
    assert found.metrics["max_differing_rate.all"] == 0.95
    alone = one(replace(NONDETERMINISTIC, groups=NONDETERMINISTIC.groups[:1]))
    assert alone.metrics["distinct_results"] == 2
    assert "evidence" not in alone.tags


def test_a_description_begins_with_the_answers() -> None:
    alone, *lines = one(replace(NONDETERMINISTIC, groups=NONDETERMINISTIC.groups[:1])).note.splitlines()
    assert alone.startswith(f"**nondeterministic**: {different()}; runs 1 and 2 first differ at step 1")
    assert "## detaudit: nondeterministic" in lines
    several = one(NONDETERMINISTIC).note.splitlines()
    assert several[0] == "**nondeterministic**"
    assert several[2].startswith(f"- none: {different()}")
    assert several[3].startswith(f"- all: {same()}")


def test_a_run_has_its_fingerprint_by_rank() -> None:
    first, second, third, _ = one(NONDETERMINISTIC).runs
    assert (first.key, first.name) == ("none/1/3.25", "none, run 1")
    assert first.metrics["sum_of_weights"] == 241.42266417505016
    assert first.tags["digest"] == "10abcdef0123"
    assert second.tags["first_difference"] == "step 1, update"
    assert third.tags["digest.rank_1"] == "11abcdef0123"
    assert third.metrics["sum_of_weights.rank_1"] == 242.42266558895062


def test_a_run_that_failed_says_why() -> None:
    _, failed = one(AUDITS["inconclusive"]).runs
    assert failed.status is Status.FAILED
    assert "exit status 1" in failed.tags["error"]
    assert failed.metrics == {"duration_s": 0.5, "steps": 0}
    assert one(AUDITS["inconclusive"]).tags["interrupted"] == "yes"


def test_losses_are_curves_also_if_they_are_not_finite() -> None:
    samples = (
        LossSamples(run=1, rank=0, steps=(1, 2, 3), losses=(0.5, "nan", None)),
        LossSamples(run=2, rank=0, steps=(1, 2), losses=(0.5, "inf"), distances=(0.0, None)),
        LossSamples(run=2, rank=3, steps=(1,), losses=(0.25,)),
    )
    first, second, *_ = one(NONDETERMINISTIC, Figures(groups=(GroupFigures(samples=samples),))).runs
    assert str(first.curves) == "{'loss': [(1, 0.5), (2, nan)]}"
    assert second.curves == {
        "loss.rank_0": [(1, 0.5), (2, float("inf"))],
        "loss_distance.rank_0": [(1, 0.0)],
        "loss.rank_3": [(1, 0.25)],
    }


def test_an_audit_of_a_check_has_its_gates() -> None:
    digits, race = tracked(CHECK, Figures())
    assert (digits.script, race.script) == ("examples/digits.py", "race.py")
    assert digits.name.startswith("Audit digits")
    assert digits.tags["gate.repeatable"].startswith("passed: ")
    assert digits.tags["gate.baseline"].startswith("incomparable: ")
    assert digits.tags["gate.resume"].startswith("failed: ")


def test_a_bisection_has_its_flags_and_a_trace_its_culprit() -> None:
    fixed = BISECTIONS["fixed"]
    assert isinstance(fixed, Bisection)
    assert one(fixed).tags["needed_flags"].split(", ") == [flag.flag for flag in fixed.needed or ()]
    assert "recipe" not in one(fixed).params
    assert {run.recipe for run in one(fixed).runs} == {group.recipe.name for group in fixed.groups}
    assert one(TRACES["traced-number"]).tags["culprit"].startswith("train.py:7: ")


def a_run(seconds: float) -> Run:
    rank = RankRecord(rank=0, framework="torch", steps=1, sum_of_weights=1.0, final_loss=1.0, digest="ab")
    return Run(id=1, status=Status.OK, exit_code=0, wall_s=seconds, steps=1, ranks=(rank,), log_dir="runs/none/1")


def audited(report: Audit, seconds: float, started: str) -> str:
    group = replace(report.groups[0], runs=(a_run(seconds), *report.groups[0].runs[1:]))
    return one(replace(report, groups=(group, *report.groups[1:]), started=started)).id


def test_an_audit_has_an_id_that_no_other_one_has_and_that_a_resumed_bisection_keeps() -> None:
    early, late = "2026-11-23T15:03:10+00:00", "2026-11-24T08:00:00+00:00"
    assert audited(NONDETERMINISTIC, 1.5, early) == audited(replace(NONDETERMINISTIC, interrupted=True), 1.5, early)
    assert audited(NONDETERMINISTIC, 1.5, early) != audited(NONDETERMINISTIC, 1.5, late)
    assert audited(NONDETERMINISTIC, 1.5, early) != audited(NONDETERMINISTIC, 1.501, early)
    fixed = BISECTIONS["fixed"]
    assert isinstance(fixed, Bisection)
    assert audited(fixed, 1.5, early) == audited(replace(fixed, groups=fixed.groups[:1]), 1.5, late)
    assert audited(fixed, 1.5, early) != audited(fixed, 1.501, early)
    assert one(replace(fixed, groups=())).id != one(replace(fixed, groups=(), started=late)).id


def test_no_text_controls_a_terminal_or_breaks_a_line() -> None:
    group = NONDETERMINISTIC.groups[0]
    hostile = replace(group, recipe=replace(group.recipe, name="a\x1b[31m\nb\udcff"))
    found = one(replace(NONDETERMINISTIC, command=("detaudit", "run", "a\x1b[31m\nb\udcff.py"), groups=(hostile,)))
    texts = [found.script, found.name, *found.tags.values(), *found.params.values(), *found.runs[0].params.values()]
    assert all(text.isprintable() and text.encode() for text in (*texts, found.runs[0].key, found.runs[0].name))
