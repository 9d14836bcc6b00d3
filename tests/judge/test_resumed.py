"""Where a resumed run goes on in an uninterrupted one, and what it lost, from records made by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit.judge import resumed
from detaudit.model import FinalState, ModelTensor, Run, RunRecord, Stage, Status, Training
from detaudit.model.outputs import File, Outputs, Value
from detaudit.model.resume import LostKind
from detaudit.runs.log import Process
from detaudit.runs.log_records import Held, Hello, Read

STEPS = 8


def digests(**stages: Mapping[int, str]) -> dict[Stage, dict[int, tuple[str, ...]]]:
    return {Stage(stage): {step: (text,) for step, text in steps.items()} for stage, steps in stages.items()}


def series(letter: str, first: int = 1, last: int = STEPS, shift: int = 0) -> dict[int, str]:
    return {step - shift: f"{letter}{step}" for step in range(first, last + 1)}


def uninterrupted() -> Training:
    stages = {stage: series(stage[0]) for stage in ("rng", "batch", "forward", "update")}
    rates = {1: "x lr=0.1", 5: "x lr=0.05"}
    return Training(framework="torch", steps=STEPS, digests=digests(init={0: "i"}, hyperparameters=rates, **stages))


def resume(after: int = 4, last: int = STEPS, **changed: Mapping[int, str]) -> Training:
    """Return a training that goes on after a step as the uninterrupted one does, but for these stages."""
    stages: dict[str, Any] = {
        stage: series(stage[0], after + 1, last, after) for stage in ("rng", "batch", "forward", "update")
    }
    stages = {**stages, "init": {0: f"u{after}"}, "hyperparameters": {1: "x lr=0.05"}, **changed}
    return Training(framework="torch", steps=last - after, digests=digests(**stages))


def held(*values: tuple[str, str, str, str]) -> Held:
    return Held(fw="torch", step=1, values=values)


def lost(
    again: Training, ours: Held | None = None, theirs: Held | None = None, files: Sequence[File] = (), after: int = 4
) -> dict[str, Any]:
    whole = uninterrupted()
    first = resumed.first_difference(whole, again, after)
    return {one.what.value: one for one in resumed.Resumed(whole, again, after, ours, theirs, files).lost(first)}


def checkpoint(*names: str) -> File:
    values = tuple(Value(one, "") for one in names)
    return File(path="last.pt", name="last.pt", sha256="", size=1, by="torch", values=values)


@pytest.mark.parametrize(
    ("again", "after"),
    [
        (resume(4), 4),
        (resume(6), 6),
        (resume(4, last=6), 4),  # its weights say so, although more steps were left
        (resume(4, init={0: "other"}), 4),  # steps that were left
        (resume(0, init={0: "i"}), 0),
        (resume(4, last=5, init={0: "other"}), 4),  # its batch
    ],
)
def test_where_a_resumed_run_goes_on(again: Training, after: int) -> None:
    assert resumed.resumed_after(uninterrupted(), again, 6) == after


def test_a_run_that_goes_on_counting_says_where() -> None:
    again = Training(framework="script", steps=8, digests=digests(update=series("u", 5, 8)))
    assert resumed.resumed_after(uninterrupted(), again, 6) == 4
    assert resumed.first_difference(uninterrupted(), again, 4) is None


def test_nothing_is_lost_by_a_run_that_repeats_the_rest() -> None:
    assert resumed.first_difference(uninterrupted(), resume(), 4) is None
    assert lost(resume()) == {}


def test_a_first_difference_has_the_step_of_the_uninterrupted_run() -> None:
    again = resume(forward={**series("f", 5, 8, 4), 2: "other"})
    first = resumed.first_difference(uninterrupted(), again, 4)
    assert first is not None
    assert (first.step, first.stage) == (6, Stage.FORWARD)


def test_an_update_that_differs_alone_is_the_optimizer() -> None:
    assert [*lost(resume(update=dict.fromkeys(range(1, 5), "other")))] == ["optimizer"]


def test_a_learning_rate_that_differs_is_no_state_of_the_optimizer() -> None:
    again = resume(update=dict.fromkeys(range(1, 5), "other"), hyperparameters={1: "x lr=0.1"})
    (one,) = lost(again).values()
    assert (one.what, one.uninterrupted, one.resumed) == (LostKind.LEARNING_RATE, "0.05", "0.1")


def test_an_only_optimizer_is_compared_whatever_its_number() -> None:
    again = resume(update=dict.fromkeys(range(1, 5), "other"), hyperparameters={1: "x optimizer 2 lr=0.1"})
    assert [(one.what, one.resumed) for one in lost(again).values()] == [(LostKind.LEARNING_RATE, "0.1")]


def test_a_generator_that_starts_over_is_named_with_the_step_that_it_is_like() -> None:
    again = resume(rng={step: f"r{step}" for step in range(1, 5)}, batch={step: f"b{step}" for step in range(1, 5)})
    (one,) = lost(again, files=[checkpoint("model.weight", "epoch")]).values()
    assert (one.what, one.like, one.missing) == (LostKind.GENERATOR, 1, ("last.pt",))


def test_batches_that_start_over_are_the_position_in_the_data() -> None:
    again = resume(batch={step: f"b{step}" for step in range(1, 5)})
    (one,) = lost(again).values()
    assert (one.what, one.step, one.like) == (LostKind.DATA_ORDER, 5, 1)
    # A generator that was saved, and drew another number of times, is not to blame.
    saved = [checkpoint("torch_rng")]
    again = resume(rng=dict.fromkeys(range(1, 5), "other"), batch=dict.fromkeys(range(1, 5), "other"))
    ours, theirs = (held(("generator", "torch", "", digest)) for digest in "ab")
    assert [*lost(again, ours, theirs, saved)] == ["data-order"]
    assert [*lost(again, ours, theirs)] == ["generator"]


def test_steps_that_are_done_again_are_a_lost_count() -> None:
    (one,) = lost(resume(4, last=6)).values()
    assert one.text() == "how many steps or epochs were done: 4 steps were left, and it trained 2 steps"


def test_weights_that_are_the_initial_ones_are_lost() -> None:
    again = resume(init={0: "i"}, forward=dict.fromkeys(range(1, 5), "other"))
    assert [(one.what, one.like) for one in lost(again).values()] == [(LostKind.WEIGHTS, 0)]


def test_what_was_held_is_named_one_by_one() -> None:
    again = resume(update=dict.fromkeys(range(1, 5), "other"))
    same = ("buffer", "model.1.running_mean", "", "m")
    ours = held(same, ("optimizer", "adam: exp_avg of 0.weight", "", "a"), ("scheduler", "steps: last_epoch", "4", "b"))
    theirs = held(same, ("scheduler", "steps: last_epoch", "0", "c"), ("scaler", "only here", "", "d"))
    named = lost(again, ours, theirs)
    assert {what: one.names for what, one in named.items()} == {
        "scheduler": ("steps: last_epoch",),
        "optimizer": ("adam: exp_avg of 0.weight",),
    }
    assert named["scheduler"].text() == (
        "the state of the learning rate scheduler (steps: last_epoch): 4 at step 5, and 0 after the resume"
    )


def test_a_checkpoint_that_has_a_name_for_it_may_have_it() -> None:
    again = resume(update=dict.fromkeys(range(1, 5), "other"))
    (one,) = lost(again, files=[checkpoint("model.weight", "optimizer.state.0")]).values()
    assert one.text().endswith("last.pt may have it, but it was not restored")
    (one,) = lost(again, files=[checkpoint("weights")]).values()
    assert one.text() == "the state of the optimizer; last.pt has nothing of the kind"


def test_the_manifest_of_a_database_stands_for_what_is_in_its_folder() -> None:
    manifest, inner = (replace(checkpoint("params.w"), path=f"{at}/manifest.ocdbt", by="ocdbt") for at in ("a", "a/b"))
    note = replace(checkpoint("use_ocdbt"), path="a/_METADATA", by="json")
    outputs = Outputs(files=(manifest, inner, note, replace(note, path="own.json")))
    record = RunRecord(outputs=outputs)
    read = [Read(path=f"/w/{name}", file="/w/train.py", line=1, at=0) for name in ("a/_METADATA", "own.json")]
    process = Process(Hello(1, 7, 1, (), "3.11.7", None, ()), read=read)
    files, shown = resumed.checkpoints(record, [process], Path("/w"))
    assert [file.path for file in files] == ["a/manifest.ocdbt", "own.json"]
    assert [one.names for one in shown] == [("params",), ("use_ocdbt",)]
    files, _ = resumed.checkpoints(record, [], Path("/w"))
    assert [file.path for file in files] == ["a/manifest.ocdbt"]


def test_a_first_loss_that_differs_alone_is_named_as_a_state() -> None:
    again = resume(forward=dict.fromkeys(range(1, 5), "other"))
    assert [*lost(again)] == ["state"]
    assert [*lost(replace(again, steps=4))] == ["state"]


def ended(*names: str, digest: str = "d") -> Training:
    state = tuple(ModelTensor(name=name, buffer=False, digest=name) for name in names)
    return Training(framework="torch", steps=STEPS, final=FinalState(digest=digest, loss=0.5, state=state))


@pytest.mark.parametrize(
    ("again", "same"),
    [
        (ended("weight", "average"), True),
        (ended("weight", "average", "of a model that was replaced"), True),
        (ended("weight", "other average"), False),
        (ended("weight", "average", digest="other"), False),
    ],
)
def test_a_resumed_run_ends_the_same_if_it_holds_all_that_the_other_does(again: Training, same: bool) -> None:
    whole = ended("weight", "average")
    first, second = (
        Run(id=1, status=Status.OK, exit_code=0, wall_s=1.0, steps=STEPS, ranks=(one.fingerprint(0),), errors=())
        for one in (whole, again)
    )
    assert resumed.same_end(first, second, [(whole, again)]) is same
