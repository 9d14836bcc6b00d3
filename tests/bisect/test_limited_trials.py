"""Bisections whose runs are ended early, with a fake launcher: each run writes its steps while detaudit follows it."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from detaudit import runner, store, wire
from detaudit.bisect import trials
from detaudit.bisect.flags import Bisector, Question
from detaudit.config.flags import load_catalogue
from detaudit.config.options import Until
from detaudit.judge import policy
from detaudit.launch import EnoughError, RunOutcome, RunSpec
from detaudit.model import Bisection, BisectOutcome, Group, Run, Status
from detaudit.runner import Observer
from tests.fakes import hello, settings
from tests.logs import Writer, hexed, row

SEED, KERNEL = "torch-seed", "torch-deterministic-algorithms"
STEPS, SHARE = 160, 10


def flags_of(spec: RunSpec) -> set[str]:
    return {flag for flag in (SEED, KERNEL) if f'"{flag}"' in spec.env[wire.ENV_FLAGS]}


class Training:
    """A launcher whose runs differ from the step of each flag that is missing on; without ``end``, only at the end."""

    def __init__(
        self, begins: Mapping[str, int] | None = None, *, steps: int = STEPS, end: str = "", stop_after: int = 10**6
    ) -> None:
        self._begins, self._steps, self._end, self._stop_after = begins or {}, steps, end, stop_after
        self.launched: list[set[str]] = []
        self.until: set[str | None] = set()

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        if len(self.launched) == self._stop_after:
            raise KeyboardInterrupt
        flags = flags_of(spec)
        self.launched.append(flags)
        self.until.add(spec.env.get(wire.ENV_UNTIL))
        logs = spec.live / wire.LOGS
        logs.mkdir(parents=True)
        ended = False
        log = Writer(logs / "7.0.jsonl")
        log.write(hello(), {"k": "framework", "name": "torch", "version": "2.13.0"})
        for step in range(1, self._steps + 1):
            log.write(*self._step(step, self._digest(step, flags)))
            try:
                tick()
            except EnoughError:
                ended = True
                break
        if not ended:
            end = f"{len(self.launched)}" if self._end and self._end not in flags else "end"
            log.write(self._final(end), {"k": "bye", "how": "exit"})
        spec.folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(spec.live, spec.folder)
        return RunOutcome(None if ended else 0, 1.0 if ended else 600.0, ended=ended)

    def _digest(self, step: int, flags: set[str]) -> str:
        shown = [begins for flag, begins in self._begins.items() if flag not in flags and begins <= step]
        return f"run {len(self.launched)}" if shown else f"w{step}"

    def _step(self, step: int, digest: str) -> tuple[dict[str, Any], ...]:
        return row(step, "forward", "l", 0.5), row(step, "update", digest)

    def _final(self, digest: str) -> dict[str, Any]:
        final = {"k": "final", "fw": "torch", "steps": self._steps, "digest": hexed(digest), "sum": "0x1.8p+1"}
        return {**final, "loss": "0x1p-1", "params": 2, "sparse": False, "devices": ["cpu"]}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "FIRST_S", 0.0)
    monkeypatch.setattr(runner, "LEAST_S", 0.0)


def question(folder: Path, **options: Any) -> Question:
    catalogue = load_catalogue()
    full = options.pop("full", None)
    return Question(settings(folder, runs=1, **options), catalogue, catalogue.select([SEED, KERNEL]), 0, full=full)


def bisect(folder: Path, training: Training, observer: Observer | None = None, **options: Any) -> Bisection:
    return Bisector(question(folder, **options), training, observer).run()


def furthest(run: Run) -> int:
    return STEPS if run.through is None else run.through


def group_of(audit: Bisection, *flags: str) -> Group:
    return next(group for group in audit.groups if set(group.recipe.flags) == set(flags))


def test_an_answer_rests_on_short_runs_and_a_few_whole_ones(tmp_path: Path) -> None:
    training = Training({KERNEL: 3})
    audit = bisect(tmp_path, training)
    assert (audit.outcome, [one.flag for one in audit.needed or ()]) == (BisectOutcome.FIXED, [KERNEL])
    found = audit.evidence
    assert found is not None
    assert (found.runs, found.through, found.whole) == (16, SHARE, 2)
    assert found.whole_confidence is not None
    runs = group_of(audit, KERNEL).runs
    assert sum(furthest(run) >= SHARE for run in runs) == 16
    statuses = [run.status for run in runs]
    assert statuses.count(Status.OK) == 2
    assert statuses.count(Status.ENDED) == len(runs) - 2
    assert {run.status for run in group_of(audit).runs} == {Status.ENDED, Status.STOPPED}, "no whole run differs"
    assert sum(run.first_difference is not None for run in group_of(audit).runs) >= 2
    assert training.until == {"2"}, "the environments of all runs have one size"


def test_more_whole_runs_if_that_is_wanted(tmp_path: Path) -> None:
    found = bisect(tmp_path, Training({KERNEL: 3}), full=5).evidence
    assert found is not None
    assert (found.runs, found.through, found.whole) == (16, SHARE, 5)


def test_a_later_cause_behind_an_early_one(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training({KERNEL: 1, SEED: 100}))
    assert {one.flag for one in audit.needed or ()} == {KERNEL, SEED}
    late = group_of(audit, KERNEL)
    assert late.first_difference is not None
    assert late.first_difference.step == 100
    reference = next(run for run in late.runs if run.id == late.first_difference.runs[0])
    assert furthest(reference) >= 100, "a run is compared with one that got as far"


def test_a_difference_that_only_the_ends_show(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training({}, end=SEED))
    assert [one.flag for one in audit.needed or ()] == [SEED]
    assert audit.evidence is not None
    assert audit.evidence.whole == 7, "as many as outlast three that differed there"


@pytest.mark.parametrize("whole_s", [10**6, 6000.0])
def test_a_training_that_is_over_before_it_is_ended_has_whole_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_s: float
) -> None:
    monkeypatch.setattr(trials, "FIRST_S", 3600.0)
    monkeypatch.setattr(policy, "WHOLE_S", whole_s)
    audit = bisect(tmp_path, Training({KERNEL: 3}))
    assert audit.evidence is not None
    assert (audit.evidence.runs, audit.evidence.through, audit.evidence.whole) == (16, None, None)
    assert {run.status for group in audit.groups for run in group.runs} == {Status.OK, Status.STOPPED}


@pytest.mark.parametrize(
    "options", [{"until": Until(step=20)}, {"artifacts": ("*.pt",)}, {"stages": ("init", "forward")}]
)
def test_without_horizons(tmp_path: Path, options: dict[str, Any]) -> None:
    """--until ends all runs itself, and runs that are ended early leave no files, and weights only in stages."""
    audit = bisect(tmp_path, Training({}), **options)
    runs = [run for group in audit.groups for run in group.runs]
    assert {run.through for run in runs} == {20 if "until" in options else None}
    assert audit.evidence is None or (audit.evidence.runs, audit.evidence.through) == (16, None)


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3, 5, 9, 17, 20])
def test_an_interrupted_bisection_is_resumed(tmp_path: Path, stop_after: int) -> None:
    stopped = Bisector(question(tmp_path), Training({KERNEL: 3}, stop_after=stop_after))
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    store.save(tmp_path / "out", stopped.result(interrupted=True))
    earlier = store.load(tmp_path / "out")
    assert isinstance(earlier, Bisection)
    training = Training({KERNEL: 3})
    training.launched = [set()] * stop_after
    audit = Bisector(question(tmp_path), training, earlier=earlier.groups).run()
    assert [one.flag for one in audit.needed or ()] == [KERNEL]
    found = audit.evidence
    assert found is not None
    assert (found.through, found.whole) == (SHARE, 2)
    runs = group_of(audit, KERNEL).runs
    assert found.runs == sum(furthest(run) >= SHARE for run in runs)
    assert audit.total_runs == sum(len(group.runs) for group in audit.groups) == len(training.launched)


def test_how_long_a_proof_takes_is_announced(tmp_path: Path) -> None:
    class Announced(Observer):
        def __init__(self) -> None:
            self.proofs: list[tuple[int, int, int, float]] = []

        def proof_started(self, runs: int, through: int, full_runs: int, seconds: float) -> None:
            self.proofs.append((runs, through, full_runs, seconds))

    observer = Announced()
    bisect(tmp_path, Training({KERNEL: 3}), observer)
    ((runs, through, whole, seconds),) = observer.proofs
    assert (through, whole) == (SHARE, 1), "one run has gone to the end, to learn how long the training is"
    assert 0 < runs < 16
    assert 600 + runs * 600 * SHARE / STEPS <= seconds <= 600 + runs * 600


def test_large_weights_are_compared_at_powers_of_two(tmp_path: Path) -> None:
    """Then they have digests at no other steps."""
    launcher = Training({KERNEL: 3})
    every = launcher._step

    def sparse(step: int, digest: str) -> tuple[dict[str, Any], ...]:
        return every(step, digest) if step & (step - 1) == 0 else every(step, digest)[:1]

    launcher._step = sparse  # type: ignore[method-assign]
    audit = bisect(tmp_path, launcher)
    assert [one.flag for one in audit.needed or ()] == [KERNEL]
    steps = {run.through for group in audit.groups for run in group.runs if run.through is not None}
    assert steps <= {2**n for n in range(10)}
    assert audit.evidence is not None
    assert sum(furthest(run) >= 16 for run in group_of(audit, KERNEL).runs) == 16
