"""What it costs to watch the process tree of a run for programs that load a framework, in CPU time of detaudit.

On a machine with many processes of others, each look reads the state of all of them.
"""

import subprocess
import time
from collections.abc import Iterator

from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios
from detaudit.launch.descendants import INTERVAL_S, Descendants

PROCESSES = 1_000
LOOKS = 10
TURNS = 5
GOAL = Goal(10)


def look_s(tree: Descendants) -> float:
    """Return the mean CPU time of a look at the tree of a process."""
    taken = 0.0
    for _ in range(LOOKS):
        time.sleep(INTERVAL_S)
        started = time.process_time()
        tree.look()
        taken += time.process_time() - started
    return taken / LOOKS


def among(others: int, watched: int) -> float:
    """Return the CPU time of a look while so many other processes are there."""
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(others)]
    try:
        tree = Descendants(watched)
        tree.look()
        return look_s(tree)
    finally:
        for other in started:
            other.kill()
            other.wait()


def measure(scale: Scale) -> Iterator[Row]:
    """Yield what a look takes among many processes."""
    many = scale.size(PROCESSES, 20)
    watched = subprocess.Popen(["sleep", "600"])
    try:
        actions = {"few": lambda: among(0, watched.pid), "many": lambda: among(many, watched.pid)}
        turns = in_turn(scale.turns(TURNS), actions)
    finally:
        watched.kill()
        watched.wait()
    share = median(turn["many"] for turn in turns) / INTERVAL_S * 100
    yield Row(
        what=f"a look at the process tree, among {many:,} processes more",
        over="without them",
        ratios=ratios(turns, "many", "few"),
        also=(Figure(share, "% of one core during a run", GOAL),),
    )
