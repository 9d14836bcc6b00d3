"""Comparison: results decide, the other stages explain, and the earliest difference is the first."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detaudit.judge import comparer
from detaudit.judge.comparer import Matched, Shared, identity, replicas, shared_of
from detaudit.judge.live import DigestFollower
from detaudit.model import (
    UNHOOKED,
    Difference,
    FinalState,
    ModelTensor,
    Outputs,
    Replicas,
    Stage,
    Training,
    record_of,
    series,
)
from detaudit.model.outputs import File, Role, Value
from detaudit.runs.log import Process
from detaudit.runs.log_records import Hello

STAGES = tuple(stage for stage in Stage if stage not in (Stage.OUTPUT, *UNHOOKED, Stage.STEPS))


def training(steps: int = 3, end: str = "end", total: float = 1.0, **changed: Any) -> Training:
    """A training whose digests are the step and the stage, but for ``changed``, such as ``update2="x"``."""
    digests: dict[Stage, dict[int, tuple[str, ...]]] = {Stage.INIT: {0: (changed.get("init0", "0 init"),)}}
    for stage in STAGES[1:]:
        digests[stage] = {step: (changed.get(f"{stage}{step}", f"{step} {stage}"),) for step in range(1, steps + 1)}
    final = FinalState(digest=end, sum=total, loss=1.0, devices=("cpu",))
    return Training(framework="torch", steps=steps, digests=digests, losses={steps: 1.0}, final=final)


def result_key(parts: list[Training]) -> str:
    return identity(record_of(tuple(parts)))


def first_difference(a: list[Training], b: list[Training]) -> Difference | None:
    return comparer.first_difference(record_of(tuple(a)), record_of(tuple(b)))


def test_equal_runs_do_not_differ() -> None:
    assert result_key([training()]) == result_key([training()])
    assert first_difference([training()], [training()]) is None


@given(st.integers(1, 3), st.sampled_from(STAGES[1:]))
def test_the_first_difference_is_found(step: int, stage: Stage) -> None:
    changed: dict[str, Any] = {f"{stage}{step}": "other", "state3": "other too"}
    assert first_difference([training()], [training(3, "end", **changed)]) == Difference(rank=0, step=step, stage=stage)


def test_the_first_of_many_differences_is_found() -> None:
    """Digests are compared by the block of steps, and both blocks differ."""
    steps = series.BLOCK + 5
    changed: dict[str, Any] = {f"{stage}{step}": "x" for stage in STAGES[1:] for step in (7, 9, steps - 2)}
    there = Difference(rank=0, step=7, stage=Stage.RNG)
    assert first_difference([training(steps)], [training(steps, **changed)]) == there
    assert (
        comparer.first_difference(
            record_of((training(steps),)), record_of((training(steps, **changed),)), through=steps
        )
        == there
    )


def test_all_ranks_that_differ_first_are_named() -> None:
    def ranks(*changed: str, framework: str = "torch") -> list[Training]:
        changes: list[dict[str, Any]] = [dict.fromkeys(one.split(), "x") for one in changed]
        return [replace(training(**one), framework=framework) for one in changes]

    none = ranks("", "", "", "")
    found = first_difference(none, ranks("", "update2", "update2", "state2"))
    assert found == Difference(rank=1, step=2, stage=Stage.UPDATE, also=(2,))
    found = first_difference(none, ranks("update2", "reduce2 update2", "update2", ""))
    assert found == Difference(rank=1, step=2, stage=Stage.REDUCE)
    fits = first_difference(ranks("", "", framework="sklearn"), ranks("update1", "update1", framework="sklearn"))
    assert fits == Difference(rank=0, step=1, stage=Stage.UPDATE, site="update")


def test_ranks_that_were_started_again_are_compared_with_the_same_attempt() -> None:
    first, again, other = training(), replace(training(), attempt=1), replace(training(update2="x"), attempt=1)
    assert first_difference([again], [replace(again)]) is None
    assert first_difference([again], [other]) == Difference(rank=0, step=2, stage=Stage.UPDATE)
    found = first_difference([first], [other])
    assert found is not None
    assert found.stage is Stage.STEPS


def test_weights_before_the_first_step() -> None:
    assert first_difference([training()], [training(init0="x", rng1="x")]) == Difference(
        rank=0, step=0, stage=Stage.INIT
    )


def test_generators_and_batches_alone_are_no_result() -> None:
    assert first_difference([training()], [training(rng2="other")]) is None
    assert first_difference([training()], [training(batch2="other")]) is None
    assert result_key([training()]) == result_key([training(rng2="other", batch1="other")])


def test_a_different_number_of_steps() -> None:
    assert first_difference([training(3)], [training(5)]) == Difference(rank=0, step=4, stage=Stage.STEPS)


def test_weights_changed_after_the_last_step() -> None:
    found = first_difference([training()], [training(end="other")])
    assert found == Difference(rank=0, step=3, stage=Stage.UPDATE, at_end=True)


def held(mean: str, model: str = "Net", weight: str = "w") -> Training:
    tensors = [ModelTensor(name=f"{model}.fc.weight", buffer=False, digest=weight)]
    tensors.append(ModelTensor(name=f"{model}.bn.running_mean", buffer=True, digest=mean))
    final = FinalState(digest=f"end {weight}", loss=1.0, state=tuple(tensors))
    return Training(framework="torch", steps=3, digests={Stage.UPDATE: {3: ("3 update",)}}, final=final)


def test_buffers_changed_after_the_last_step() -> None:
    found = first_difference([held("a")], [held("b")])
    assert found == Difference(rank=0, step=3, stage=Stage.STATE, site="Net.bn.running_mean", at_end=True)
    assert result_key([held("a")]) != result_key([held("b")])


def test_weights_of_a_model_changed_after_the_last_step() -> None:
    found = first_difference([held("a")], [held("a", weight="v")])
    assert found == Difference(rank=0, step=3, stage=Stage.STATE, site="Net.fc.weight", at_end=True)
    large = [replace(held("a", weight=weight), digests={Stage.UPDATE: {2: ("u",)}}) for weight in "wv"]
    assert first_difference(large[:1], large[1:]) == Difference(rank=0, step=3, stage=Stage.UPDATE)


def evaluated(outputs: str | None, **changed: Any) -> Training:
    trained = training(**changed)
    final = FinalState(digest="end", loss=1.0, outputs=outputs)
    return Training(framework="torch", steps=3, digests=trained.digests, losses={3: 1.0}, final=final)


def test_an_evaluation_after_the_last_update_is_a_result() -> None:
    after = Difference(rank=0, step=3, stage=Stage.OUTPUT, at_end=True)
    assert first_difference([evaluated("a")], [evaluated("b")]) == after
    assert first_difference([evaluated("a")], [evaluated("b", rng1="x", batch2="x")]) == after
    assert first_difference([evaluated("a")], [evaluated("b", update2="x")]) == Difference(
        rank=0, step=2, stage=Stage.UPDATE
    )
    assert result_key([evaluated("a")]) != result_key([evaluated("b")])
    assert first_difference([evaluated("a")], [evaluated("a", rng1="x")]) is None


def test_an_older_baseline_has_no_outputs() -> None:
    a, b = (record_of((evaluated(one),)) for one in (None, "b"))
    assert comparer.same(a, b)
    assert comparer.first_difference(a, b) is not None


def called(**changed: str) -> Training:
    stages = (Stage.INIT, Stage.RNG, Stage.BATCH, Stage.OUTPUT)
    digests: dict[Stage, dict[int, tuple[str, ...]]] = {
        one: {call: (changed.get(f"{one}{call}", "x"),) for call in (1, 2)} for one in stages
    }
    final = FinalState(digest=changed.get("output2", "x"))
    return Training(framework="torch inference", steps=2, digests=digests, final=final)


def test_of_calls_only_the_outputs_are_results() -> None:
    assert first_difference([called()], [called(init1="other", rng1="other")]) is None
    found = first_difference([called()], [called(batch2="other", output2="other")])
    assert found == Difference(rank=0, step=2, stage=Stage.BATCH, call=True)


def test_the_names_of_models_do_not_count() -> None:
    assert first_difference([held("a")], [held("a", "Other")]) is None
    assert result_key([held("a")]) == result_key([held("a", "Other")])


def test_the_earliest_rank_is_named() -> None:
    a, b = [training(), training()], [training(update3="x"), training(forward2="x")]
    assert first_difference(a, b) == Difference(rank=1, step=2, stage=Stage.FORWARD)


def test_a_rank_that_is_missing_is_a_difference() -> None:
    found = first_difference([training(), training()], [training()])
    assert found == Difference(rank=1, step=0, stage=Stage.STEPS)


def test_every_result_has_a_key_of_its_own() -> None:
    runs = [
        training(),
        training(update1="x"),
        training(update1="y"),
        training(2),
        training(end="x"),
        training(init0="x"),
    ]
    assert len({result_key([run]) for run in runs}) == len(runs)
    assert result_key([training(), training()]) != result_key([training()])


def rank(number: int | None, trained: Training) -> Process:
    return Process(Hello(1, 7, 1, ("python", "train.py"), "3.11.7", number, ()), trainings=(trained,))


def test_replicas_match_although_each_has_its_own_loss() -> None:
    found = replicas(1, [rank(0, training()), rank(1, training(forward2="other"))])
    assert found is not None
    assert found == Replicas(ranks=2, run=1, first_difference=None)


def test_a_replica_that_diverges_is_named() -> None:
    found = replicas(4, [rank(0, training()), rank(1, training()), rank(2, training(update2="x", update3="y"))])
    assert found is not None
    assert found == Replicas(ranks=3, run=4, first_difference=Difference(rank=2, step=2, stage=Stage.UPDATE))


def test_the_fits_of_ranks_are_no_replicas() -> None:
    ranks = [rank(0, training()), rank(1, training())]
    for number, process in enumerate(ranks):
        process.trainings += (replace(training(update2=str(number)), framework="sklearn"),)
    assert replicas(1, ranks) == Replicas(ranks=2, run=1, first_difference=None)


def test_a_fit_that_differs_is_named() -> None:
    a, b = (
        Training(framework="sklearn", steps=2, digests={Stage.UPDATE: {1: ("a PCA.fit",), 2: (f"{end} Ridge.fit",)}})
        for end in "bc"
    )
    found = first_difference([a], [b])
    assert found == Difference(rank=0, step=2, stage=Stage.UPDATE, site="Ridge.fit")
    assert found is not None
    assert found.of_fit


def test_processes_that_no_launcher_ranked_are_no_replicas() -> None:
    assert replicas(1, [rank(None, training()), rank(None, training(update2="x"))]) is None
    assert replicas(1, [rank(0, training())]) is None


def returned(**parts: str) -> Training:
    """What a test returned, as the digests of its parts by name."""
    digests = {Stage.RETURNED: {1: tuple(f"{digest} {name}" for name, digest in parts.items())}}
    final = FinalState(digest=" ".join(parts.values()), sum=0.0)
    return Training(framework="returned", steps=1, digests=digests, final=final)


def test_a_returned_value_is_a_result_and_its_parts_are_named() -> None:
    ours, theirs = [training(), returned(a="1", b="2")], [training(), returned(a="1", b="3")]
    assert result_key(ours) != result_key(theirs)
    assert first_difference(ours, theirs) == Difference(rank=1, step=1, stage=Stage.RETURNED, site="b")


def test_a_difference_in_training_comes_before_the_one_in_what_was_returned() -> None:
    ours, theirs = [training(), returned(a="1")], [training(3, "end", update3="x"), returned(a="2")]
    assert first_difference(ours, theirs) == Difference(rank=0, step=3, stage=Stage.UPDATE)


def test_the_sum_of_the_weights_decides_nothing() -> None:
    """A different number of threads changes the last place of a float64 sum, although every weight is the same."""
    ours, theirs = [training(total=1.0)], [training(total=1.0000000000000002)]
    assert result_key(ours) == result_key(theirs)
    assert first_difference(ours, theirs) is None


@given(st.integers(1, 3), st.sampled_from(STAGES))
def test_a_followed_training_differs_where_a_whole_one_does(step: int, stage: Stage) -> None:
    step = 0 if stage is Stage.INIT else step
    changed: dict[str, Any] = {f"{stage}{step}": "x"}
    other = training(**changed)
    follower = DigestFollower(training())
    arrived = sorted((at, one.position, one) for one, steps in other.digests.items() for at in steps)
    found = next((at for at, _, one in arrived if follower.differs(at, one, other.digests[one][at][0])), None)
    whole = first_difference([training()], [other])
    assert found == (whole and whole.step)


@given(st.integers(1, 5), st.integers(0, 5))
def test_through_a_step_nothing_later_counts(step: int, through: int) -> None:
    changed: dict[str, Any] = {f"update{step}": "x"}
    a, b = record_of((training(5),)), record_of((training(5, "x", **changed),))
    found = comparer.first_difference(a, b, through=through)
    assert found == (Difference(rank=0, step=step, stage=Stage.UPDATE) if step <= through else None)


def saved(*lines: str) -> Training:
    digest = str(hash(lines))
    return Training(framework="saved", digests={Stage.SAVED: {0: lines}}, final=FinalState(digest=digest))


def test_only_a_saved_file_differs() -> None:
    explained = training(rng1="x")
    a, b = (
        record_of((training(), saved("x a.pt: w", "y a.pt: ema"))),
        record_of((explained, saved("x a.pt: w", "z a.pt: ema"))),
    )
    found = comparer.first_difference(a, b)
    assert found is not None
    assert (found.rank, found.stage, found.site) == (1, Stage.SAVED, "a.pt: ema")
    assert identity(a) != identity(b)
    trained_otherwise = record_of((training(forward3="x"), saved("z a.pt: w")))
    found = comparer.first_difference(a, trained_otherwise)
    assert found is not None
    assert (found.step, found.stage) == (3, Stage.FORWARD)


def saved_outputs(value: str) -> Outputs:
    one = Value("row 1, target", value, Role.RESULT, value)
    return Outputs(files=(File(path="a.csv", name="a.csv", sha256=value, size=1, by="csv", values=(one,)),))


def test_what_left_two_runs_decides_if_their_trainings_match() -> None:
    a = record_of((training(),), saved_outputs("1"))
    b, trained_otherwise = replace(a, outputs=saved_outputs("2")), record_of((training(forward3="x"),), a.outputs)
    found = comparer.first_difference(a, b)
    assert found is not None
    assert (found.stage, found.site, found.output and found.output.at) == (Stage.SAVED, "a.csv", "row 1, target")
    assert comparer.first_difference(a, replace(a, outputs=saved_outputs("1"))) is None
    found = comparer.first_difference(a, replace(trained_otherwise, outputs=b.outputs))
    assert found is not None
    assert found.stage is Stage.FORWARD
    # Of a run that was ended early, nothing of that is whole.
    assert comparer.first_difference(a, b, through=5) is None
    assert comparer.first_difference(a, replace(a, outputs=None)) is None


def unplaced(**changed: Any) -> Training:
    return replace(training(**changed), unplaced=True)


def test_what_has_no_place_is_matched_by_what_it_trained() -> None:
    a, b = unplaced(init0="a", update1="a"), unplaced(init0="b", update1="b")
    assert result_key([a, b, b]) == result_key([b, a, b]) != result_key([a, a, b])
    assert first_difference([a, b, b], [b, a, b]) is None
    assert first_difference([a, b, b], [a, a, b]) is not None
    assert result_key([training(), training(update1="x")]) != result_key([training(update1="x"), training()])


def test_what_differs_is_compared_with_what_began_like_it() -> None:
    a, b, other = unplaced(init0="a"), unplaced(init0="b"), unplaced(init0="b", update2="x")
    assert first_difference([a, b], [other, a]) == Difference(rank=1, step=2, stage=Stage.UPDATE)


def test_a_baseline_without_places_is_still_matched() -> None:
    assert first_difference([training(), training(init0="b")], [unplaced(init0="b"), unplaced()]) is None


def last_equal(a: Training, b: Training, **difference: Any) -> int | None:
    found = Difference(**{"rank": 0, "step": 3, "stage": Stage.UPDATE, **difference})
    return comparer.last_equal_step(record_of((a,)), record_of((b,)), found)


def test_the_last_equal_step_is_that_of_the_stage_that_differs() -> None:
    assert last_equal(training(), training(update3="x")) == 2
    assert last_equal(training(), training(update3="x"), stage=Stage.FORWARD) == 3
    assert last_equal(training(), training(update1="x", update2="x", update3="x")) is None
    assert last_equal(training(), training(), step=1) == 1
    assert last_equal(training(), training(), step=0, stage=Stage.INIT) == 0


def test_no_step_is_equal_if_only_one_run_has_the_training() -> None:
    assert last_equal(training(), training(), rank=1, stage=Stage.STEPS, step=0) is None
    assert last_equal(training(), training(), rank=0, stage=Stage.STEPS, step=0) is None


def test_any_result_counts_for_a_step_that_one_run_lacks() -> None:
    assert last_equal(training(3), training(5), stage=Stage.STEPS, step=4) == 3
    assert last_equal(training(3), training(5, update3="x", state3="x"), stage=Stage.STEPS, step=4) == 3
    changed: dict[str, Any] = {f"{stage}3": "x" for stage in STAGES if stage is not Stage.RNG}
    other = training(5, **changed)
    assert last_equal(training(3), other, stage=Stage.STEPS, step=4) == 2


def test_any_result_counts_for_a_stage_that_was_recorded_at_the_end_only() -> None:
    assert last_equal(held("a"), held("b"), stage=Stage.STATE, at_end=True) == 3
    assert last_equal(held("a"), held("b"), stage=Stage.STATE) is None
    fewer = replace(training(), digests={**training().digests, Stage.UPDATE: {1: ("1 update",), 2: ("2 update",)}})
    assert last_equal(fewer, fewer, at_end=True) == 2
    without = replace(training(), digests={Stage.FORWARD: {3: ("3 forward",)}})
    assert last_equal(fewer, without, at_end=True) is None
    assert last_equal(without, fewer, at_end=True) is None


def test_what_both_sides_recorded() -> None:
    stages: set[Stage] = {stage for stage in STAGES if stage is not Stage.BATCH}
    a = replace(training(2), digests={stage: training(2).digests[stage] for stage in stages})
    pair = Matched(0, a, training(3, update2="x"))
    assert shared_of(pair, None) == Shared(stages, 2, 0, set())
    at = Difference(rank=0, step=2, stage=Stage.UPDATE)
    assert shared_of(pair, at) == Shared(stages, 2, 1, stages - {Stage.INIT})


def ended(digest: str = "end", loss: float = 1.0, outputs: str | None = None, mean: str = "m") -> Training:
    """A training of which nothing was recorded but its end."""
    state = (ModelTensor(name="Net.mean", buffer=True, digest=mean),)
    return Training(
        framework="torch", steps=3, final=FinalState(digest=digest, loss=loss, outputs=outputs, state=state)
    )


def test_what_differs_at_the_end_only_is_named() -> None:
    at_end = Difference(rank=0, step=3, stage=Stage.UPDATE, at_end=True)
    assert first_difference([ended()], [ended("other", 2.0, "o", "n")]) == at_end
    assert first_difference([ended()], [ended(loss=2.0)]) == at_end
    assert first_difference([ended()], [ended(loss=2.0, outputs="o")]) == replace(at_end, stage=Stage.OUTPUT)
    state = replace(at_end, stage=Stage.STATE, site="Net.mean")
    assert first_difference([ended()], [ended(mean="n", outputs="o")]) == state
    assert first_difference([ended()], [ended(loss=2.0, mean="n")]) == state


def test_files_that_differ_without_a_digest_of_their_own() -> None:
    a, b = (Training(framework="artifact", final=FinalState(digest=digest)) for digest in "ab")
    assert first_difference([a], [b]) == Difference(rank=0, step=0, stage=Stage.ARTIFACT)


def seeded(**generators: str) -> Process:
    return Process(Hello(1, 7, 1, ("python", "train.py"), "3.11.7", None, ()), generators=generators)


def test_the_generators_that_differ_are_named() -> None:
    ours, theirs = seeded(random="a", numpy="b", torch="c"), seeded(torch="x", numpy="b", random="y")
    assert comparer.differing_generators([ours], [theirs]) == ("random", "torch")
    assert comparer.differing_generators([ours], [ours]) == ()


def test_a_generator_that_only_one_run_used_differs() -> None:
    assert comparer.differing_generators([seeded(random="a")], [seeded(random="a", jax="b")]) == ("jax",)
    assert comparer.differing_generators([seeded(random="a", jax="b")], [seeded(random="a")]) == ("jax",)
    assert comparer.differing_generators([], [seeded(random="a")]) == ("random",)
    assert comparer.differing_generators([seeded()], []) == ()


def test_the_generators_are_those_of_the_first_process_that_recorded_any() -> None:
    ours = [seeded(), seeded(random="a"), seeded(random="other", numpy="b")]
    assert comparer.differing_generators(ours, [seeded(random="a")]) == ()
    assert comparer.differing_generators([seeded(random="a")], ours) == ()


def shared_difference(a: list[Training], b: list[Training]) -> Difference | None:
    return comparer.first_difference(record_of(tuple(a)), record_of(tuple(b)), shared=True)


def thin(**changed: Any) -> Training:
    """A training of which a baseline keeps the first and the last weights only."""
    whole = training(**changed)
    digests = {**whole.digests, Stage.UPDATE: {step: whole.digests[Stage.UPDATE][step] for step in (1, 3)}}
    return replace(whole, digests=digests)


def test_what_one_run_lacks_explains_nothing_if_only_what_both_have_is_compared() -> None:
    assert shared_difference([evaluated(None)], [evaluated("b", rng1="x")]) is None
    assert shared_difference([thin()], [training(rng1="x")]) is None
    buffers = FinalState(digest="end", loss=1.0, state=(ModelTensor(name="mean", buffer=True, digest="m"),))
    assert shared_difference([training()], [replace(training(rng1="x"), final=buffers)]) is None
    assert shared_difference([thin()], [training(update2="x", update3="y", rng1="z")]) == Difference(
        rank=0, step=1, stage=Stage.RNG
    )


def test_a_step_that_one_run_lacks_differs_from_one_that_it_has() -> None:
    there = Difference(rank=0, step=2, stage=Stage.UPDATE)
    assert first_difference([thin()], [training()]) == first_difference([training()], [thin()]) == there


def test_what_differs_later_does_not_make_a_difference_of_what_only_explains() -> None:
    a, b = record_of((training(),)), record_of((training(update2="x", rng1="y"),))
    assert comparer.first_difference(a, b, through=1) is None
    assert comparer.first_difference(a, b, through=2) == Difference(rank=0, step=1, stage=Stage.RNG)


def test_outputs_alone_differ_whatever_else_explains() -> None:
    after = Difference(rank=0, step=3, stage=Stage.OUTPUT, at_end=True)
    assert first_difference([evaluated(None)], [evaluated("b", rng1="x")]) == after
    assert shared_difference([evaluated("a")], [evaluated("b", rng1="x")]) == after
    few = replace(evaluated("a"), digests=thin().digests)
    assert shared_difference([few], [evaluated("b", rng1="x")]) == after


def test_outputs_that_are_not_all_that_differs_are_explained() -> None:
    generators = Difference(rank=0, step=1, stage=Stage.RNG)
    changed = evaluated("b", rng1="x")
    assert first_difference([evaluated("a")], [replace(changed, steps=4)]) == generators
    for final in (FinalState(digest="x", loss=1.0, outputs="b"), FinalState(digest="end", loss=2.0, outputs="b")):
        assert first_difference([evaluated("a")], [replace(changed, final=final)]) == generators
    state = (ModelTensor(name="mean", buffer=True, digest="m"),)
    final = FinalState(digest="end", loss=1.0, outputs="b", state=state)
    assert first_difference([evaluated("a")], [replace(changed, final=final)]) == generators


def test_a_training_that_matches_is_not_named() -> None:
    later = Difference(rank=1, step=5, stage=Stage.UPDATE)
    assert first_difference([training(3), training(5)], [training(3), training(5, update5="x")]) == later
    found = shared_difference([evaluated(None), training(5)], [evaluated("b"), training(5, update5="x")])
    assert found == later
    missing = Difference(rank=1, step=0, stage=Stage.STEPS)
    assert shared_difference([evaluated(None), training()], [evaluated("b")]) == missing


def test_a_training_that_matches_may_explain_why_another_one_differs() -> None:
    found = first_difference([training(), training()], [training(rng1="x"), training(update2="x")])
    assert found == Difference(rank=0, step=1, stage=Stage.RNG)


def test_how_a_training_ended_does_not_count_through_a_step() -> None:
    short = [
        Training(framework="torch", steps=1, final=FinalState(digest="end", loss=1.0, outputs=outputs))
        for outputs in ("a", "b")
    ]
    a, b = record_of((short[0], training())), record_of((short[1], training(update2="x")))
    assert comparer.first_difference(a, b) == Difference(rank=0, step=1, stage=Stage.OUTPUT, at_end=True)
    assert comparer.first_difference(a, b, through=2) == Difference(rank=1, step=2, stage=Stage.UPDATE)


def test_a_number_of_steps_without_any_that_was_recorded() -> None:
    there = Difference(rank=0, step=4, stage=Stage.STEPS)
    more = replace(ended(), steps=5)
    assert first_difference([ended()], [more]) == first_difference([more], [ended()]) == there


def test_the_first_replica_is_the_reference() -> None:
    found = replicas(1, [rank(0, training()), rank(1, training(update2="x")), rank(2, training(init0="x"))])
    assert found == Replicas(ranks=3, run=1, first_difference=Difference(rank=2, step=0, stage=Stage.INIT))
    found = replicas(1, [rank(0, training()), rank(1, training(update2="x")), rank(2, training(update2="x"))])
    assert found == Replicas(ranks=3, run=1, first_difference=Difference(rank=1, step=2, stage=Stage.UPDATE))


def test_a_replica_that_trained_less_differs() -> None:
    found = replicas(1, [rank(0, training(3)), rank(1, training(2))])
    assert found == Replicas(ranks=2, run=1, first_difference=Difference(rank=1, step=3, stage=Stage.UPDATE))


def test_replicas_are_compared_if_the_first_has_weights() -> None:
    found = replicas(1, [rank(0, training()), rank(1, ended())])
    assert found == Replicas(ranks=2, run=1, first_difference=Difference(rank=1, step=0, stage=Stage.INIT))
    assert replicas(1, [rank(0, ended()), rank(1, training())]) is None
