"""A whole bisection, with a fake launcher: what a run records depends on the flags that are set."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detaudit import store, wire
from detaudit.audit import Auditor
from detaudit.bisect.flags import Bisector, Question
from detaudit.config.flags import load_catalogue
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Bisection, BisectOutcome, LeftOut, Purpose, Stage, Status, Varied, Verdict
from detaudit.model.problems import Failed
from detaudit.report.searches import bisection_result, needed_lines
from tests.fakes import FakeLauncher, Script, run, settings, training

SEED, KERNEL, HASH = "torch-seed", "torch-deterministic-algorithms", "python-hash-seed"


def flags_of(spec: RunSpec) -> set[str]:
    """Return the flags that are set in a run, as far as this test distinguishes them."""
    orders = spec.env[wire.ENV_FLAGS]
    inside = {flag for flag in (SEED, KERNEL) if f'"{flag}"' in orders}
    return inside | ({HASH} if "PYTHONHASHSEED" in spec.env else set())


class Training:
    """A launcher whose runs differ until all ``needed`` flags are set."""

    def __init__(self, *needed: str, fails: str = "", stop_after: int = 10**6) -> None:
        self._needed, self._fails, self._stop_after = set(needed), fails, stop_after
        self._numbers = count(1)
        self.launched: list[set[str]] = []

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        number, flags = next(self._numbers), flags_of(spec)
        if number > self._stop_after:
            raise KeyboardInterrupt
        self.launched.append(flags)
        return self._script(flags, number)(spec)

    def _script(self, flags: set[str], number: int) -> Script:
        if self._fails in flags:
            return run(training(whole=False), exit_code=1, stderr="RuntimeError: put_ has no deterministic kernel\n")
        return run(training("same" if self._needed <= flags else f"other {number}"))


def question(folder: Path, **options: object) -> Question:
    catalogue = load_catalogue()
    return Question(
        settings=settings(folder, runs=1),
        catalogue=catalogue,
        candidates=catalogue.select([SEED, KERNEL, HASH]),
        seed=0,
        **options,  # type: ignore[arg-type]
    )


def bisect(folder: Path, launcher: Training, **options: object) -> Bisection:
    return Bisector(question(folder, **options), launcher).run()


def test_the_flag_that_is_needed(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(KERNEL))
    assert audit.outcome is BisectOutcome.FIXED
    assert audit.verdict is Verdict.DETERMINISTIC
    (needed,) = audit.needed or ()
    row = load_catalogue().get(KERNEL)
    assert (needed.flag, needed.title, needed.requires) == (KERNEL, row.title, ())
    assert needed.acts_on == ()
    assert needed.left_out == LeftOut(trial="trial-1", runs=(1, 2), rank=0, step=2, stage=Stage.UPDATE)
    assert (needed.cost, needed.cost_range, needed.cost_runs) == (None, None, None), "nothing took turns"
    assert audit.evidence is not None
    assert audit.evidence.runs >= 16
    (proof,) = (group for group in audit.groups if group.recipe.name == audit.evidence.trial)
    assert set(proof.recipe.flags) == {one.flag for one in audit.needed or ()}
    assert len(proof.runs) >= 16
    assert audit.total_runs == sum(len(group.runs) for group in audit.groups)
    step, edits = audit.next_steps
    assert edits.purpose is Purpose.FIX
    assert (step.purpose, audit.recipe_file) == (Purpose.AUDIT_WITH_RECIPE, str(tmp_path / "out/detaudit-recipe.yaml"))
    assert f"--recipe {audit.recipe_file}" in step.command


def test_after_a_late_difference_kernels_are_tried_before_seeds(tmp_path: Path) -> None:
    launcher = Training(KERNEL)
    bisect(tmp_path, launcher)
    assert launcher.launched[2] == {KERNEL}


def test_two_flags_that_are_needed_together(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(KERNEL, HASH))
    assert {one.flag for one in audit.needed or ()} == {KERNEL, HASH}
    assert audit.recipe_file is not None
    text = (tmp_path / "out" / "detaudit-recipe.yaml").read_text()
    assert KERNEL in text
    assert HASH in text


def test_it_is_deterministic_already(tmp_path: Path) -> None:
    launcher = Training()
    audit = bisect(tmp_path, launcher)
    assert audit.outcome is BisectOutcome.ALREADY_DETERMINISTIC
    assert audit.needed == ()
    assert len(launcher.launched) == 16
    assert (audit.recipe_file, audit.next_steps) == (None, ())


def test_no_flag_fixes_it(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training("a flag that does not exist"))
    assert audit.outcome is BisectOutcome.NOT_FIXED
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert audit.needed is None


def test_a_flag_with_which_it_fails_is_reported_with_the_last_line_on_stderr(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(SEED, fails=KERNEL))
    assert [one.flag for one in audit.needed or ()] == [SEED]
    (failing,) = audit.failing_flags
    assert failing.flag == KERNEL
    assert failing.message == "RuntimeError: put_ has no deterministic kernel"
    assert failing.errors == (Failed(exit_code=1),)


def test_an_interrupted_bisection_that_compares_artifacts_offers_no_resume(tmp_path: Path) -> None:
    requested = question(tmp_path)
    requested = replace(requested, settings=replace(requested.settings, artifacts=("model.pt",)))
    assert Bisector(requested, Training(KERNEL)).result(interrupted=True).next_steps == ()


def test_a_resumed_bisection_repeats_no_run(tmp_path: Path) -> None:
    requested = question(tmp_path)
    first = Training(KERNEL, HASH, stop_after=5)
    bisector = Bisector(requested, first)
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    kept = bisector.result(interrupted=True)
    store.save(requested.settings.out, kept)
    assert kept.outcome is BisectOutcome.INCONCLUSIVE
    (step,) = kept.next_steps
    assert (step.command, step.purpose) == (f"detaudit bisect --resume {requested.settings.out}", Purpose.RESUME)

    again = store.load(requested.settings.out)
    assert isinstance(again, Bisection)
    second = Training(KERNEL, HASH)
    audit = Bisector(requested, second, earlier=again.groups).run()
    assert {one.flag for one in audit.needed or ()} == {KERNEL, HASH}
    whole = Training(KERNEL, HASH)
    other = tmp_path / "other"
    other.mkdir()
    bisect(other, whole)
    assert len(first.launched) + len(second.launched) == len(whole.launched)


@pytest.mark.parametrize("stop_after", [1, 5])
def test_an_interrupted_bisection_has_the_versions_of_its_runs(tmp_path: Path, stop_after: int) -> None:
    """Also one that is resumed, and interrupted again before its next run."""
    stopped = Bisector(question(tmp_path), Training(KERNEL, HASH, stop_after=stop_after))
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    kept = stopped.result(interrupted=True)
    again = Bisector(question(tmp_path), Training(stop_after=0), earlier=kept.groups)
    with pytest.raises(KeyboardInterrupt):
        again.run()
    whole = tmp_path / "whole"
    whole.mkdir()
    expected = bisect(whole, Training(KERNEL, HASH)).environment
    assert (expected["python"], expected["frameworks"]) == ("3.11.7", {"torch": "2.13.0"})
    assert kept.environment == again.result(interrupted=True).environment == expected


def test_a_bisection_whose_runs_all_fail_has_their_versions(tmp_path: Path) -> None:
    class Fails(Training):
        def _script(self, flags: set[str], number: int) -> Script:
            return run(training(whole=False), exit_code=1)

    audit = bisect(tmp_path, Fails())
    assert audit.outcome is BisectOutcome.INCONCLUSIVE
    assert audit.environment["frameworks"] == {"torch": "2.13.0"}


def test_audit_json_has_all_of_it(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(KERNEL))
    assert store.load(tmp_path / "out") == audit
    assert msgspec.json.decode(msgspec.json.encode(audit), type=Bisection) == audit


@pytest.mark.parametrize("costs", [False, True])
def test_an_alternative_is_tried_if_that_is_requested(tmp_path: Path, costs: bool) -> None:
    requested = question(tmp_path, alternatives=True)
    rows = [msgspec.structs.replace(f, alternatives=(HASH,)) if f.id == KERNEL else f for f in requested.catalogue]
    catalogue = type(requested.catalogue)(rows)
    requested = replace(requested, catalogue=catalogue, candidates=catalogue.select([SEED, KERNEL, HASH]))

    class Either(Training):
        def _script(self, flags: set[str], number: int) -> Script:
            return run(training("same" if flags & {KERNEL, HASH} else f"other {number}"))

    audit = Bisector(replace(requested, costs=costs), Either()).run()
    (needed,) = audit.needed or ()
    (other,) = needed.alternatives
    assert (other.flag, other.title, other.matching) == (HASH, catalogue.get(HASH).title, 5)
    measured = (1.0, (1.0, 1.0)) if costs else (None, None)
    assert (other.cost, other.cost_range) == measured
    assert (needed.cost, needed.cost_range) == measured
    assert all((one.cost_runs or (0, 0)) >= (6 * costs, 6 * costs) for one in (other, needed))


def test_a_run_that_fails_is_no_match(tmp_path: Path) -> None:
    class Fails(Training):
        def _script(self, flags: set[str], number: int) -> Script:
            return run(training(), exit_code=3, stderr="boom\n")

    audit = bisect(tmp_path, Fails())
    assert audit.outcome is BisectOutcome.INCONCLUSIVE
    assert audit.verdict is Verdict.INCONCLUSIVE
    assert audit.groups[0].runs[0].status is Status.FAILED


RNG = "numpy-default-rng"


class WithoutSeed(Training):
    """Runs draw from generators without a seed at lines 3 and 7 of data.py, and differ until a flag seeds them."""

    def _script(self, flags: set[str], number: int) -> Script:
        def launched(spec: RunSpec) -> RunOutcome:
            seeded = f'"{RNG}"' in spec.env[wire.ENV_FLAGS]
            lines = training("same" if seeded else f"other {number}")
            lines.insert(2, {"k": "settings", "values": {}, "environ": {}, "files": [], "versions": {"numpy": "2.4.6"}})
            for line in (3, 7):
                source = {"k": "source", "kind": "unseeded", "what": "numpy.random.default_rng", "value": ""}
                lines.insert(2, {**source, "file": str(spec.cwd / "data.py"), "line": line})
            return run(lines)(spec)

        return launched


def test_the_lines_on_which_a_flag_acts_and_what_does_the_same_there(tmp_path: Path) -> None:
    catalogue = load_catalogue()
    requested = replace(question(tmp_path), candidates=catalogue.select([SEED, KERNEL, RNG]))
    (requested.settings.cwd / "data.py").write_text(
        "import numpy as np\n\nrng = np.random.default_rng()\n\n\n"
        "def augment(x):\n    return x + np.random.default_rng().normal()\n"
    )
    audit = Bisector(requested, WithoutSeed()).run()
    (needed,) = audit.needed or ()
    assert (needed.flag, [(one.file, one.line) for one in needed.acts_on]) == (RNG, [("data.py", 3), ("data.py", 7)])
    said = "\n".join(needed_lines(needed))
    assert "acts on data.py:3: numpy.random.default_rng() is called without a seed" in said
    assert "default_rng(0)" not in said, "no edit was tried"


@pytest.mark.parametrize(
    ("changed", "inconclusive"),
    [
        ({}, True),
        ({"target": ("other.py",)}, False),
        ({"flags": ("torch-seed",)}, False),
        ({"varied": (Varied(id="hash-seed", values=("a", "b")),)}, False),
        ({"same": True}, False),
        ({"edited": True}, False),
        ({"upgraded": True}, False),
        ({"damaged": True}, False),
    ],
    ids=str,
)
def test_runs_that_match_after_an_audit_whose_runs_differed_are_no_proof(
    tmp_path: Path, changed: dict[str, Any], inconclusive: bool
) -> None:
    requested = question(tmp_path)
    cwd = requested.settings.cwd
    (cwd / "train.py").write_text("")
    packages = tmp_path / "site-packages"
    (packages / "numpy-2.0.dist-info").mkdir(parents=True)

    def read(lines: list[dict[str, Any]]) -> Script:
        files = {"files": [str(cwd / "train.py")], "packages": [str(packages)]}
        lines[2:2] = [{"k": "settings", "values": {}, "environ": {}, **files}, {"k": "data", "paths": []}]
        return run(lines)

    scripts = [read(training()), read(training("same" if changed.get("same") else "other"))]
    out = cwd / ".detaudit" / "earlier"
    before = Auditor(replace(settings(tmp_path, runs=2), out=out), FakeLauncher(*scripts)).run()
    (group,) = before.groups
    recipe = msgspec.structs.replace(group.recipe, flags=changed.get("flags", ()))
    group = msgspec.structs.replace(group, recipe=recipe, varied=changed.get("varied", ()))
    target = changed.get("target", before.target)
    store.save(out, msgspec.structs.replace(before, groups=(group,), target=target))
    if changed.get("edited"):
        (cwd / "train.py").write_text("# edited")
    if changed.get("upgraded"):
        (packages / "numpy-2.0.dist-info").rename(packages / "numpy-2.1.dist-info")
    if changed.get("damaged"):
        (out / "audit.json").write_text("{")

    class Read(Training):
        def _script(self, flags: set[str], number: int) -> Script:
            return read(training())

    audit = Bisector(requested, Read()).run()
    if not inconclusive:
        assert (audit.outcome, audit.differed_in) == (BisectOutcome.ALREADY_DETERMINISTIC, None)
        return
    assert (audit.outcome, audit.verdict, audit.needed) == (BisectOutcome.INCONCLUSIVE, Verdict.INCONCLUSIVE, None)
    assert audit.differed_in == str(out)
    assert "runs of the same command differed" in bisection_result(audit).sentence
    assert store.load(requested.settings.out) == audit


class Timed(Training):
    """Runs take 1 s, times ``factor`` with the kernel flag; ``drift`` is how much slower each run is than the last."""

    def __init__(self, *needed: str, factor: float, drift: float = 1.0, differs_at: int = 0) -> None:
        super().__init__(*needed)
        self._factor, self._drift, self._differs_at = factor, drift, differs_at

    def _script(self, flags: set[str], number: int) -> Script:
        launched = super()._script(flags, number)
        if number == self._differs_at:
            launched = run(training(f"other {number}"))
        wall_s = self._drift**number * (self._factor if KERNEL in flags else 1.0)
        return lambda spec: replace(launched(spec), wall_s=wall_s)


def test_costs_are_measured_by_runs_that_take_turns(tmp_path: Path) -> None:
    launcher = Timed(KERNEL, factor=1.5)
    audit = bisect(tmp_path, launcher, costs=True)
    (needed,) = audit.needed or ()
    assert (needed.cost, needed.cost_range) == (1.5, (1.5, 1.5))
    assert needed.cost_runs is not None
    assert needed.cost_runs >= (6, 6), "two of the search may be next to each other too"
    kinds = [KERNEL in flags for flags in launcher.launched[-12:]]
    assert kinds == [False, True, True, False] * 3
    assert audit.evidence is not None
    assert audit.evidence.runs == 16, "the runs that are timed are no part of the proof"


def test_a_machine_that_becomes_slower_is_no_cost_of_a_flag(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Timed(KERNEL, factor=1.0, drift=1.02), costs=True)
    (needed,) = audit.needed or ()
    assert needed.cost_range is not None
    least, most = needed.cost_range
    assert least < 1 < most
    assert next(line for line in needed_lines(needed) if "cost" in line).startswith("no measurable cost (")


def test_runs_that_differ_while_they_are_timed_contradict_the_answer(tmp_path: Path) -> None:
    """The search goes on: with these flags two runs were observed to differ."""
    whole = Timed(KERNEL, factor=1.0)
    (tmp_path / "whole").mkdir()
    bisect(tmp_path / "whole", whole, costs=True)
    assert whole.launched[-1] != {KERNEL}
    last = len(whole.launched) - 1
    assert KERNEL in whole.launched[last - 1]
    audit = bisect(tmp_path, Timed(KERNEL, factor=1.0, differs_at=last), costs=True)
    assert {KERNEL} != {one.flag for one in audit.needed or ()}
    assert all(
        group.first_difference is None
        for group in audit.groups
        if set(group.recipe.flags) == {flag for one in audit.needed or () for flag in (one.flag, *one.requires)}
    )


def test_an_interruption_while_costs_are_measured_keeps_the_answer(tmp_path: Path) -> None:
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    runs = bisect(tmp_path / "whole", Training(KERNEL), costs=True).total_runs
    bisector = Bisector(question(tmp_path / "cut", costs=True), Training(KERNEL, stop_after=runs - 2))
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    found = bisector.result(interrupted=True)
    assert found.outcome is BisectOutcome.FIXED
    assert [one.flag for one in found.needed or ()] == [KERNEL]
    assert (tmp_path / "cut" / "out" / "detaudit-recipe.yaml").exists()
    assert [step.purpose for step in found.next_steps] == [Purpose.AUDIT_WITH_RECIPE, Purpose.FIX, Purpose.RESUME]
