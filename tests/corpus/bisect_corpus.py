"""Bisect every script whose needed flags are labeled, and write the table of docs/lab/corpus-bisections.md.

Results are kept below .detaudit/, for one state of detaudit and of the script, as in audit_corpus.py.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.corpus.audit_corpus import Kept, detaudit
from tests.corpus.measure import HERE

_HEAD = """# Corpus results: bisect

Written by `make test-bisect` (five repetitions; it can be resumed): `detaudit bisect` of each script whose needed flags
are known (tests/corpus/answers.yaml). *Answer* is the minimal set with the flags that it requires, in bold if it is not
one of the label's sets. *Runs* are all runs, *proof* those of the proof among them. *Search* is the time of all other
runs, relative to a run without flags (medians over the repetitions).

| script | repetitions | answer | runs | proof | search |
|---|---|---|---|---|---|
"""


class Found(NamedTuple):
    """One bisection: the flags, its runs, those of the proof, and the time of the others, in runs without flags."""

    flags: list[str] | None
    runs: int
    proof: int
    search: float


def bisect(script: str, options: Sequence[str]) -> Found:
    """Return the result of one bisection of a script."""
    return found_in(detaudit("bisect", script, options))


def found_in(audit: dict[str, Any]) -> Found:
    """Return the result in the JSON of a bisection."""
    needed = audit["needed"]
    flags = None if needed is None else sorted({f for one in needed for f in (one["flag"], *one["requires"])})
    first = audit["groups"][0]["runs"]
    bare = statistics.median(run["wall_s"] for run in first if run["status"] == "ok")
    proven = [group for group in audit["groups"] if sorted(group["recipe"]["flags"]) == flags]
    proof = [run for group in proven for run in group["runs"]]
    total = sum(run["wall_s"] for group in audit["groups"] for run in group["runs"])
    return Found(flags, audit["total_runs"], len(proof), round((total - sum(run["wall_s"] for run in proof)) / bare, 2))


def right(answers: Sequence[Sequence[str]], found: Found) -> bool:
    """Return whether the answer is one of the label's."""
    return found.flags is None if not answers else found.flags in [sorted(answer) for answer in answers]


def table(seen: dict[str, list[Found]], answers: dict[str, list[list[str]]]) -> str:
    """Return the results as Markdown."""
    lines, medians = [], []
    for script, all_found in seen.items():
        texts = dict.fromkeys(_text(found, right(answers[script], found)) for found in all_found)
        runs, proof, search = (statistics.median(column) for column in list(zip(*all_found, strict=True))[1:])
        medians.append(search)
        lines.append(f"| {script} | {len(all_found)} | {'; '.join(texts)} | {runs:g} | {proof:g} | {search:.1f} |")
    wrong = sum(not right(answers[script], found) for script, all_found in seen.items() for found in all_found)
    total = sum(map(len, seen.values()))
    median = statistics.median(medians)
    foot = f"{total - wrong} of {total} answers are right. The median search took the time of {median:.1f} runs."
    return _HEAD + "\n".join(lines) + f"\n\n{foot}\n"


def _text(found: Found, is_right: bool) -> str:
    words = "not fixed" if found.flags is None else " ".join(found.flags) or "no flag is needed"
    return words if is_right else f"**{words}**"


def main() -> int:
    """Bisect the corpus; the exit status is 1 if an answer misses its label."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all that have a label by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rare-repeats", type=int, default=10)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--options", default="", help="further options of detaudit bisect, such as '--confirm 3'")
    options = parser.parse_args()
    answers = yaml.safe_load((HERE / "answers.yaml").read_text())
    labels = yaml.safe_load((HERE / "labels.yaml").read_text())
    kept, seen = Kept("bisect", Found), {}
    for script in options.scripts or answers:
        repeats = options.rare_repeats if labels[script].get("rare") else options.repeats
        while len(kept.of(script, options.options)) < repeats:
            kept.add(script, options.options, bisect(script, options.options.split()))
            print(script, *kept.of(script, options.options)[-1], file=sys.stderr, flush=True)
        seen[script] = kept.of(script, options.options)[:repeats]
    text = table(seen, answers)
    print(text)
    if options.write:
        options.write.write_text(text)
    return 0 if all(right(answers[script], found) for script, all_ in seen.items() for found in all_) else 1


if __name__ == "__main__":
    sys.exit(main())
