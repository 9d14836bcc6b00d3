"""Test on a GPU: ``python -m tests.gpu [--device cuda|cpu]``, in nine minutes; call it again for what is left."""

import argparse
import fnmatch
import os
import sys
from pathlib import Path

from benchmarks.tasks import NoDeviceError, carry_out, device, markdown
from tests.gpu import audits, digests

TITLE = "Tests on a GPU"
OUT = Path("build/gpu")
SECONDS = 500.0


def main() -> int:
    """Return the exit status: 1 if a task found something else than expected, or is left over."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tasks, as patterns; default: all")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="begin no task that would take longer")
    parser.add_argument("--at-once", type=int, default=max(1, len(os.sched_getaffinity(0)) // 3), metavar="N")
    asked = parser.parse_args()
    try:
        where = device(asked.device, asked.seconds)
    except NoDeviceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    patterns = asked.names or ["*"]
    tasks = [
        task
        for task in (*digests.tasks(), *audits.tasks())
        if any(fnmatch.fnmatchcase(task.name, pattern) for pattern in patterns)
    ]
    report = carry_out(TITLE, tasks, where, asked.out, asked.at_once)
    print(markdown(report))
    return int(bool(report.failed or report.left))


if __name__ == "__main__":
    sys.exit(main())
