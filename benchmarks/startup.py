"""Measure how long ``detaudit --help`` takes, and what the recorder adds to the start of a Python without a framework.

The two commands of a pair run in turn, so that a drift in the speed of the machine affects both.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

REPEATS = 25
HELP_LIMIT_S = 0.25
RECORDER_LIMIT_S = 0.010


def seconds(argv: list[str], env: dict[str, str]) -> float:
    """Return the wall time of one process in seconds."""
    started = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> int:
    """Print the medians, and return the exit status: 1 if a limit is exceeded."""
    # Bytecode is on disk, as in an installed package. The first start of each command writes it and is not counted.
    bare_env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as logs:
        recorded_env = {**bare_env, "PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: logs}
        python = [sys.executable, "-c", "pass"]
        seconds(python, recorded_env)
        pairs = [(seconds(python, bare_env), seconds(python, recorded_env)) for _ in range(REPEATS)]
    detaudit = str(Path(sys.executable).with_name("detaudit"))
    seconds([detaudit, "--help"], bare_env)
    help_s = statistics.median(seconds([detaudit, "--help"], bare_env) for _ in range(REPEATS))
    bare_s, added_s = statistics.median(b for b, _ in pairs), statistics.median(r - b for b, r in pairs)
    print(f"detaudit --help: {help_s * 1e3:.0f} ms, {help_s / bare_s:.1f}x a plain Python (limit 250 ms)")
    print(f"plain Python: {bare_s * 1e3:.1f} ms; the recorder adds {added_s * 1e3:.1f} ms (limit 10 ms)")
    return 0 if help_s < HELP_LIMIT_S and added_s < RECORDER_LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
