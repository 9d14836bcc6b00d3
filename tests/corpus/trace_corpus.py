"""Trace every script whose culprit is labeled, as a user would, and write the table of docs/lab/corpus-traces.md.

Results are kept below .detaudit/, for one state of detaudit and of the script, as in audit_corpus.py.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.corpus.audit_corpus import Kept, detaudit
from tests.corpus.measure import HERE, SCRIPTS

_HEAD = """# Corpus results: trace

Written by `make test-trace` (five repetitions; it can be resumed): `detaudit trace` of each script whose culprit is
known (tests/corpus/culprits.yaml). *Right* is the number of traces that named the labeled line, cause and operation; an
answer that is not the label's is in bold. If instrumentation hides the race, there is no cause: the line is the first
suspect of the narrowed-down answer. *Runs* are all runs, the median over the repetitions.

| script | right | cause | line | operation | runs |
|---|---|---|---|---|---|
"""


class Traced(NamedTuple):
    """One trace: the cause, the text of the line, the operation, whether the race was hidden, and its runs."""

    cause: str
    code: str
    op: str
    hidden: bool
    runs: int


SUSPECT = "suspect: "

RARE = ("--runs", "30")
"""For a race that shows up in fewer than 1 run in 3."""


def trace(script: str, options: Sequence[str]) -> Traced:
    """Return the result of one trace of a script."""
    return traced_in(detaudit("trace", script, (*options, "--no-replay")), script)


def traced_in(audit: dict[str, Any], script: str) -> Traced:
    """Return the result in the JSON of a trace of a script."""
    found, runs, hidden = audit["culprit"], audit["total_runs"], audit["observer_effect"]
    if found is None:
        return Traced("", _narrowed(audit["narrowed_to"], script), "", hidden, runs)
    return Traced(found["cause"], found["code"], (found["operation"] or {}).get("name", ""), hidden, runs)


def _narrowed(between: dict[str, Any] | None, script: str) -> str:
    if between is None:
        return ""
    after, before = (one["stage"] or one["module"] or "the start" for one in (between["after"], between["before"]))
    words = f"between {after} and {before}"
    for suspect in between["suspects"][:1]:
        text = (SCRIPTS / f"{script}.py").read_text().splitlines()[suspect["line"] - 1].strip()
        words += f"; {SUSPECT}{text}"
    return words


def right(label: dict[str, Any], found: Traced) -> bool:
    """Return whether a trace names the labeled line, cause and operation; of a hidden race, the line alone."""
    if found.hidden and not found.cause:
        return any(text in found.code.partition(SUSPECT)[2] for text in label["lines"])
    causes = [label["cause"]] if isinstance(label["cause"], str) else label["cause"]
    op = found.op.rsplit(".", 1)[0] if found.op.startswith("aten.") else found.op
    line = any(text in found.code for text in label["lines"])
    return line and found.cause in causes and ("op" not in label or op.endswith(label["op"]))


def table(seen: dict[str, list[Traced]], labels: dict[str, dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    lines = []
    for script, found in seen.items():
        good = [right(labels[script], one) for one in found]
        rows = dict.fromkeys(zip((one[:3] for one in found), good, strict=True))
        for number, ((cause, code, op), is_right) in enumerate(rows):
            count = f"{sum(good)} of {len(good)}" if number == 0 else ""
            runs = sorted(one.runs for one in found)[len(found) // 2]
            code = code.replace("|", "\\|")
            shown = f"`{code}`" if is_right else f"**`{code or 'nothing'}`**"
            lines.append(f"| {script if number == 0 else ''} | {count} | {cause} | {shown} | {op} | {runs} |")
    total = sum(map(len, seen.values()))
    good_ones = sum(right(labels[script], one) for script, found in seen.items() for one in found)
    return _HEAD + "\n".join(lines) + f"\n\n{good_ones} of {total} traces are right.\n"


def main() -> int:
    """Trace the corpus; the exit status is 1 if an answer misses its label."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all that have a label by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--options", default="", help="further options of detaudit trace, such as '--runs 10'")
    options = parser.parse_args()
    labels = yaml.safe_load((HERE / "culprits.yaml").read_text())
    rare = {name for name, label in yaml.safe_load((HERE / "labels.yaml").read_text()).items() if label.get("rare")}
    kept, seen = Kept("trace", Traced), {}
    for script in options.scripts or labels:
        while len(kept.of(script, options.options)) < options.repeats:
            kept.add(
                script, options.options, trace(script, [*options.options.split(), *(RARE if script in rare else ())])
            )
            last = kept.of(script, options.options)[-1]
            print(script, "right" if right(labels[script], last) else "WRONG", *last, file=sys.stderr, flush=True)
        seen[script] = kept.of(script, options.options)[: options.repeats]
    text = table(seen, labels)
    print(text)
    if options.write:
        options.write.write_text(text)
    return 0 if all(right(labels[script], one) for script, found in seen.items() for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
