"""Fix every script whose culprit an edit can fix, as a user would, and write the table of docs/lab/corpus-fixes.md.

Results are kept below .detaudit/, for one state of detaudit and of the script, as in audit_corpus.py.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from detaudit.config.flags import load_catalogue
from tests.corpus.audit_corpus import Kept, detaudit
from tests.corpus.measure import HERE

_HEAD = """# Corpus results: fix

Written by `make test-corpus-fixes` (it can be resumed): `detaudit fix` of scripts whose culprit
(tests/corpus/culprits.yaml) an edit can fix. *Right* is the number of times that runs matched with the changes, and
each change is one of a labeled line, a setting for a labeled cause, or a flag of a labeled answer
(tests/corpus/answers.yaml): the culprit of a script with several causes is the first of them. *Runs* are all runs, the
median over the repetitions.

| script | right | changes | runs |
|---|---|---|---|
"""

_TIMES = """
## Time

`detaudit fix`, `bisect` and `trace` of the same script, one after the other. The bound is the bisection and one trace
for each change. Seconds are those of whole commands on two cores, one other command beside them; runs say more.

| script | fix | bisect | trace | changes | bound |
|---|---|---|---|---|---|
"""

SCRIPTS = (
    "numpy_default_rng", "python_unseeded", "python_clock_seed", "python_random_instance", "python_seed_too_late",
    "python_set_order", "python_hash_split", "torch_generator_seed", "torch_as_completed", "numpy_empty",
    "torch_empty_buffer", "torch_index_put_accumulate", "torch_mixup_unseeded", "torch_pool_unordered",
    "torch_loader_default_rng", "torch_loader_out_of_order", "python_id_order", "torch_race_and_rng",
    "torch_three_causes", "sklearn_forest_on_encoder",
)  # fmt: skip
"""Scripts whose culprit an edit can fix, fast ones first."""

TIMED = (
    "numpy_default_rng",
    "python_set_order",
    "torch_index_put_accumulate",
    "torch_race_and_rng",
    "torch_three_causes",
)
"""Scripts of which fix is compared with a bisection and traces: one cause each of three kinds, and several."""


class Fixed(NamedTuple):
    """One fix: its verdict, each change as old and new text and its flag, and its runs."""

    verdict: str
    changes: list[list[str]]
    runs: int


class Timed(NamedTuple):
    """Runs and seconds of fix, bisect and trace, and the changes of fix."""

    runs: list[int]
    seconds: list[float]
    changes: int


def fix(script: str) -> Fixed:
    """Return the result of one fix of a script."""
    report = detaudit("fix", script, ())
    if report["variables"]:
        return Fixed("nondeterministic", [], report["total_runs"])
    changes = [["\n".join(one["old"]), "\n".join(one["new"]).strip(), one["flag"]] for one in report["hunks"]]
    return Fixed(report["verdict"], changes, report["total_runs"])


class Right:
    """Judges fixes by the labels of lines, of causes and of the flags that a bisection may answer."""

    def __init__(self) -> None:
        self._labels = yaml.safe_load((HERE / "culprits.yaml").read_text())
        self._answers = yaml.safe_load((HERE / "answers.yaml").read_text())
        self._catalogue = load_catalogue()

    def __call__(self, script: str, fixed: Fixed) -> bool:
        """Return whether runs match, and each change is right."""
        label = self._labels[script]
        causes = {label["cause"]} if isinstance(label["cause"], str) else {*label["cause"]}
        flags = {flag for answer in self._answers.get(script) or () for flag in answer}
        settings = {self._catalogue.get(flag).by_hand for flag in flags}
        return fixed.verdict == "deterministic" and all(
            any(text in old for text in label["lines"])
            or flag in flags
            or (flag and causes & {*map(str, self._catalogue.get(flag).causes)})
            or {old, new} <= {"", *settings}  # such a setting moves
            for old, new, flag in fixed.changes
        )


def timed(script: str) -> Timed:
    """Run the three commands in turn."""
    runs, seconds, changes = list[int](), list[float](), 0
    for verb in ("fix", "bisect", "trace"):
        began = time.monotonic()
        report = detaudit(verb, script, ())
        seconds.append(round(time.monotonic() - began))
        runs.append(report["total_runs"])
        changes = len(report["hunks"]) if verb == "fix" else changes
    return Timed(runs, seconds, changes)


def table(seen: dict[str, list[Fixed]], right: Right, times: dict[str, Timed]) -> str:
    """Return the results as Markdown."""
    lines = list[str]()
    for script, fixes in seen.items():
        good = [right(script, one) for one in fixes]
        shown = dict.fromkeys("; ".join(map(_shown, one.changes)) or "nothing" for one in fixes)
        runs = sorted(one.runs for one in fixes)[len(fixes) // 2]
        lines.append(f"| {script} | {sum(good)} of {len(good)} | {' or '.join(shown)} | {runs} |")
    total = sum(map(len, seen.values()))
    good_ones = sum(right(script, one) for script, fixes in seen.items() for one in fixes)
    text = (
        _HEAD
        + "\n".join(lines)
        + f"\n\n{good_ones} of {total} fixes are right; {len(seen)} of {len(SCRIPTS)} scripts are measured.\n"
    )
    rows = []
    for script, one in times.items():
        cells = [f"{runs} runs, {seconds:.0f} s" for runs, seconds in zip(one.runs, one.seconds, strict=True)]
        bound = [numbers[1] + max(1, one.changes) * numbers[2] for numbers in (one.runs, one.seconds)]
        rows.append(f"| {script} | {' | '.join(cells)} | {one.changes} | {bound[0]:.0f} runs, {bound[1]:.0f} s |")
    return text + (_TIMES + "\n".join(rows) + "\n" if rows else "")


def _shown(change: Sequence[str]) -> str:
    old, new, _ = change
    return f"`{new}`" if new else f"no `{old}` below"


def main() -> int:
    """Fix the corpus; the exit status is 1 if a fix misses its label."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all that an edit can fix by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-times", action="store_true", help="do not measure what is not known of the time")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    right, kept, seen = Right(), Kept("fix", Fixed), dict[str, list[Fixed]]()
    for script in options.scripts or SCRIPTS:
        while len(kept.of(script, "")) < options.repeats:
            kept.add(script, "", fix(script))
            print(script, *kept.of(script, "")[-1], file=sys.stderr, flush=True)
        seen[script] = kept.of(script, "")[: options.repeats]
    times = measured_times([one for one in TIMED if one in seen], measure=not options.no_times)
    text = table(seen, right, times)
    print(text)
    if options.write:
        options.write.write_text(text)
    return 0 if all(right(one, fixed) for one in seen for fixed in seen[one]) else 1


def measured_times(scripts: Sequence[str], measure: bool) -> dict[str, Timed]:
    """Return what is known of the time of these scripts, and if they are to be measured, of all of them."""
    kept = Kept("fix-times", Timed)
    for script in scripts:
        if measure and not kept.of(script, ""):
            kept.add(script, "", timed(script))
            print(script, *kept.of(script, "")[-1], file=sys.stderr, flush=True)
    return {script: kept.of(script, "")[-1] for script in scripts if kept.of(script, "")}


if __name__ == "__main__":
    sys.exit(main())
