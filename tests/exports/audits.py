"""Audits as trackers show them."""

from collections.abc import Sequence

from detaudit.model import Status
from detaudit.report.tracked import TrackedAudit, TrackedRun
from tests.words import different

STARTED = "2026-11-23T15:03:10+00:00"
BEGAN = 1_795_446_190_000


def a_run(number: int, *, steps: int = 3, status: Status = Status.OK) -> TrackedRun:
    return TrackedRun(
        recipe="none",
        number=number,
        status=status,
        seconds=1.5,
        params={"recipe": "none", "seed": "0"},
        tags={"status": status, "digest": f"{number}0abcdef"},
        metrics={"sum_of_weights": 241.42266417505016 + number, "steps": steps},
        curves={"loss": [(step, number / step) for step in range(1, steps + 1)]},
    )


def an_audit(
    runs: Sequence[TrackedRun] = (a_run(1), a_run(2)),
    *,
    verdict: str = "nondeterministic",
    note: str = f"**nondeterministic**: {different()}",
    interrupted: bool = False,
    **tags: str,
) -> TrackedAudit:
    return TrackedAudit(
        id="0123456789abcdef",
        script="examples/train.py",
        name="Audit 2026-11-23 15:03:10",
        started=STARTED,
        interrupted=interrupted,
        params={"script": "examples/train.py", "torch": "2.13.0"},
        tags={"verdict": verdict, **tags},
        metrics={"runs": len(runs), "duration_s": 3.0},
        note=note,
        runs=runs,
    )
