"""Measure what it costs to watch the process tree of a run for programs that load a framework.

In CPU time of detaudit, on a machine with many processes of others: each look reads the state of all of them.
"""

import os
import subprocess
import sys
import time

from detaudit.launch.descendants import INTERVAL_S, Descendants

PROCESSES = 1_000
LOOKS = 50
LIMIT = 0.1


def look_s(watched: int) -> float:
    """Return the mean CPU time of a look at the tree of a process."""
    tree, taken = Descendants(watched), 0.0
    for _ in range(LOOKS):
        time.sleep(INTERVAL_S)
        started = time.process_time()
        tree.look()
        taken += time.process_time() - started
    return taken / LOOKS


def main() -> int:
    """Print the figures, and return the exit status: 1 if the limit is exceeded."""
    alone = look_s(os.getpid())
    others = [subprocess.Popen(["sleep", "600"]) for _ in range(PROCESSES)]
    try:
        among = look_s(others[0].pid)
    finally:
        for other in others:
            other.kill()
            other.wait()
    share = among / INTERVAL_S
    print(f"a look at the process tree: {alone * 1e3:.1f} ms, among {PROCESSES:,} more processes {among * 1e3:.1f} ms")
    print(f"that is {share:.1%} of one core during a run (limit {LIMIT:.0%})")
    return int(share > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
