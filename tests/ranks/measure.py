"""Plant faults in one rank of distributed trainings, and count how many reports name the rank, the stage and the step.

``python -m tests.ranks.measure --each N LAUNCHER:RANKS…`` prints a row for each launcher and number of ranks.
"""

import argparse
import tempfile
from pathlib import Path

from tests.ranks import planted


def measure(folder: Path, launcher: str, ranks: int, each: int, python: str) -> str:
    """Return a row: how many faults were named rightly, and that a run without one matches, of how many."""
    faults = [*planted.faults(f"{launcher} {ranks}", planted.FAULTS, ranks, each), planted.NO_FAULT]
    command = [*planted.launcher(launcher, ranks, python), "train.py"]
    found = list(planted.named(planted.audit(folder / "job", command, faults, "--stages", "all")))
    wrong = [f"{fault} was {one}" for fault, one in zip(faults, found, strict=True) if one != fault.expected]
    return f"| {launcher} | {ranks} | {len(faults) - len(wrong)} of {len(faults)} | {'; '.join(wrong)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=1, help="faults in each stage")
    parser.add_argument("--python", default="python", help="interpreter of the ranks")
    parser.add_argument("jobs", nargs="+", metavar="LAUNCHER:RANKS")
    options = parser.parse_args()
    print("| launcher | ranks | right | wrong |\n|---|---|---|---|", flush=True)
    for job in options.jobs:
        name, ranks = job.split(":")
        with tempfile.TemporaryDirectory() as folder:
            print(measure(Path(folder), name, int(ranks), options.each, options.python), flush=True)


if __name__ == "__main__":
    main()
