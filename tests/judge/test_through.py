"""Runs that are ended after a step are compared through it, and nothing is said of what would have followed."""

from msgspec.structs import replace

from detaudit import baseline
from detaudit.judge.comparer import first_difference, same
from detaudit.judge.live import DigestFollower
from detaudit.model import AppliedRecipe, Difference, FinalState, Recording, RunRecord, Stage, Training
from detaudit.runs import status
from detaudit.runs.log import Process
from detaudit.runs.log_records import Hello, ProbeLine
from tests.logs import hexed

FINAL = FinalState(digest="w", loss=0.5)


def training(steps: int, *, changed: int = 0, framework: str = "torch", updates: bool = True) -> Training:
    """Return a training whose weights differ from those of others from step ``changed`` on."""
    numbers = range(1, steps + 1)
    weights: dict[int, tuple[str, ...]] = {
        n: (hexed(f"w{n}{'x' if changed and n >= changed else ''}"),) for n in numbers
    }
    losses: dict[int, tuple[str, ...]] = {n: (hexed(f"f{n}"),) for n in weights}
    digests = {Stage.FORWARD: losses, **({Stage.UPDATE: weights} if updates else {})}
    return Training(framework=framework, steps=steps, digests=digests, losses=dict.fromkeys(weights, 1.0), final=FINAL)


def record(*parts: Training) -> RunRecord:
    return RunRecord(trainings=parts)


def process(*trainings: Training, probes: tuple[int | None, ...] = ()) -> Process:
    hello = Hello(1, 7, 1, (), "3.11", None, ())
    lines = [ProbeLine(name="x", n=n, step=step, kind="value", digest="d", value=None) for n, step in enumerate(probes)]
    return Process(hello, trainings=trainings, lanes=(0,) * len(trainings), probes=lines)


def test_what_follows_the_step_is_left_out() -> None:
    cut = training(9).through(4)
    assert (cut.steps, cut.final, cut.cut, cut.last_loss) == (4, None, True, 1.0)
    assert [max(steps) for steps in cut.digests.values()] == [4, 4]
    assert max(cut.losses) == 4


def test_runs_that_were_ended_match_through_the_step() -> None:
    a, b = record(training(9).through(4)), record(training(12, changed=5).through(4))
    assert first_difference(a, b) is None
    assert a.through == 4
    assert record(training(9)).through is None


def test_a_difference_at_the_step_counts() -> None:
    a, b = record(training(9).through(5)), record(training(9, changed=5).through(5))
    assert first_difference(a, b) == Difference(rank=0, step=5, stage=Stage.UPDATE)


def test_recordings_of_different_lengths_are_compared_through_the_shorter() -> None:
    short, whole = record(training(9).through(4)), record(training(9, changed=6))
    for a, b in ((short, whole), (whole, short)):
        assert first_difference(a, b) is None
        assert first_difference(a, b, shared=True) is None
        assert same(a, b)
    longer = record(training(9).through(7))
    assert first_difference(longer, whole) == Difference(rank=0, step=6, stage=Stage.UPDATE)
    assert first_difference(longer, short) is None


def test_a_run_that_ended_by_itself_before_the_step_has_fewer_steps() -> None:
    ended, cut = record(training(3)), record(training(9).through(4))
    for shared in (False, True):
        for a, b in ((ended, cut), (cut, ended)):
            assert first_difference(a, b, shared=shared) == Difference(rank=0, step=4, stage=Stage.STEPS)


def test_nothing_that_follows_the_end_of_a_training_counts_although_another_one_went_further() -> None:
    cut, whole = training(3).through(3), training(9)
    there = Difference(rank=1, step=7, stage=Stage.UPDATE)
    assert first_difference(record(cut, training(9)), record(whole, training(9, changed=7))) == there
    assert first_difference(record(whole, training(9)), record(cut, training(9, changed=7))) == there


def test_the_files_of_a_whole_run_do_not_count_against_one_that_was_ended() -> None:
    saved = Training(framework=Stage.SAVED, digests={Stage.SAVED: {0: ("d model.pt: w",)}}, final=FINAL)
    whole = RunRecord(trainings=(training(4),), unhooked=(saved,))
    assert first_difference(whole, record(training(9).through(4))) is None
    assert first_difference(whole, record(training(4))) is not None


