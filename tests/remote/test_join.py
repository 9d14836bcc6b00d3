"""The report on runs that came back is that on runs which were done here, and machines are distinguished."""

from pathlib import Path

import pytest

from detaudit.auditor import store
from detaudit.model import Across, Audit, Verdict, exit_code
from detaudit.model.reasons import MachinesRunOnce, RunsMissing
from detaudit.model.warnings import LeftoversUnchecked
from detaudit.remote.gather import Gatherer
from detaudit.remote.join import join
from detaudit.remote.plan import Plan
from detaudit.remote.storage import open_storage
from tests.remote.attempts import attempt, plan, stored


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def joined(tmp_path: Path, shared: Path, across: Across = Across.FAIL) -> Audit:
    out = tmp_path / "out"
    store.prepare(out)
    (out / "taken").mkdir()
    return join(Gatherer(open_storage(str(shared)), out / "taken").gather(), out, tmp_path, across)


def test_runs_that_match_are_deterministic(tmp_path: Path, shared: Path) -> None:
    for run in (1, 2, 3):
        stored(shared, attempt(plan(), run))
    report = joined(tmp_path, shared)
    (group,) = report.groups
    assert report.verdict is Verdict.DETERMINISTIC
    assert [run.id for run in group.runs] == [1, 2, 3]
    assert group.runs[0].log_dir == "runs/none/1"
    assert group.machines == ()
    assert report.warnings == (LeftoversUnchecked(apart=True),)
    assert store.load(tmp_path / "out") == report
    assert report.environment["frameworks"] == {"torch": "2.13.0"}


def test_a_run_that_is_missing_is_missed(tmp_path: Path, shared: Path) -> None:
    for run in (1, 3):
        stored(shared, attempt(plan(), run))
    (group,) = joined(tmp_path, shared).groups
    assert group.verdict is Verdict.INCONCLUSIVE
    assert group.reason == RunsMissing(finished=2, planned=3)


def test_runs_of_several_recipes(tmp_path: Path, shared: Path) -> None:
    both = plan(2, "n", "none", "seeds")
    for run, update in enumerate(("a", "b", "c", "c"), 1):
        stored(shared, attempt(both, run), update)
    first, second = joined(tmp_path, shared).groups
    assert (first.recipe.name, first.verdict) == ("none", Verdict.NONDETERMINISTIC)
    assert (second.recipe.name, second.verdict) == ("seeds", Verdict.DETERMINISTIC)


def test_lines_of_code_are_named_as_here(tmp_path: Path, shared: Path) -> None:
    for run, update in ((1, "a"), (2, "b")):
        stored(shared, attempt(plan(2), run), update)
    (group,) = joined(tmp_path, shared).groups
    assert [(source.file, source.line) for source in group.sources] == [("train.py", 3)]


def on(shared: Path, *runs: tuple[str, str, str]) -> Plan:
    """Store runs: the machine of each, its processor, and its last weights."""
    made = plan(len(runs))
    for number, (host, cpu, update) in enumerate(runs, 1):
        stored(shared, attempt(made, number, host=host, cpu=cpu), update)
    return made


def test_machines_that_repeat_different_results(tmp_path: Path, shared: Path) -> None:
    on(shared, ("a", "x", "1"), ("b", "x", "1"), ("c", "y", "2"), ("a", "x", "1"), ("b", "x", "1"), ("c", "y", "2"))
    report = joined(tmp_path, shared)
    (group,) = report.groups
    assert report.verdict is Verdict.MACHINE_DEPENDENT
    assert [(one.id, one.host, one.kind, one.runs, one.results) for one in group.machines] == [
        (1, "a", 1, (1, 4), (1,)),
        (2, "b", 1, (2, 5), (1,)),
        (3, "c", 2, (3, 6), (2,)),
    ]
    assert [one.facts for one in group.machines] == [{"cpu": "x"}, {"cpu": "x"}, {"cpu": "y"}]
    assert exit_code(report) == 1


def test_that_may_be_a_warning(tmp_path: Path, shared: Path) -> None:
    on(shared, ("a", "x", "1"), ("c", "y", "2"), ("a", "x", "1"), ("c", "y", "2"))
    assert exit_code(joined(tmp_path, shared, Across.WARN)) == 0


def test_a_machine_that_disagrees_with_itself(tmp_path: Path, shared: Path) -> None:
    on(shared, ("a", "x", "1"), ("b", "y", "1"), ("a", "x", "1"), ("b", "y", "2"))
    assert joined(tmp_path, shared, Across.WARN).verdict is Verdict.NONDETERMINISTIC


def test_one_run_each_on_different_machines_proves_nothing(tmp_path: Path, shared: Path) -> None:
    on(shared, ("a", "x", "1"), ("b", "y", "2"))
    (group,) = joined(tmp_path, shared).groups
    assert (group.verdict, group.reason) == (Verdict.INCONCLUSIVE, MachinesRunOnce(machines=(1, 2)))
