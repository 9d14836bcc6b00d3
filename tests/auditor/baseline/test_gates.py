from typing import Any

import msgspec
import pytest

from detaudit.auditor.baseline import gates
from detaudit.model import (
    Divergence,
    FinalState,
    Gate,
    GateStatus,
    Group,
    Number,
    RankRecord,
    Recipe,
    Recording,
    Run,
    Stage,
    Status,
    Training,
    Verdict,
    record_of,
)
from detaudit.recipe.project import NamedAudit

RECIPE = Recipe(name="none", seed=0, flags=())
tell = msgspec.structs.replace


def rank(digest: str | None = "d", loss: Number = 0.5, steps: int = 4) -> RankRecord:
    return RankRecord(rank=0, framework="torch", steps=steps, sum_of_weights=1.0, final_loss=loss, digest=digest)


def run(number: int = 1, *, status: Status = Status.OK, steps: int = 4, **record: Any) -> Run:
    ranks = (rank(steps=steps, **record),)
    return Run(id=number, status=status, exit_code=0, wall_s=1.0, steps=steps, ranks=ranks, problem="it broke")


def group(verdict: Verdict = Verdict.DETERMINISTIC, **changed: Any) -> Group:
    made = Group(recipe=RECIPE, verdict=verdict, distinct=1, confidence=None, divergence=None, runs=(run(1), run(2)))
    return tell(made, **changed)


def recording(loss: Number = 0.5, *, update: str = "u", **changed: Any) -> Recording:
    digests: dict[Stage, dict[int, tuple[str, ...]]]
    digests = {Stage.UPDATE: {step: (text,) for step, text in enumerate(("w1", "w2", update, update), 1)}}
    trained = Training(framework="torch", steps=4, digests=digests, final=FinalState(digest=update, sum=1.0, loss=loss))
    made = Recording(command=("train.py",), recipe=RECIPE, environment={"torch": "2.13.0"}, run=record_of((trained,)))
    return tell(made, **changed)


ELSEWHERE: dict[str, Any] = {"environment": {"torch": "2.14.0"}}
AUDIT = NamedAudit(command="train.py")


def against(now: Recording, then: Recording | None = None, audit: NamedAudit = AUDIT, **changed: Any) -> Gate:
    return gates.same_as_baseline(audit, group(**changed), now, then or recording())


def test_runs_that_are_equal_are_repeatable() -> None:
    gate = gates.repeatable(group())
    assert (gate.status, gate.blocks, gate.message) == (GateStatus.PASSED, False, "2 runs, all bit-identical")


def test_runs_that_differ_are_not_and_it_is_said_where() -> None:
    found = Divergence(runs=(1, 2), rank=0, step=3, stage=Stage.UPDATE, site=None, cause="because")
    gate = gates.repeatable(group(Verdict.NONDETERMINISTIC, divergence=found, distinct=2))
    assert (gate.status, gate.blocks) == (GateStatus.FAILED, True)
    assert gate.message == "2 runs, 2 different results; from step 3 on, stage update: because"
    assert gate.differs is not None
    assert gate.differs.step == 3


def test_what_could_not_be_judged_blocks() -> None:
    gate = gates.repeatable(group(Verdict.INCONCLUSIVE, reason="run 1: it broke"))
    assert (gate.status, gate.blocks, gate.message) == (GateStatus.UNKNOWN, True, "run 1: it broke")


def test_equal_to_the_baseline_is_a_fact_in_any_environment() -> None:
    assert against(recording()).status is GateStatus.PASSED
    gate = against(recording(**ELSEWHERE))
    assert gate.status is GateStatus.PASSED
    assert "torch" in gate.message


def test_other_bits_in_the_same_environment_fail() -> None:
    gate = against(recording(update="other"))
    assert (gate.status, gate.blocks) == (GateStatus.FAILED, True)
    assert gate.message.startswith("not the baseline from step 3 on, stage update")


@pytest.mark.parametrize(("policy", "blocks"), [("fail", True), ("warn", False), ("rebase", False)])
def test_other_bits_in_another_environment_are_incomparable(policy: Any, blocks: bool) -> None:
    gate = against(recording(update="other", **ELSEWHERE), audit=tell(AUDIT, policy=policy))
    assert (gate.status, gate.blocks) == (GateStatus.INCOMPARABLE, blocks)
    assert [(change.name, change.a, change.b) for change in gate.environment] == [("torch", "2.13.0", "2.14.0")]
    assert "torch changed" in gate.message


@pytest.mark.parametrize(
    ("loss", "status"),
    [
        (0.5 * (1 + 1e-5), GateStatus.PASSED),
        (0.51, GateStatus.INCOMPARABLE),
        ("nan", GateStatus.INCOMPARABLE),
        (None, GateStatus.INCOMPARABLE),
    ],
)
def test_a_tolerance_counts_where_bits_may_differ(loss: Number, status: GateStatus) -> None:
    audit = tell(AUDIT, loss_tolerance=1e-4)
    assert against(recording(loss, update="other", **ELSEWHERE), audit=audit).status is status
    assert against(recording(loss, update="other"), audit=audit).status is GateStatus.FAILED


def test_what_was_asked_for_in_another_way_is_no_regression() -> None:
    gate = against(recording(update="other", command=("train.py", "--epochs", "9")))
    assert gate.status is GateStatus.INCOMPARABLE
    assert [change.name for change in gate.environment] == ["command"]


def test_no_baseline_and_no_equal_runs_are_unknown() -> None:
    assert gates.same_as_baseline(AUDIT, group(), recording(), None).status is GateStatus.UNKNOWN
    assert against(recording(), verdict=Verdict.NONDETERMINISTIC).status is GateStatus.UNKNOWN


def test_a_run_that_went_on_is_told_by_how_it_ends() -> None:
    stopped, resumed = run(status=Status.STOPPED, steps=2), run(steps=4)
    assert gates.same_after_resume(group(), stopped, resumed, 2).status is GateStatus.PASSED
    gate = gates.same_after_resume(group(), stopped, run(digest="other"), 2)
    assert (gate.status, gate.blocks) == (GateStatus.FAILED, True)
    assert gate.message.startswith("stopped after step 2 of 4, resumed for 2: it ends otherwise")
    assert gates.same_after_resume(group(), stopped, run(loss=0.25), 2).status is GateStatus.FAILED


@pytest.mark.parametrize(
    ("stopped", "resumed", "trained", "words"),
    [
        (run(steps=4), run(), 0, "had done all its 4 steps"),
        (run(steps=2), run(), 4, "began anew"),
        (run(steps=2), run(status=Status.NO_RECORD), 0, "the resumed run: it broke"),
        (run(steps=2, status=Status.FAILED), run(), 2, "the run that was to stop: it broke"),
    ],
)
def test_a_resume_that_was_none_is_unknown(stopped: Run, resumed: Run, trained: int, words: str) -> None:
    gate = gates.same_after_resume(group(), stopped, resumed, trained)
    assert (gate.status, gate.blocks) == (GateStatus.UNKNOWN, True)
    assert words in gate.message


def test_without_weights_or_equal_runs_no_resume_is_judged() -> None:
    blind = group(runs=(run(digest=None),))
    assert gates.same_after_resume(blind, run(steps=2), run(digest=None), 2).status is GateStatus.UNKNOWN
    unlike = group(Verdict.NONDETERMINISTIC)
    assert gates.same_after_resume(unlike, run(steps=2), run(), 2).status is GateStatus.UNKNOWN
