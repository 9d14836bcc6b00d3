"""Inject all faults and write docs/lab/faults.md: ``python -m tests.faults --write docs/lab/faults.md``."""

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.cases import CASES, Case
from tests.faults.harness import Outcome
from tests.faults.kinds import can_mount, inject

HEAD = """# Faults

What `make test-faults` did to real audits, {total} times, and what followed. Each audit has two runs of a small
training; *matching* runs are seeded, *differing* ones are not. After each fault this must hold: the exit status is one
of those that are right; no difference is called a match; the report or the error says why; what is kept in the results
folder is what was printed; no process, no temporary file and no copy is left; and there is no traceback.

`start` is before the first step, `step` after the second of four, `end` after the last, `exit` when Python ends. For
the auditor, the point is the time after which it gets the signal.

| what | fault | points | audits | exit status: matching | exit status: differing | all holds |
|---|---|---|---:|---|---|---|
"""


def main() -> int:
    """Inject the faults, print each that does not hold, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="write a table to this file")
    parser.add_argument("--only", default="", help="only cases whose names contain this")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    if not can_mount():
        print("no file system can be mounted here: full and read-only ones are left out")
        cases = [case for case in cases if case.fault not in ("full disk", "read-only folder")]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.workers) as pool:
        places = [Path(folder, str(number)) for number in range(len(cases))]
        outcomes = []
        for outcome in pool.map(inject, cases, places):
            outcomes.append(outcome)
            state = "; ".join(outcome.problems) or "holds"
            print(
                f"{len(outcomes)}/{len(cases)} {outcome.case.name}: {outcome.code}, {outcome.seconds:.1f} s, {state}",
                flush=True,
            )
    if options.write:
        options.write.write_text(table(outcomes))
    failed = [outcome for outcome in outcomes if outcome.problems]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} hold")
    return 1 if failed else 0


def table(outcomes: list[Outcome]) -> str:
    """Return the table: a row for each fault."""
    rows: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        rows.setdefault((outcome.case.kind, outcome.case.fault), []).append(outcome)
    lines = []
    for (kind, fault), found in rows.items():
        points = ", ".join(dict.fromkeys(_point(one.case) for one in found))
        cells = [_codes(found, seeded=True), _codes(found, seeded=False)]
        holds = sum(not one.problems for one in found)
        shown = fault.replace("_", " ")
        lines.append(
            f"| {kind} | {shown} | {points} | {len(found)} | {cells[0]} | {cells[1]} | {holds} of {len(found)} |"
        )
    holds = sum(not one.problems for one in outcomes)
    end = f"\nAll holds after {holds} of {len(outcomes)}.\n"
    return HEAD.format(total=len(outcomes)) + "\n".join(lines) + "\n" + end


def _point(case: Case) -> str:
    return f"{case.point} (torch)" if case.torch else case.point


def _codes(found: list[Outcome], *, seeded: bool) -> str:
    counts = Counter(one.code for one in found if one.case.seeded is seeded)
    return (
        ", ".join(f"{code} ({count})" if len(counts) > 1 else str(code) for code, count in sorted(counts.items()))
        or "-"
    )


if __name__ == "__main__":
    sys.exit(main())
