"""Measure which races runs at once hide or show, and write docs/lab/jobs.md: ``make bench-jobs``.

Audits with one run at a time and with two take turns, so that both see the same load of other work.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.corpus.measure import SCRIPTS

RACING = (
    *("torch_setitem_duplicates", "torch_index_put_accumulate", "torch_index_put_two_chunks", "torch_hogwild"),
    *("torch_as_completed", "torch_threads_backward", "torch_queue_loader", "torch_loader_out_of_order"),
)
"""Scripts of the corpus whose runs differ by a race alone."""

CONDITIONS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "--jobs 1": ((), {}),
    "--jobs 2": (("--jobs", "2"), {}),
    "--jobs 2, OMP_NUM_THREADS=2": (("--jobs", "2"), {"OMP_NUM_THREADS": "2"}),
}


HEAD = """\
# Which races runs at once hide

Written by `make bench-jobs` on {cores} cores, while other programs made a load of {load:.1f}.
[running.md](../running.md#several-runs-at-once) says what `--jobs` does, and [benchmarks.md](benchmarks.md) how much
time it saves.

How many runs differ from the first of their audit, of {possible} ({runs} runs an audit), and the verdicts; for one that
is inconclusive, the kind of its reason. The scripts of the corpus differ by a race alone. With `--jobs 2`, each run has
half of the cores, so most frameworks make fewer threads unless OMP_NUM_THREADS says how many.
"""


def audited(folder: Path, script: str, runs: int, words: tuple[str, ...], env: dict[str, str]) -> dict[str, Any]:
    """Return the JSON that an audit of a script in this folder prints. Raises RuntimeError if it prints none."""
    command = [sys.executable, "-m", "detaudit", "run", script, "--runs", str(runs), *words]
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [*command, "--isolate", "--quiet", "--format", "json", "--out", f"{out}/results"],
            cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def races(script: str, runs: int, rounds: int) -> dict[str, tuple[int, set[str]]]:
    """Return, for each condition, how many runs differ from the first of their audit, and the verdicts."""
    found: dict[str, tuple[int, set[str]]] = {name: (0, set()) for name in CONDITIONS}
    with tempfile.TemporaryDirectory() as folder:
        project = shutil.copytree(SCRIPTS, Path(folder) / "project", ignore=shutil.ignore_patterns("__pycache__"))
        for _ in range(rounds):
            for name, (words, env) in CONDITIONS.items():
                (group,) = audited(project, f"{script}.py", runs, words, env)["groups"]
                differing, verdicts = found[name]
                differing += sum(run["first_difference"] is not None for run in group["runs"])
                reason = f" ({group['reason']['kind']})" if group["reason"] else ""
                found[name] = differing, verdicts | {group["verdict"] + reason}
    return found


def page(options: argparse.Namespace) -> str:
    """Return the page."""
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    possible = (options.runs - 1) * options.rounds
    lines = [
        HEAD.format(cores=cores, load=load, possible=possible, **vars(options)),
        f"| script | {' | '.join(f'`{name}`' for name in CONDITIONS)} |",
        "|---" * (len(CONDITIONS) + 1) + "|",
    ]
    for script in options.scripts or RACING:
        of_script = races(script, options.runs, options.rounds)
        cells = [f"{differing}: {', '.join(sorted(verdicts))}" for differing, verdicts in of_script.values()]
        lines.append(f"| {script} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the page, or write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="scripts of the corpus, without .py; several racing ones by default")
    parser.add_argument("--runs", type=int, default=6, help="runs of each audit of a racing script")
    parser.add_argument("--rounds", type=int, default=3, help="audits of each racing script and condition")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = page(options)
    if options.write:
        options.write.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
