"""Comparison: results decide, the ladder explains, the first difference is the one that is named."""

from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.evidence.event_logs import Process, Stream
from detaudit.auditor.evidence.event_records import Event, Final, Hello
from detaudit.auditor.judge.streams import LADDER, first_difference, replicas, result_key
from detaudit.model import Difference, Stage


def stream(steps: int = 3, end: str = "end", **changed: str) -> Stream:
    """A training whose digests are the step and the stage, but for ``changed``, such as ``update2="x"``."""
    made = Stream("torch")
    made.add(Event("torch", 0, Stage.INIT, changed.get("init0", "0 init"), None))
    for step in range(1, steps + 1):
        for stage in LADDER[1:]:
            digest = changed.get(f"{stage}{step}", f"{step} {stage}")
            made.add(Event("torch", step, stage, digest, "0x1p+0" if stage is Stage.FORWARD else None))
    made.final = Final("torch", steps, end, "0x1p+0", "0x1p+0", 1, False, ("cpu",))
    return made


def test_equal_runs_do_not_differ() -> None:
    assert result_key([stream()]) == result_key([stream()])
    assert first_difference([stream()], [stream()]) is None


@given(st.integers(1, 3), st.sampled_from(LADDER[1:]))
def test_the_first_difference_is_found(step: int, stage: Stage) -> None:
    changed = {f"{stage}{step}": "other", "update3": "other too"}
    assert first_difference([stream()], [stream(3, "end", **changed)]) == Difference(rank=0, step=step, stage=stage)


def test_weights_before_the_first_step() -> None:
    assert first_difference([stream()], [stream(init0="x", rng1="x")]) == Difference(rank=0, step=0, stage=Stage.INIT)


def test_generators_alone_are_no_result() -> None:
    assert first_difference([stream()], [stream(rng2="other")]) is None
    assert result_key([stream()]) == result_key([stream(rng2="other", batch1="other")])


def test_a_different_number_of_steps() -> None:
    assert first_difference([stream(3)], [stream(5)]) == Difference(rank=0, step=4, stage=Stage.STEPS)


def test_weights_changed_after_the_last_step() -> None:
    assert first_difference([stream()], [stream(end="other")]) == Difference(rank=0, step=3, stage=Stage.UPDATE)


def test_the_earliest_rank_is_named() -> None:
    a, b = [stream(), stream()], [stream(update3="x"), stream(forward2="x")]
    assert first_difference(a, b) == Difference(rank=1, step=2, stage=Stage.FORWARD)


def test_a_rank_that_is_missing_is_a_difference() -> None:
    found = first_difference([stream(), stream()], [stream()])
    assert found == Difference(rank=1, step=0, stage=Stage.STEPS)


def test_every_result_has_a_key_of_its_own() -> None:
    runs = [stream(), stream(update1="x"), stream(update1="y"), stream(2), stream(end="x"), stream(init0="x")]
    assert len({result_key([run]) for run in runs}) == len(runs)
    assert result_key([stream(), stream()]) != result_key([stream()])


def rank(number: int | None, trained: Stream) -> Process:
    return Process(Hello(1, 7, 1, ("python", "train.py"), "3.11.7", number, ()), streams={"torch": trained})


def test_replicas_agree_though_each_has_a_loss_of_its_own() -> None:
    found = replicas(1, [rank(0, stream()), rank(1, stream(forward2="other"))])
    assert found is not None
    assert (found.ranks, found.differs) == (2, None)


def test_a_replica_that_goes_astray_is_named() -> None:
    found = replicas(4, [rank(0, stream()), rank(1, stream()), rank(2, stream(update2="x", update3="y"))])
    assert found is not None
    assert (found.run, found.differs) == (4, Difference(rank=2, step=2, stage=Stage.UPDATE))


def test_processes_that_no_launcher_ranked_are_no_replicas() -> None:
    assert replicas(1, [rank(None, stream()), rank(None, stream(update2="x"))]) is None
    assert replicas(1, [rank(0, stream())]) is None


def returned(**parts: str) -> Stream:
    """What a test returned, as the digests of its parts by name."""
    made = Stream("returned")
    for name, digest in parts.items():
        made.add(Event("returned", 1, Stage.RETURNED, f"{digest} {name}", None))
    made.final = Final("returned", 1, " ".join(parts.values()), "0x0p+0", None, len(parts), False, ())
    return made


def test_a_returned_value_is_a_result_and_its_parts_are_named() -> None:
    ours, theirs = [stream(), returned(a="1", b="2")], [stream(), returned(a="1", b="3")]
    assert result_key(ours) != result_key(theirs)
    assert first_difference(ours, theirs) == Difference(rank=1, step=1, stage=Stage.RETURNED, site="b")


def test_a_difference_in_training_comes_before_the_one_in_what_was_returned() -> None:
    ours, theirs = [stream(), returned(a="1")], [stream(3, "end", update3="x"), returned(a="2")]
    assert first_difference(ours, theirs) == Difference(rank=0, step=3, stage=Stage.UPDATE)
