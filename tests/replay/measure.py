"""Replay each planted operation several times, and count how many answers are right.

``python -m tests.replay.measure --each N`` prints a row for each case of cases.py; ``--case NAME`` selects some.
"""

import argparse
import tempfile
from pathlib import Path

from tests.replay.cases import CASES, Case
from tests.replay.harness import answer, recorded, replayed


def measure(case: Case, folder: Path, each: int) -> str:
    """Return a row: how many answers were right, of how many, and those that were not."""
    saved = recorded(case, folder / "recorded")
    found = [answer(replayed(saved, folder / str(number))) for number in range(each)]
    wrong = [str(one) for one in found if one != case.answer]
    return f"| {case.name} | {each - len(wrong)} of {each} | {'; '.join(wrong)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=5, help="replays of each case")
    parser.add_argument("--case", action="append", help="name of a case", choices=[one.name for one in CASES])
    options = parser.parse_args()
    print("| case | right | wrong |\n|---|---|---|", flush=True)
    for case in CASES:
        if not options.case or case.name in options.case:
            with tempfile.TemporaryDirectory() as folder:
                print(measure(case, Path(folder), options.each), flush=True)


if __name__ == "__main__":
    main()
