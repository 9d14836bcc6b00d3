from typing import Any

import msgspec
import pytest

from detaudit import check
from detaudit.config.project import NamedAudit
from detaudit.model import (
    AppliedRecipe,
    Change,
    Difference,
    Divergence,
    Explanation,
    FinalState,
    Gate,
    GateDetail,
    GateName,
    GateStatus,
    Group,
    LikelyCause,
    Number,
    RankRecord,
    Recording,
    Run,
    Stage,
    Status,
    Training,
    Verdict,
    record_of,
)
from detaudit.model.check import (
    DiffersFromBaseline,
    MatchesBaseline,
    NoBaseline,
    NoWeights,
    ResumeDiffers,
    ResumeMatches,
    ResumeUnusable,
    RunsGaveDifferentResults,
    RunsInconclusive,
    RunsMatch,
    RunsMustMatch,
    StartedOver,
    StoppedTooLate,
    StopUnusable,
)
from detaudit.model.outputs import File, Outputs, Value
from detaudit.model.problems import Failed, RunUnusable
from detaudit.model.resume import Lost, LostKind, Place, ResumedPoint, ResumeStatus

RECIPE = AppliedRecipe(name="none", seed=0, flags=())
BROKEN = (Failed(exit_code=3),)
replace = msgspec.structs.replace


def rank(digest: str | None = "d", loss: Number = 0.5, steps: int = 4) -> RankRecord:
    return RankRecord(rank=0, framework="torch", steps=steps, sum_of_weights=1.0, final_loss=loss, digest=digest)


def run(number: int = 1, *, status: Status = Status.OK, steps: int = 4, **record: Any) -> Run:
    ranks = (rank(steps=steps, **record),)
    return Run(id=number, status=status, exit_code=0, wall_s=1.0, steps=steps, ranks=ranks, errors=BROKEN)


def group(verdict: Verdict = Verdict.DETERMINISTIC, **changed: Any) -> Group:
    made = Group(
        recipe=RECIPE,
        verdict=verdict,
        distinct_results=1,
        confidence=None,
        first_difference=None,
        runs=(run(1), run(2)),
    )
    return replace(made, **changed)


def recording(loss: Number = 0.5, *, update: str = "u", **changed: Any) -> Recording:
    digests: dict[Stage, dict[int, tuple[str, ...]]]
    digests = {Stage.UPDATE: {step: (text,) for step, text in enumerate(("w1", "w2", update, update), 1)}}
    trained = Training(framework="torch", steps=4, digests=digests, final=FinalState(digest=update, sum=1.0, loss=loss))
    made = Recording(command=("train.py",), recipe=RECIPE, environment={"torch": "2.13.0"}, run=record_of((trained,)))
    return replace(made, **changed)


ELSEWHERE: dict[str, Any] = {"environment": {"torch": "2.14.0"}}
CHANGED = (Change(name="torch", a="2.13.0", b="2.14.0"),)
AUDIT = NamedAudit(command="train.py")

THERE = Difference(rank=0, step=3, stage=Stage.UPDATE)
EXPLANATION = Explanation(likely=(LikelyCause.DATA, LikelyCause.OPTIMIZER, LikelyCause.RACE))
DIFFERS = DiffersFromBaseline(step=3, stage=Stage.UPDATE, explanation=EXPLANATION)
CODE_CHANGED = replace(DIFFERS, explanation=Explanation(likely=(LikelyCause.CODE,)))
"""In the same environment, when the runs match each other."""


def against(now: Recording, then: Recording | None = None, audit: NamedAudit = AUDIT, **changed: Any) -> Gate:
    gate = check.same_as_baseline(audit, group(**changed), now, then or recording())
    assert gate.name is GateName.BASELINE
    return gate


def test_runs_that_match_are_repeatable() -> None:
    detail = RunsMatch(runs=2)
    expected = Gate(name=GateName.REPEATABLE, status=GateStatus.PASSED, blocking=False, detail=detail)
    assert check.repeatable(group()) == expected


def test_runs_that_were_ended_are_repeatable_through_a_step() -> None:
    assert check.repeatable(group(through=3)).detail == RunsMatch(runs=2, through=3)


