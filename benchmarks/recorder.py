"""Measure what recording adds to a training step, as the ratio of CPU times of unrecorded and recorded processes."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from trainings import STEP, TRAININGS

from detaudit import wire
from detaudit.launch.environment import BOOTSTRAP

STAGES = {
    "default": wire.DEFAULT_STAGES,
    "all": wire.STAGES,
    "default but state": tuple(stage for stage in wire.DEFAULT_STAGES if stage != "state"),
}


def step_s(code: str, env: dict[str, str]) -> float:
    """Return the CPU time of a step in seconds."""
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def pair(code: str, stages: tuple[str, ...]) -> tuple[float, float]:
    """Return the time of a step, unrecorded and recorded."""
    with tempfile.TemporaryDirectory() as logs:
        recorded = {wire.ENV_LOGS: logs, wire.ENV_STAGES: ",".join(stages), "PYTHONPATH": str(BOOTSTRAP)}
        return step_s(code, dict(os.environ)), step_s(code, {**os.environ, **recorded})


def main() -> None:
    """Print the medians over the pairs, for each training and choice of stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", choices=TRAININGS, help="measure this training only")
    options = parser.parse_args()
    count = options.pairs
    for name, (model, batch, steps, block) in TRAININGS.items():
        if options.only not in (None, name):
            continue
        code = STEP.format(model=model, batch=batch, steps=steps, block=block)
        for chosen, stages in STAGES.items():
            pairs = [pair(code, stages) for _ in range(count)]
            plain = statistics.median(p for p, _ in pairs)
            added = statistics.median(r - p for p, r in pairs)
            ratio = statistics.median(r / p for p, r in pairs)
            print(f"{name}, {chosen} stages: {plain * 1e3:.2f} ms per step, {added * 1e3:+.2f} ms, {ratio:.3f}x")


if __name__ == "__main__":
    main()
