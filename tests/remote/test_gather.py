"""Of what lies in a folder, each run counts once."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from detaudit.errors import AuditNotFoundError, UsageError
from detaudit.model.stage import ArchiveFlaw
from detaudit.model.warnings import ArchiveFlawed, ArchivesOfOtherPlans, RunStoredTwice
from detaudit.remote.join import Gathered, Gatherer
from detaudit.remote.storage import open_storage
from tests.remote.attempts import attempt, plan, stored

Gather = Callable[..., Gathered]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def gathered(shared: Path, tmp_path: Path) -> Gather:
    def make(plan_id: str = "", wait_s: float = 0.0, **options: object) -> Gathered:
        into = Path(tempfile.mkdtemp(dir=tmp_path))
        return Gatherer(open_storage(str(shared)), into, plan_id, **options).gather(wait_s)  # type: ignore[arg-type]

    return make


def test_runs_are_taken_in_the_order_of_their_numbers(shared: Path, gathered: Gather) -> None:
    for run in (3, 1):
        stored(shared, attempt(plan(), run))
    found = gathered()
    assert list(found.runs) == [1, 3]
    assert found.warnings == ()
    assert (found.runs[1][1] / "stdout.log").read_text() == "hello\n"


def test_a_copy_and_another_attempt_are_named_and_do_not_count(shared: Path, gathered: Gather) -> None:
    counted = stored(shared, attempt(plan(), 1, "first"))
    stored(shared, attempt(plan(), 1, "first"), name="a copy.detaudit")
    stored(shared, attempt(plan(), 1, "second"), "other", name="0 late.detaudit")
    found = gathered()
    assert found.runs[1][0].id == "first", "that with the name which workers give"
    assert found.warnings == (
        RunStoredTwice(archive="0 late.detaudit", counted=counted.name, is_copy=False),
        RunStoredTwice(archive="a copy.detaudit", counted=counted.name, is_copy=True),
    )


def test_one_that_is_cut_is_named_and_does_not_count(shared: Path, gathered: Gather) -> None:
    stored(shared, attempt(plan(), 1))
    cut = stored(shared, attempt(plan(), 2))
    cut.write_bytes(cut.read_bytes()[:-10])
    found = gathered()
    assert list(found.runs) == [1]
    assert found.warnings == (ArchiveFlawed(archive=cut.name, flaw=ArchiveFlaw.CUT),)


def test_of_two_plans_one_has_to_be_chosen(shared: Path, gathered: Gather) -> None:
    ours, other = plan(), plan(nonce="other")
    stored(shared, attempt(ours, 1))
    foreign = stored(shared, attempt(other, 2))
    with pytest.raises(UsageError, match="2 plans") as caught:
        gathered()
    assert "--plan" in caught.value.hint
    found = gathered(ours.id[:6])
    assert list(found.runs) == [1]
    assert found.warnings == (ArchivesOfOtherPlans(archives=(foreign.name,)),)


def test_a_plan_that_is_known_and_has_no_run(shared: Path, gathered: Gather) -> None:
    stored(shared, attempt(plan(nonce="other"), 1))
    with pytest.raises(AuditNotFoundError, match=plan().id):
        gathered(plan().id, plan=plan())


def test_an_empty_folder_says_what_to_do(gathered: Gather) -> None:
    with pytest.raises(AuditNotFoundError, match="no run") as caught:
        gathered()
    assert "--wait" in caught.value.hint


def test_files_of_others_are_not_touched(shared: Path, gathered: Gather) -> None:
    (shared / "notes.txt").write_text("mine")
    stored(shared, attempt(plan(), 1))
    assert gathered().warnings == ()


def test_it_waits_for_the_others(shared: Path, gathered: Gather, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(shared, attempt(plan(), 1))
    half = stored(shared, attempt(plan(), 2))
    whole = half.read_bytes()
    half.write_bytes(whole[:100])
    said: list[list[int]] = []
    changes: list[Callable[[], object]] = [
        lambda: half.write_bytes(whole),
        lambda: stored(shared, attempt(plan(), 3)),
    ]

    def sleep(_: float) -> None:
        changes.pop(0)()

    monkeypatch.setattr("detaudit.remote.join.time.sleep", sleep)
    found = gathered(wait_s=3600.0, waiting=lambda missing: said.append(list(missing)))
    assert said == [[2, 3], [3]]
    assert list(found.runs) == [1, 2, 3]
    assert found.warnings == (), "the archive was on its way"


def test_the_wait_ends(shared: Path, gathered: Gather, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(shared, attempt(plan(), 1))
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr("detaudit.remote.join.time.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("detaudit.remote.join.time.sleep", lambda _: None)
    assert list(gathered(wait_s=30.0).runs) == [1]


def test_an_interruption_ends_the_wait_and_keeps_what_is_there(
    shared: Path, gathered: Gather, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    stored(shared, attempt(plan(), 1))
    monkeypatch.setattr("detaudit.remote.join.time.sleep", interrupt)
    found = gathered(wait_s=30.0)
    assert (found.interrupted, list(found.runs)) == (True, [1])