def test_runs_that_differ_are_not_and_the_gate_shows_where() -> None:
    found = Divergence(runs=(1, 2), rank=0, step=3, stage=Stage.UPDATE, site="a", explanation=EXPLANATION)
    gate = check.repeatable(group(Verdict.NONDETERMINISTIC, first_difference=found, distinct_results=2))
    assert gate == Gate(
        name=GateName.REPEATABLE,
        status=GateStatus.FAILED,
        blocking=True,
        detail=RunsGaveDifferentResults(runs=2, distinct_results=2, first_difference=found),
        first_difference=replace(THERE, site="a"),
    )


def test_an_inconclusive_group_blocks() -> None:
    reason = RunUnusable(run=1, errors=BROKEN)
    gate = check.repeatable(group(Verdict.INCONCLUSIVE, reason=reason))
    assert gate == inconclusive(GateName.REPEATABLE, RunsInconclusive(reason=reason))


def inconclusive(name: GateName, detail: GateDetail) -> Gate:
    return Gate(name=name, status=GateStatus.INCONCLUSIVE, blocking=True, detail=detail)


def test_a_match_with_the_baseline_is_proof_in_any_environment() -> None:
    gate = against(recording())
    assert (gate.status, gate.blocking, gate.detail) == (GateStatus.PASSED, False, MatchesBaseline())
    gate = against(recording(**ELSEWHERE))
    assert (gate.status, gate.blocking) == (GateStatus.PASSED, False)
    assert gate.detail == MatchesBaseline(changed=("torch",))
    assert (gate.environment_changes, gate.first_difference) == (CHANGED, None)


def test_runs_that_were_ended_match_the_baseline_through_the_earlier_step() -> None:
    (trained,) = recording().run.trainings
    ended, later = (recording(run=record_of((trained.through(step),))) for step in (2, 3))
    for now, then in ((ended, recording()), (recording(), ended), (ended, later), (later, ended)):
        assert against(now, then).detail == MatchesBaseline(through=2)


def test_different_bits_in_the_same_environment_fail() -> None:
    gate = against(recording(update="other"))
    assert (gate.status, gate.blocking) == (GateStatus.FAILED, True)
    assert (gate.detail, gate.first_difference, gate.environment_changes) == (CODE_CHANGED, THERE, ())


def test_the_file_that_differs_is_named() -> None:
    trained = recording().run.trainings
    then, now = (
        recording(
            run=record_of(
                trained,
                Outputs(files=(File(path="a.csv", name="a.csv", sha256=one, size=1, values=(Value("row 1", one),)),)),
            )
        )
        for one in ("1", "2")
    )
    gate = against(now, then)
    assert isinstance(gate.detail, DiffersFromBaseline)
    assert (gate.detail.stage, gate.detail.site) == (Stage.SAVED, "a.csv: row 1")
    gate = against(recording(run=record_of(trained, Outputs())), then)
    assert isinstance(gate.detail, DiffersFromBaseline)
    assert (gate.detail.stage, gate.detail.site) == (Stage.SAVED, "a.csv")


def test_the_last_equal_step_is_shown_if_the_baseline_keeps_none_right_before_the_difference() -> None:
    (whole,) = recording().run.trainings
    thin = replace(whole, digests={Stage.UPDATE: {1: ("w1",), 4: ("u",)}})
    gate = against(recording(update="other"), recording(run=record_of((thin,))))
    assert gate.detail == replace(CODE_CHANGED, step=4, last_equal_step=1)
    thin = replace(whole, digests={Stage.UPDATE: {1: ("w1",), 3: ("u",)}})
    gate = against(recording(update="other"), recording(run=record_of((thin,))))
    assert gate.detail == replace(CODE_CHANGED, last_equal_step=1)


def test_the_stages_that_both_recorded_explain_a_difference() -> None:
    (trained,) = recording().run.trainings
    stages = ((Stage.RNG, Stage.BATCH), (Stage.RNG, Stage.FORWARD))
    then, now = (
        replace(
            trained, digests={**{stage: {1: ("same",)} for stage in both}, Stage.UPDATE: {3: (update,)}}, final=None
        )
        for both, update in zip(stages, ("u", "other"), strict=True)
    )
    gate = against(recording(run=record_of((now,)), **ELSEWHERE), recording(run=record_of((then,))))
    assert isinstance(gate.detail, DiffersFromBaseline)
    assert gate.detail.explanation == replace(EXPLANATION, matching=(Stage.RNG,))


