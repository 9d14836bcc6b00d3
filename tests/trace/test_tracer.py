"""A whole trace, with a fake launcher: what a run records depends on the level at which it is instrumented."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit import store, wire
from detaudit.config import choice
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.config.variations import load_variations
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.vary import NOTHING_VARIES, Varying
from detaudit.model import (
    Boundary,
    Cause,
    Culprit,
    Difference,
    Excerpt,
    FlagFix,
    How,
    Narrowed,
    Obstacle,
    Operand,
    Operation,
    Pass,
    Purpose,
    RemedyTrial,
    Replay,
    Source,
    SourceKind,
    Stage,
    StepSpread,
    TensorPair,
    Trace,
    Verdict,
)
from detaudit.model.problems import Failed
from detaudit.model.warnings import InstrumentedRunUnusable
from detaudit.trace.tracer import ReplayRequest, Tracer, TraceRequest
from tests.fakes import run, settings, training

CODE = "import torch\nx = 1\nmemory.index_put_((to,), values, accumulate=True)\n"


def op(name: str, digest: str, number: int, line: int = 3) -> dict[str, Any]:
    ins = [["float32[2]:x", 0]] if number == 0 else [[f"float32[2]:{digest}", number]]
    return {
        "k": "op", "n": number, "thread": "MainThread", "step": 1, "op": f"aten.{name}.default",
        "file": "train.py", "line": line, "ins": ins, "outs": [[f"float32[2]:{digest}{name}", number + 1, True]],
    }  # fmt: skip


@dataclass
class Training:
    """A training whose last weights are different in every run, and what an instrumented run records at each level.

    ``hides`` are the levels at which the runs match; with ``earlier``, instrumented runs differ at step 1 already.
    ``ended_after`` has the steps of the first runs that record nothing else, which never end by themselves.
    """

    hides: tuple[str, ...] = ()
    earlier: bool = False
    differs: bool = True
    instrumented: list[dict[str, Any]] = field(default_factory=list)
    launched: int = 0
    stop_after: int | None = None
    fixed_by: str = ""
    fails_with: str = ""
    fails: bool = False
    ended_after: list[int] = field(default_factory=list)
    specs: list[RunSpec] = field(default_factory=list)

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        self.launched += 1
        self.specs.append(spec)
        if self.stop_after is not None and self.launched > self.stop_after:
            raise KeyboardInterrupt
        watch = json.loads(spec.env.get(wire.ENV_WATCH, "{}"))
        orders = spec.env[wire.ENV_FLAGS]
        if self.fails_with and self.fails_with in orders:
            return run(training("same")[:2], exit_code=1)(spec)
        fixed = bool(self.fixed_by) and self.fixed_by in orders
        hidden = watch.get("level") in self.hides or not self.differs or fixed
        digest = "same" if hidden else f"w{self.launched}"
        lines = training(digest)
        if self.earlier and watch and not hidden:
            lines = training(digest, steps=1)
        if self.ended_after and not watch:
            steps = self.ended_after.pop(0)
            return run(training(digest, steps=steps, whole=False), ended=True)(spec)
        if watch and self.fails:
            return run(lines[:2], exit_code=1, stderr="out of memory")(spec)
        outcome = run(lines)(spec)
        if watch:
            self.instrumented.append(watch)
            self._record(spec.folder / "logs", watch, digest)
        return outcome

    def _record(self, folder: Path, watch: dict[str, Any], digest: str) -> None:
        if watch["level"] == "tensors":
            value = self.launched.to_bytes(4, "little") + bytes(4)
            (folder / "7.0.out0.bin").write_bytes(value)
            line = {"role": "out0", "digest": digest, "dtype": "float32", "shape": [2], "file": "7.0.out0.bin"}
            lines = [{"k": "tensor", **line}]
        elif watch["level"] == "modules":
            lines = [{**op("module", digest, 0), "op": "module", "module": "encoder.0"}]
        else:
            lines = [op("index_put_", digest, 0), op("sum", f"{digest}index_put_", 1)]
        (folder / "7.0.ops").write_text("".join(json.dumps(line) + "\n" for line in lines))


def trace(folder: Path, launcher: Training, **options: Any) -> Trace:
    return tracer(folder, launcher, **options).run()


def tracer(
    folder: Path, launcher: Training, varying: Varying = NOTHING_VARIES, stepwise: bool = False, **options: Any
) -> Tracer:
    catalogue = load_catalogue()
    found = settings(folder, varying=varying, stepwise=stepwise)
    (found.cwd / "train.py").write_text(CODE)
    return Tracer(TraceRequest(found, load_recipe("none", catalogue), catalogue, **options), launcher)


DIFFERS = Difference(rank=0, step=2, stage=Stage.UPDATE)


def fix(flag: str) -> FlagFix:
    row = load_catalogue().get(flag)
    trial = RemedyTrial(runs=2, first_difference=DIFFERS)
    return FlagFix(flag=row.id, title=row.title, trial=trial)


def operation(*launched: int, **fields: Any) -> Operation:
    """Return the operation that differs, between two instrumented runs with these numbers."""
    a, b = (f"w{number}index_put_" for number in launched)
    return Operation(
        name="aten.index_put_.default",
        inputs_equal=True,
        inputs=(Operand(dtype="float32", shape=(2,), digests=("x", "x")),),
        outputs=(Operand(dtype="float32", shape=(2,), digests=(a, b)),),
        **fields,
    )


CULPRIT = Culprit(
    how=How.OUTPUT,
    cause=Cause.KERNEL,
    rank=0,
    step=1,
    stage=Stage.UPDATE,
    file="train.py",
    line=3,
    code=CODE.splitlines()[2],
    operation=operation(3, 4),
    flags=(fix("torch-deterministic-algorithms"),),
    excerpt=Excerpt(
        file="train.py",
        line=3,
        first=1,
        lines=tuple(CODE.splitlines()),
        digest=hashlib.sha256(CODE.encode()).hexdigest(),
    ),
)


def suspect() -> Source:
    row = choice.known("index_put_", "torch", "cpu")
    condition = row.when if row is not None else ""
    call, kind = "aten.index_put_.default", SourceKind.RACING_OPERATION
    return Source(file="train.py", line=3, kind=kind, call=call, suspect=True, condition=condition)


def test_the_operation_its_line_and_its_tensor(tmp_path: Path) -> None:
    launcher, dump = Training(), tmp_path / "kept" / "two.npz"
    audit = trace(tmp_path, launcher, dump=dump)
    found = audit.culprit
    assert found is not None
    assert found.operation is not None
    tensor = found.operation.tensor
    assert tensor is not None
    assert tensor == TensorPair(dtype="float32", shape=(2,), difference=tensor.difference, saved_to=str(dump))
    assert (tensor.difference.mismatched, tensor.difference.total) == (1, 2)
    assert dump.exists()
    assert found == replace(CULPRIT, operation=operation(3, 4, tensor=tensor))
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert audit.total_runs == launcher.launched == 8
    assert [watch["level"] for watch in launcher.instrumented] == ["ops", "ops", "tensors", "tensors"]
    assert launcher.instrumented[2]["n"] == 0
    assert audit.spread == (StepSpread(step=1, operations=2, differing=2, absorbing=0, losses=(0.5, 0.5)),)
    assert audit.next_steps == ()  # the flag was tried, and did not fix it


def test_the_call_of_the_operation_is_saved_once_if_it_is_to_be_replayed(tmp_path: Path) -> None:
    launcher = Training()
    found = trace(tmp_path, launcher, replay=ReplayRequest()).culprit
    assert found is not None
    assert found.operation is not None
    assert found.operation.replay == Replay(obstacle=Obstacle.NOT_RECORDED)  # this fake saves none
    saves = [watch.get("call", 0) > 0 for watch in launcher.instrumented if watch["level"] == "tensors"]
    assert saves == [True, False]
    assert not [watch for watch in launcher.instrumented if watch["level"] != "tensors" and "call" in watch]


def test_nothing_is_saved_or_replayed_without_a_request(tmp_path: Path) -> None:
    launcher = Training()
    found = trace(tmp_path, launcher).culprit
    assert found is not None
    assert found.operation is not None
    assert found.operation.replay is None
    assert not any(watch.get("call") for watch in launcher.instrumented)


def test_the_window_is_the_step_at_which_two_runs_differ(tmp_path: Path) -> None:
    launcher = Training()
    audit = trace(tmp_path, launcher, window=3)
    assert (launcher.instrumented[0]["first"], launcher.instrumented[0]["last"]) == (2, 4)
    (first, *_) = audit.passes
    assert first == Pass(level="ops", first_step=2, last_step=4, runs=2, first_difference=DIFFERS, run_ids=(1, 2))


def test_runs_that_differ_before_the_window_are_recorded_again_from_there(tmp_path: Path) -> None:
    launcher = Training(earlier=True)
    audit = trace(tmp_path, launcher)
    assert [watch["first"] for watch in launcher.instrumented[:4]] == [2, 2, 0, 0]
    assert audit.culprit is not None


def test_runs_that_match_leave_nothing_to_trace(tmp_path: Path) -> None:
    launcher = Training(differs=False)
    audit = trace(tmp_path, launcher)
    assert (audit.verdict, audit.culprit, audit.narrowed_to) == (Verdict.DETERMINISTIC, None, None)
    assert audit.next_steps == ()
    assert launcher.launched == 3


def test_a_race_that_recording_everything_hides_may_show_if_only_racing_operations_are_recorded(tmp_path: Path) -> None:
    launcher = Training(hides=("ops",))
    audit = trace(tmp_path, launcher)
    assert audit.observer_effect
    assert audit.culprit == replace(CULPRIT, operation=operation(8, 9))
    assert audit.narrowed_to is None
    racing = launcher.instrumented[-1]
    assert (racing["level"], racing["first"]) == ("racing", 0)
    assert {"index_put_", "put_"} <= set(racing["racing"])


def test_a_race_that_recorded_operations_hide_is_narrowed_to_modules(tmp_path: Path) -> None:
    audit = trace(tmp_path, Training(hides=("ops", "racing")))
    assert audit.observer_effect
    assert audit.culprit is None
    assert audit.narrowed_to == Narrowed(
        step=1,
        after=Boundary(module="encoder.0", side="input"),
        before=Boundary(module="encoder.0", side="output"),
        suspects=(suspect(),),
    )


def test_a_race_that_all_recording_hides_is_narrowed_to_stages(tmp_path: Path) -> None:
    audit = trace(tmp_path, Training(hides=("ops", "racing", "modules")))
    assert audit.observer_effect
    after, before = Boundary(stage=Stage.FORWARD), Boundary(stage=Stage.UPDATE)
    assert audit.narrowed_to == Narrowed(step=2, after=after, before=before, suspects=(suspect(),))
    assert audit.verdict is Verdict.NONDETERMINISTIC


def test_instrumented_runs_that_fail_are_reported_and_hide_nothing(tmp_path: Path) -> None:
    audit = trace(tmp_path, Training(fails=True))
    assert not audit.observer_effect
    assert audit.culprit is None
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert InstrumentedRunUnusable(level="ops", errors=(Failed(exit_code=1),)) in audit.warnings


def test_a_first_step_that_is_passed_is_not_searched_for(tmp_path: Path) -> None:
    launcher = Training()
    audit = trace(tmp_path, launcher, first=1, window=2)
    assert [watch["level"] for watch in launcher.instrumented][:2] == ["ops", "ops"]
    assert (launcher.instrumented[0]["first"], launcher.instrumented[0]["last"]) == (1, 2)
    assert launcher.launched == len(launcher.instrumented) + 2  # with the flag
    assert audit.verdict is Verdict.NONDETERMINISTIC


@pytest.mark.parametrize("after", [0, 1, 2, 3, 5])
def test_an_interrupted_trace_reports_what_it_knows(tmp_path: Path, after: int) -> None:
    launcher = Training(stop_after=after)
    running = tracer(tmp_path, launcher)
    with pytest.raises(KeyboardInterrupt):
        running.run()
    audit = running.result(interrupted=True)
    assert audit.interrupted
    assert (audit.verdict is Verdict.NONDETERMINISTIC) == (after >= 2)
    assert audit.culprit is None


def test_a_trace_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    audit = trace(tmp_path, Training())
    (tmp_path / "again").mkdir()
    store.save(tmp_path / "again", audit)
    assert store.load(tmp_path / "again") == audit


FLAG = "torch-deterministic-algorithms"


def test_the_first_flag_is_tried(tmp_path: Path) -> None:
    launcher = Training(fixed_by=FLAG)
    audit = trace(tmp_path, launcher)
    assert audit.culprit is not None
    assert audit.culprit.flags[0].trial == RemedyTrial(runs=2)
    (step,) = audit.next_steps
    assert (step.purpose, f"--flag {FLAG}" in step.command) == (Purpose.CHECK_FLAG, True)
    assert audit.total_runs == launcher.launched == 8


def test_a_run_that_fails_with_the_flag_ends_its_trial(tmp_path: Path) -> None:
    launcher = Training(fails_with=FLAG)
    audit = trace(tmp_path, launcher)
    assert audit.culprit is not None
    assert audit.culprit.flags[0].trial == RemedyTrial(runs=1, failed=True)
    assert audit.next_steps == ()
    assert audit.total_runs == launcher.launched == 7


@pytest.mark.parametrize(
    ("ended_after", "expected"),
    [
        ([2, 128, 600, 600], RemedyTrial(runs=2, through=512)),
        ([2, 128], RemedyTrial(runs=2)),  # with the flag, the training is over before step 512
    ],
)
def test_a_flag_is_tried_four_times_as_far_as_runs_were_ended(
    tmp_path: Path, ended_after: list[int], expected: RemedyTrial
) -> None:
    audit = trace(tmp_path, Training(fixed_by=FLAG, ended_after=ended_after), stepwise=True)
    assert [run.through for run in audit.groups[0].runs] == [2, 128]
    assert audit.culprit is not None
    assert audit.culprit.flags[0].trial == expected


@pytest.mark.parametrize(("steps", "differs"), [(512, replace(DIFFERS, step=512)), (513, None)])
def test_what_differs_with_a_flag_counts_as_far_as_it_was_tried(
    tmp_path: Path, steps: int, differs: Difference | None
) -> None:
    audit = trace(tmp_path, Training(ended_after=[2, 128, steps, steps]), stepwise=True)
    assert audit.culprit is not None
    assert audit.culprit.flags[0].trial == RemedyTrial(runs=2, first_difference=differs, through=512)


def test_racing_operations_are_recorded_as_far_as_runs_were_ended(tmp_path: Path) -> None:
    launcher = Training(hides=("ops",), ended_after=[2, 128, 512, 512])
    trace(tmp_path, launcher, stepwise=True)
    assert [watch["last"] for watch in launcher.instrumented if watch["level"] == "racing"] == [128, 128]


def test_the_runs_of_a_pair_have_different_values_of_what_varies(tmp_path: Path) -> None:
    row = next(one for one in load_variations() if one.id == "threads")
    launcher = Training(fixed_by='"nothing"')
    made = tracer(tmp_path, launcher, varying=Varying((row,)))
    audit = made.run()
    threads = [spec.env["OMP_NUM_THREADS"] for spec in launcher.specs]
    # Two runs to find the difference, two with operations, two with tensors, two with the flag, which pins nothing.
    assert threads[:6] == ["1", "2"] * 3
    assert audit.culprit is not None
    assert audit.culprit.cause is Cause.THREADS
    assert [fix.flag for fix in audit.culprit.flags] == list(row.flags)
    assert audit.groups[0].varied[0].id == "threads"
