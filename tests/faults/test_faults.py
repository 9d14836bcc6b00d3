"""A few of the faults of `make test-faults`, and its table."""

from pathlib import Path

import pytest

from tests.faults.__main__ import table
from tests.faults.cases import CASES, FATAL, HARMLESS, UNCERTAIN
from tests.faults.harness import Outcome
from tests.faults.kinds import can_mount, inject

QUICK = (
    "script segv step differing",
    "script close_all_descriptors step differing",
    "script leave_a_child_without_variables end matching",
    "script remove_the_results step matching",
    "script damage_the_logs step differing",
    "auditor TERM 1.9 s matching",
    "storage full disk step differing",
    "together one results folder for two audits before matching",
)


def test_there_are_enough_faults_and_each_exists() -> None:
    from tests.faults import faulty

    assert len(CASES) >= 250
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(hasattr(faulty, name) for name in (*HARMLESS, *FATAL, *UNCERTAIN))


@pytest.mark.full
@pytest.mark.launches
@pytest.mark.parametrize("name", QUICK)
def test_all_holds_after_a_fault(tmp_path: Path, name: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    if case.fault == "full disk" and not can_mount():
        pytest.skip("no file system can be mounted here")
    assert inject(case, tmp_path).problems == ()


def test_the_table_counts_what_did_not_hold() -> None:
    segv = [case for case in CASES if case.fault == "segv" and not case.torch]
    outcomes = [Outcome(case, 125, 1.0, ("a false match",) if case.point == "exit" else ()) for case in segv]
    assert "| script | segv | start, step, end, exit | 8 | 125 | 125 | 6 of 8 |" in table(outcomes)