def test_a_difference_at_the_end_is_shown_as_one() -> None:
    (trained,) = recording().run.trainings
    changed = replace(trained, final=FinalState(digest="written after the last step", loss=0.5))
    gate = against(recording(run=record_of((changed,))))
    explanation = Explanation(likely=(LikelyCause.AFTER_THE_LAST_STEP,))
    assert gate.detail == replace(DIFFERS, step=4, at_end=True, explanation=explanation)


def test_the_rank_that_differs_is_shown() -> None:
    first, second = (recording(update=update).run.trainings[0] for update in ("u", "other"))
    then, now = (recording(run=record_of((first, other))) for other in (first, second))
    assert against(now, then).detail == replace(CODE_CHANGED, rank=1)


@pytest.mark.parametrize(("policy", "blocks"), [("fail", True), ("warn", False), ("rebase", False)])
def test_different_bits_in_a_different_environment_are_incomparable(policy: Any, blocks: bool) -> None:
    gate = against(recording(update="other", **ELSEWHERE), audit=replace(AUDIT, policy=policy))
    assert (gate.status, gate.blocking) == (GateStatus.INCOMPARABLE, blocks)
    assert (gate.environment_changes, gate.first_difference) == (CHANGED, THERE)
    assert gate.detail == replace(DIFFERS, changed=("torch",))


@pytest.mark.parametrize(
    ("loss", "status", "distance"),
    [
        (0.5 * (1 + 1e-5), GateStatus.PASSED, pytest.approx(1e-5)),
        (0.51, GateStatus.INCOMPARABLE, pytest.approx(0.02)),
        ("nan", GateStatus.INCOMPARABLE, "inf"),
        (None, GateStatus.INCOMPARABLE, "inf"),
    ],
)
def test_a_tolerance_counts_if_bits_may_differ(loss: Number, status: GateStatus, distance: Any) -> None:
    audit = replace(AUDIT, loss_tolerance=1e-4)
    gate = against(recording(loss, update="other", **ELSEWHERE), audit=audit)
    assert (gate.status, gate.blocking) == (status, status is not GateStatus.PASSED)
    assert (gate.environment_changes, gate.first_difference) == (CHANGED, THERE)
    assert isinstance(gate.detail, DiffersFromBaseline)
    assert gate.detail.loss_distance == distance
    assert replace(gate.detail, loss_distance=None) == replace(DIFFERS, changed=("torch",), tolerance=1e-4)
    gate = against(recording(loss, update="other"), audit=audit)
    assert (gate.status, gate.detail) == (GateStatus.FAILED, CODE_CHANGED)


@pytest.mark.parametrize(
    ("then", "now", "status", "distance"),
    [
        (0.5, 0.5, GateStatus.PASSED, 0.0),
        (0.0, 0.0, GateStatus.PASSED, 0.0),
        (0.0, 0.5, GateStatus.INCOMPARABLE, "inf"),
        (-0.5, -0.25, GateStatus.PASSED, 0.5),
        (1, 0.5, GateStatus.PASSED, 0.5),
        (0.5, 0.76, GateStatus.INCOMPARABLE, 0.52),
        ("inf", 0.5, GateStatus.INCOMPARABLE, "inf"),
    ],
)
def test_the_distance_of_losses_is_relative_to_the_baseline(
    then: Number, now: Number, status: GateStatus, distance: Number
) -> None:
    audit = replace(AUDIT, loss_tolerance=0.5)
    gate = against(recording(now, update="other", **ELSEWHERE), recording(then), audit)
    assert isinstance(gate.detail, DiffersFromBaseline)
    assert (gate.status, gate.detail.loss_distance) == (status, distance)


def test_no_tolerance_is_the_same_as_one_of_zero_but_for_equal_losses() -> None:
    for now, tolerance, status in (
        (0.5, None, GateStatus.INCOMPARABLE),
        (0.5, 0.0, GateStatus.PASSED),
        (0.6, 0.0, GateStatus.INCOMPARABLE),
    ):
        audit = replace(AUDIT, loss_tolerance=tolerance)
        assert against(recording(now, update="other", **ELSEWHERE), audit=audit).status is status


