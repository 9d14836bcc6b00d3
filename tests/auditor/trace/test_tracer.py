"""The story of a trace, with a fake launcher: what a run leaves depends on how closely it is watched."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from detaudit import wire
from detaudit.auditor import store
from detaudit.auditor.trace.tracer import Asked, Tracer
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Trace, Verdict
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import load_recipe
from tests.auditor.fakes import run, settings, training

CODE = "import torch\nx = 1\nmemory.index_put_((to,), values, accumulate=True)\n"


def op(name: str, words: str, number: int, line: int = 3) -> dict[str, Any]:
    ins = [["float32[2]:x", 0]] if number == 0 else [[f"float32[2]:{words}", number]]
    return {
        "k": "op", "n": number, "thread": "MainThread", "step": 1, "op": f"aten.{name}.default",
        "file": "train.py", "line": line, "ins": ins, "outs": [[f"float32[2]:{words}{name}", number + 1, True]],
    }  # fmt: skip


@dataclass
class Watched:
    """A training whose last weights are another in every run, and what a watched run leaves at each level.

    ``hides`` are the levels at which the runs agree; ``earlier`` lets watched runs differ at step 1 already.
    """

    hides: tuple[str, ...] = ()
    earlier: bool = False
    differs: bool = True
    asked: list[dict[str, Any]] = field(default_factory=list)
    launches: int = 0
    stop_after: int | None = None
    fails: bool = False

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        self.launches += 1
        if self.stop_after is not None and self.launches > self.stop_after:
            raise KeyboardInterrupt
        watch = json.loads(spec.env.get(wire.ENV_WATCH, "{}"))
        hidden = watch.get("level") in self.hides or not self.differs
        words = "same" if hidden else f"w{self.launches}"
        lines = training(words)
        if self.earlier and watch and not hidden:
            lines = training(words, steps=1)
        if watch and self.fails:
            return run(lines[:2], exit_code=1, stderr="out of memory")(spec)
        outcome = run(lines)(spec)
        if watch:
            self.asked.append(watch)
            self._leave(spec.folder / "trace", watch, words)
        return outcome

    def _leave(self, folder: Path, watch: dict[str, Any], words: str) -> None:
        if watch["level"] == "tensors":
            value = self.launches.to_bytes(4, "little") + bytes(4)
            (folder / "7.0.out0.bin").write_bytes(value)
            line = {"role": "out0", "digest": words, "dtype": "float32", "shape": [2], "file": "7.0.out0.bin"}
            lines = [{"k": "tensor", **line}]
        elif watch["level"] == "modules":
            lines = [{**op("module", words, 0), "op": "module", "module": "encoder.0"}]
        else:
            lines = [op("index_put_", words, 0), op("sum", f"{words}index_put_", 1)]
        (folder / "7.0.ops").write_text("".join(json.dumps(line) + "\n" for line in lines))


def trace(folder: Path, launcher: Watched, **asked: Any) -> Trace:
    return tracer(folder, launcher, **asked).run()


def tracer(folder: Path, launcher: Watched, **asked: Any) -> Tracer:
    catalogue = load_catalogue()
    found = settings(folder)
    (found.cwd / "train.py").write_text(CODE)
    return Tracer(Asked(found, load_recipe("none", catalogue), catalogue, **asked), launcher)


def test_the_operation_its_line_and_its_tensor(tmp_path: Path) -> None:
    launcher = Watched()
    audit = trace(tmp_path, launcher, dump=tmp_path / "kept" / "two.npz")
    found = audit.culprit
    assert found is not None
    assert (found.op, found.file, found.line) == ("aten.index_put_.default", "train.py", 3)
    assert (found.how, found.cause, found.inputs_equal) == ("output", "kernel", True)
    assert found.code == CODE.splitlines()[2]
    assert found.tensor is not None
    assert (found.tensor.difference.mismatched, found.tensor.difference.total) == (1, 2)
    assert (tmp_path / "kept" / "two.npz").exists()
    assert [cure.flag for cure in found.cures] == ["torch-deterministic-algorithms"]
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert audit.launches == launcher.launches == 6
    assert [watch["level"] for watch in launcher.asked] == ["ops", "ops", "tensors", "tensors"]
    assert launcher.asked[2]["n"] == 0


def test_the_window_is_the_step_at_which_two_runs_differ(tmp_path: Path) -> None:
    launcher = Watched()
    audit = trace(tmp_path, launcher, window=3)
    assert (launcher.asked[0]["first"], launcher.asked[0]["last"]) == (2, 4)
    assert audit.passes[0].differs is not None
    assert audit.passes[0].differs.step == 2


def test_runs_that_differ_before_the_window_are_watched_again_from_there(tmp_path: Path) -> None:
    launcher = Watched(earlier=True)
    audit = trace(tmp_path, launcher)
    assert [watch["first"] for watch in launcher.asked[:4]] == [2, 2, 0, 0]
    assert audit.culprit is not None


def test_runs_that_agree_leave_nothing_to_trace(tmp_path: Path) -> None:
    launcher = Watched(differs=False)
    audit = trace(tmp_path, launcher)
    assert (audit.verdict, audit.culprit, audit.bounded) == (Verdict.DETERMINISTIC, None, None)
    assert launcher.launches == 3


def test_a_race_that_hides_where_everything_is_watched_may_show_where_only_what_races_is(tmp_path: Path) -> None:
    launcher = Watched(hides=("ops",))
    audit = trace(tmp_path, launcher)
    assert audit.observer_effect
    assert audit.culprit is not None
    assert (audit.culprit.op, audit.culprit.line) == ("aten.index_put_.default", 3)
    assert audit.bounded is None
    asked = launcher.asked[-1]
    assert (asked["level"], asked["first"]) == ("racing", 0)
    assert {"index_put_", "put_"} <= set(asked["racing"])


def test_a_race_that_hides_from_the_watching_is_bounded_by_modules(tmp_path: Path) -> None:
    audit = trace(tmp_path, Watched(hides=("ops", "racing")))
    assert audit.observer_effect
    assert audit.culprit is None
    assert audit.bounded is not None
    assert (audit.bounded.after, audit.bounded.before) == ("the input of encoder.0", "the output of encoder.0")
    (suspect,) = audit.bounded.suspects
    assert (suspect.file, suspect.line) == ("train.py", 3)
    assert "index_put_" in suspect.what


def test_a_race_that_hides_from_all_watching_is_bounded_by_stages(tmp_path: Path) -> None:
    audit = trace(tmp_path, Watched(hides=("ops", "racing", "modules")))
    assert audit.observer_effect
    assert audit.bounded is not None
    assert (audit.bounded.step, audit.bounded.after, audit.bounded.before) == (2, "the loss", "the updated weights")
    assert audit.verdict is Verdict.NONDETERMINISTIC


def test_runs_that_fail_while_they_are_watched_are_told_and_hide_nothing(tmp_path: Path) -> None:
    audit = trace(tmp_path, Watched(fails=True))
    assert not audit.observer_effect
    assert audit.culprit is None
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert "a run whose ops were watched came to nothing: the script failed with exit status 1" in audit.warnings


def test_a_step_that_is_given_is_not_looked_for(tmp_path: Path) -> None:
    launcher = Watched()
    audit = trace(tmp_path, launcher, first=1, window=2)
    assert [watch["level"] for watch in launcher.asked][:2] == ["ops", "ops"]
    assert (launcher.asked[0]["first"], launcher.asked[0]["last"]) == (1, 2)
    assert launcher.launches == len(launcher.asked)
    assert audit.verdict is Verdict.NONDETERMINISTIC


@pytest.mark.parametrize("after", [0, 1, 2, 3, 5])
def test_an_interrupted_trace_tells_what_it_knows(tmp_path: Path, after: int) -> None:
    launcher = Watched(stop_after=after)
    story = tracer(tmp_path, launcher)
    with pytest.raises(KeyboardInterrupt):
        story.run()
    audit = story.result(interrupted=True)
    assert audit.interrupted
    assert (audit.verdict is Verdict.NONDETERMINISTIC) == (after >= 2)
    assert audit.culprit is None


def test_a_trace_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    audit = trace(tmp_path, Watched())
    (tmp_path / "again").mkdir()
    store.save(tmp_path / "again", audit)
    assert store.load(tmp_path / "again") == audit
