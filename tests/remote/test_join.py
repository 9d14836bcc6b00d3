"""The report on runs that came back is that on runs which were done here, and machines are distinguished."""

from pathlib import Path
from unittest import mock

import pytest
from msgspec.structs import replace

from detaudit import store
from detaudit.errors import StorageError
from detaudit.judge.figures import figures
from detaudit.model import Across, Audit, Verdict, exit_code
from detaudit.model.fact import encode
from detaudit.model.figures import NoFigure
from detaudit.model.problems import MachinesRunOnce, RunsMissing
from detaudit.model.stage import Records
from detaudit.model.warnings import LeftoversUnchecked
from detaudit.remote.archive import logs_of
from detaudit.remote.join import Gatherer, join
from detaudit.remote.plan import Plan
from detaudit.remote.storage import open_storage
from detaudit.runs import log_rows
from tests.remote.attempts import attempt, plan, stored

STEPS = 600
"""So many that a training is left in its event log."""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def joined(tmp_path: Path, shared: Path, across: Across = Across.FAIL, name: str = "out") -> Audit:
    out = tmp_path / name
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


def trees(runs: int = 3) -> Plan:
    return plan(runs, records=Records.TREES)


def logs_at(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.rows"))


def test_event_logs_of_runs_that_match_are_not_fetched(tmp_path: Path, shared: Path) -> None:
    for run in (1, 2, 3):
        stored(shared, attempt(trees(), run), steps=STEPS)
    for path in shared.glob("*.logs"):
        path.unlink()
    report = joined(tmp_path, shared)
    assert report.verdict is Verdict.DETERMINISTIC
    assert logs_at(tmp_path / "out") == []
    (found,) = figures(report, tmp_path / "out").groups
    assert found.missing is NoFigure.LOGS_NOT_FETCHED


@pytest.mark.parametrize(
    ("ranks", "fetched"),
    [
        ((("a",), ("a",), ("b",), ("a",)), (1, 3)),
        ((("a", "b"), ("a", "b")), (1,)),
        ((("a", "a"), ("a", "b"), ("a", "b"), ("a", "a")), (1, 2, 3)),
    ],
)
def test_runs_that_differ_have_the_same_report_with_trees(
    tmp_path: Path, shared: Path, ranks: tuple[tuple[str, ...], ...], fetched: tuple[int, ...]
) -> None:
    reports, drawn = [], []
    for made in (plan(len(ranks)), trees(len(ranks))):
        for run, updates in enumerate(ranks, 1):
            stored(shared, attempt(made, run), *updates, steps=STEPS)
        report = joined(tmp_path, shared)
        reports.append(encode(replace(report, ended="")))
        (found,) = figures(report, tmp_path / "out").groups
        drawn.append(found)
        (tmp_path / "out").rename(tmp_path / made.records.value)
        for path in shared.iterdir():
            path.unlink()
    assert reports[0] == reports[1]
    logs = [f"runs/none/{run}/logs/{7 + rank}.0.rows" for run in fetched for rank in range(len(ranks[0]))]
    assert logs_at(tmp_path / "trees") == logs
    assert drawn[1].losses is not None
    named = b'"file":"train.py","line":3' in reports[0]
    assert named == (len(set(ranks)) > 1), "paths in heads are as if the run had been here"


def test_event_logs_that_are_gone_or_not_those_of_the_run_are_named(tmp_path: Path, shared: Path) -> None:
    for run, update in enumerate("aba", 1):
        stored(shared, attempt(trees(), run), update, steps=STEPS)
    path = shared / logs_of(attempt(trees(), 2))
    data, others = path.read_bytes(), (shared / logs_of(attempt(trees(), 1))).read_bytes()
    for name, found, said in (
        ("cut", data[:-1], "is cut"),
        ("other", others, "is changed"),
        ("gone", None, "is not in"),
    ):
        path.unlink()
        if found is not None:
            path.write_bytes(found)
        with pytest.raises(StorageError, match=f"{path.name} .*{said}") as caught:
            joined(tmp_path, shared, name=name)
        assert str(shared) in caught.value.hint
        path.touch()


def test_an_attempt_that_was_lost_before_its_run_was_stored_leaves_nothing_that_counts(
    tmp_path: Path, shared: Path
) -> None:
    stored(shared, attempt(trees(2), 1, "lost"), "other", steps=STEPS).unlink()
    for run, update in ((1, "a"), (2, "b")):
        stored(shared, attempt(trees(2), run), update, steps=STEPS)
    assert len(list(shared.glob("*.logs"))) == 3, "no attempt takes the name of another one's event logs"
    (group,) = joined(tmp_path, shared).groups
    assert group.first_difference is not None
    assert group.first_difference.step == STEPS


def test_trees_of_a_detaudit_that_writes_others_are_no_match(tmp_path: Path, shared: Path) -> None:
    with mock.patch.object(log_rows, "_FORMAT", b"detaudit blocks 9\n"):
        for run in (1, 2, 3):
            stored(shared, attempt(trees(), run), steps=STEPS)
    with pytest.raises(StorageError, match="the trees of run 1 cannot be read") as caught:
        joined(tmp_path, shared)
    assert "Install detaudit 1 " in caught.value.hint