def test_the_largest_distance_of_any_part_counts_and_none_if_a_part_is_missing() -> None:
    audit = replace(AUDIT, loss_tolerance=0.9)

    def distance(*losses: Number) -> Number:
        parts = tuple(recording(loss, update="other").run.trainings[0] for loss in losses)
        then = tuple(recording(loss).run.trainings[0] for loss in (0.5, 1.0))
        gate = against(recording(run=record_of(parts), **ELSEWHERE), recording(run=record_of(then)), audit)
        assert isinstance(gate.detail, DiffersFromBaseline)
        return gate.detail.loss_distance

    assert distance(0.5, 1.5) == 0.5
    assert distance(0.75, 1.25) == 0.5
    assert distance(0.5) == distance(0.5, 1.0, 1.0) == "inf"


def test_a_different_command_is_no_regression() -> None:
    gate = against(recording(update="other", command=("train.py", "--epochs", "9")))
    assert gate.status is GateStatus.INCOMPARABLE
    assert [change.name for change in gate.environment_changes] == ["command"]
    assert gate.detail == replace(DIFFERS, changed=("command",))


def test_without_a_baseline_or_without_matching_runs_nothing_is_compared() -> None:
    nothing = check.same_as_baseline(AUDIT, group(), recording(), None)
    assert nothing == inconclusive(GateName.BASELINE, NoBaseline())
    mismatch = inconclusive(GateName.BASELINE, RunsMustMatch())
    assert against(recording(), verdict=Verdict.NONDETERMINISTIC) == mismatch
    assert check.same_as_baseline(AUDIT, group(), None, recording()) == mismatch


def point(status: ResumeStatus, **fields: Any) -> ResumedPoint:
    counts = {"stopped_after": 2, "steps": 4, "resumed_after": 2, "resumed_steps": 2}
    ranks = {"uninterrupted": (rank(),), "resumed": (rank(),)}
    return ResumedPoint(place=Place.AT, status=status, **{**counts, **ranks, **fields})


def test_a_resumed_run_is_judged_by_how_it_ends() -> None:
    detail: GateDetail = ResumeMatches(stopped_after=2, steps=4, resumed_steps=2)
    gate = check.same_after_resume(group(), point(ResumeStatus.MATCHES))
    assert gate == Gate(name=GateName.RESUME, status=GateStatus.PASSED, blocking=False, detail=detail)
    changed = run(digest="other").ranks
    lost = (Lost(what=LostKind.OPTIMIZER, step=3, names=("exp_avg of weight",), total=1),)
    first = Difference(rank=0, step=3, stage=Stage.UPDATE)
    gate = check.same_after_resume(
        group(), point(ResumeStatus.DIFFERS, resumed=changed, lost=lost, first_difference=first)
    )
    detail = ResumeDiffers(
        stopped_after=2, steps=4, resumed_steps=2, uninterrupted=(rank(),), resumed=changed, lost=lost
    )
    failed = Gate(name=GateName.RESUME, status=GateStatus.FAILED, blocking=True, detail=detail, first_difference=first)
    assert gate == failed
    assert "lost: the state of the optimizer (exp_avg of weight)" in detail.text()


@pytest.mark.parametrize(
    ("tried", "detail"),
    [
        (point(ResumeStatus.UNUSABLE, too_late=True), StoppedTooLate(steps=4)),
        (point(ResumeStatus.ANEW, resumed_after=0, resumed_steps=4), StartedOver(resumed_steps=4)),
        (point(ResumeStatus.UNUSABLE, errors=BROKEN), ResumeUnusable(errors=BROKEN)),
        (point(ResumeStatus.UNUSABLE, errors=BROKEN, stopping=True), StopUnusable(errors=BROKEN)),
        (point(ResumeStatus.UNUSABLE), NoWeights()),
        (None, RunsMustMatch()),
    ],
)
def test_a_resume_that_did_not_happen_is_inconclusive(tried: ResumedPoint | None, detail: GateDetail) -> None:
    assert check.same_after_resume(group(), tried) == inconclusive(GateName.RESUME, detail)
