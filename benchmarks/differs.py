"""How soon `detaudit run` says that two runs of a training differ, over the time of that training alone.

The training is a CNN on scikit-learn's digits, of more than a minute on the machine that measures. A random number is
added to its input at its first step, at the one in the middle, or at its last. The time is that until a line on stderr
says that two runs differ; if there is none, until the report. What the audit does after that line is interrupted, and
its report has to name the planted step.
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.commands import DETAUDIT, check, script, seconds, steps_in
from benchmarks.rows import Figure, Goal, Row, Scale, in_turn, median, ratios

SCRIPT = "cnn.py"
LENGTH_S = 75
TURNS = 3
GOALS = {"step 1": Goal(0.2), "the step in the middle": Goal(1.65), "the last step": Goal(2.1)}
SAYS_SO = re.compile(r"\b(differs?|diverged?)\b")


def known_s(words: Sequence[str], folder: Path) -> float:
    """Return the seconds until a command says that runs differ; then it is interrupted."""
    started, known, said = time.monotonic(), 0.0, ""
    with (
        (folder / "report").open("w") as report,
        subprocess.Popen(words, cwd=folder, stdout=report, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if not known and SAYS_SO.search(line):
                known = time.monotonic() - started
                process.send_signal(signal.SIGINT)
    check(words, 130 if known else 1, process.returncode, said)
    return known or time.monotonic() - started


def planted_s(steps: int, planted: int, folder: Path) -> float:
    """Return the seconds until a planted difference is known. Raises RuntimeError if another step is named."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        target = [script(SCRIPT), "--out", f"{out}/out", "--", str(steps), str(planted)]
        took = known_s([*DETAUDIT, "run", *target], folder)
        group = json.loads((Path(out) / "out" / "audit.json").read_text())["groups"][0]
    named = {run["first_difference"]["step"] for run in group["runs"] if run["first_difference"]}
    if named != {planted}:
        raise RuntimeError(f"planted at step {planted}, named: {named}")
    return took


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for each step at which a difference is planted."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        steps = steps_in(SCRIPT, LENGTH_S, scale, folder)
        places = {"step 1": 1, "the step in the middle": (steps + 1) // 2, "the last step": steps}
        alone = {"alone": lambda: seconds([sys.executable, script(SCRIPT), str(steps)], folder)}
        planted = {name: lambda at=at: planted_s(steps, at, folder) for name, at in places.items()}
        turns = in_turn(scale.turns(TURNS), {**alone, **planted})
    for name in places:
        yield Row(
            what=f"detaudit run says that runs differ, from {name} on",
            over="one training",
            ratios=ratios(turns, name, "alone"),
            goal=GOALS[name],
            also=(Figure(median(turn["alone"] for turn in turns), "s for one training"),),
        )