def test_the_digest_is_of_the_weights_after_the_step() -> None:
    (rank,) = record(training(9).through(4)).ranks
    assert (rank.digest, rank.steps, rank.sum_of_weights) == (hexed("w4"), 4, None)
    two = replace(training(4), digests={Stage.UPDATE: {4: ("a", "b")}})
    assert len(two.through(4).weights_digest or "") == 32
    assert training(4, updates=False).through(4).weights_digest is None
    assert training(4).weights_digest == "w"


def test_weights_that_are_not_digested_at_each_step() -> None:
    large = replace(training(9), digests={Stage.UPDATE: dict.fromkeys((1, 2, 4, 8), ("w",))})
    assert large.through(7).sampled
    assert not training(9).through(7).sampled
    assert not training(9, updates=False).through(7).sampled


def test_the_step_that_all_did() -> None:
    assert status.common_step([process(training(9)), process(training(7)), process()]) == 7
    large = replace(training(9), digests={Stage.UPDATE: dict.fromkeys((1, 2, 4, 8), ("w",))})
    assert status.common_step([process(large), process(training(7))]) == 4
    assert status.common_step([process(training(9), training(2, framework="sklearn"))]) == 9
    assert status.common_step([process(training(3, framework="torch inference"))]) == 0
    assert status.common_step([]) == 0


def test_fits_and_calls_do_not_reach_a_step() -> None:
    assert status.reached([process(training(4))], 4)
    assert not status.reached([process(training(3))], 4)
    assert not status.reached([process(training(9, framework="sklearn"), training(9, framework="torch inference"))], 4)
    assert status.training_processes([process(training(1), training(2)), process(training(1)), process()]) == 2


def test_processes_are_cut() -> None:
    found = process(training(9), training(2, framework="sklearn"), probes=(None, 1, 3, 4, 5))
    status.cut([found], 4)
    assert [part.steps for part in found.trainings] == [4, 2]
    assert all(part.cut for part in found.trainings)
    assert [line.step for line in found.probes] == [1, 3]


def test_a_run_is_not_followed_beyond_a_reference_that_was_ended() -> None:
    follower = DigestFollower(training(9).through(4))
    assert not follower.differs(4, Stage.UPDATE, hexed("w4"))
    assert not follower.differs(5, Stage.UPDATE, hexed("w5"))
    assert DigestFollower(training(4)).differs(5, Stage.UPDATE, hexed("w5"))


def test_a_recording_can_be_ended_afterwards() -> None:
    recipe = AppliedRecipe(name="none", seed=0, flags=())
    saved = Training(framework=Stage.SAVED, final=FINAL)
    whole = RunRecord(trainings=(training(9), training(2)), unhooked=(saved,))
    found = baseline.ended(Recording(command=(), recipe=recipe, environment={}, run=whole), 4).run
    assert [(part.steps, part.cut) for part in found.parts] == [(4, True), (2, False)]
    assert replace(found.trainings[1]) == training(2)


def test_what_begins_after_a_run_was_ended_is_unknown() -> None:
    begun, later, fit = training(9), training(5), training(1, framework="sklearn")
    short, whole = record(begun.through(4)), record(begun, later, fit)
    for a, b in ((short, whole), (whole, short)):
        assert first_difference(a, b) is None
    assert first_difference(record(begun.through(4), fit.through(4)), whole) is None


def test_what_only_the_run_that_was_ended_trained_is_a_difference() -> None:
    short, whole = record(training(9).through(4), training(9).through(4)), record(training(9))
    for a, b in ((short, whole), (whole, short)):
        assert first_difference(a, b) == Difference(rank=1, step=0, stage=Stage.STEPS)


def test_frameworks_of_whole_runs_are_matched_in_their_order() -> None:
    torch, tensorflow = training(4), training(4, changed=1, framework="tensorflow")
    assert first_difference(record(torch, tensorflow), record(tensorflow, torch)) is not None
