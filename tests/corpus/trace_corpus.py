"""Traces every script whose culprit is known, as a user would, and writes the table of docs/trace.md.

What was traced is kept below .detaudit/, for one state of detaudit and of the script, as in audit_corpus.py.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.corpus.audit_corpus import Kept, detaudit
from tests.corpus.measure import HERE, SCRIPTS

_HEAD = """# The corpus: where detaudit finds that the difference enters

Written by `python -m tests.corpus.trace_corpus --write docs/trace.md`, of which `make test-trace` asks for five
repetitions, and which goes on where it stopped: `detaudit trace` of each script whose culprit is known
(tests/corpus/culprits.yaml). *Right* is how many of the traces named the labelled line, cause and operation; an answer
that is not the label's is bold. Where watching hides the race, there is no cause: the line is the first suspect that
goes with the bounded answer. *Runs* are all launches, the median over the repetitions.

| script | right | cause | line | operation | runs |
|---|---|---|---|---|---|
"""


class Traced(NamedTuple):
    """One trace: the cause, the text of the line, the operation, whether it was hidden, and the launches."""

    cause: str
    code: str
    op: str
    hidden: bool
    launches: int


SUSPECT = "suspect: "

RARE = ("--runs", "30")
"""For a race that shows in fewer than one run of three."""


def trace(script: str, options: Sequence[str]) -> Traced:
    """Return what one trace says of a script, as a user would ask."""
    return told(detaudit("trace", script, options), script)


def told(audit: dict[str, Any], script: str) -> Traced:
    """Return what the JSON of a trace of a script holds."""
    found, launches, hidden = audit["culprit"], audit["launches"], audit["observer_effect"]
    if found is None:
        return Traced("", _bounded(audit["bounded"], script), "", hidden, launches)
    return Traced(found["cause"], found["code"], found["op"] or "", hidden, launches)


def _bounded(between: dict[str, Any] | None, script: str) -> str:
    if between is None:
        return ""
    words = f"between {between['after']} and {between['before']}"
    for suspect in between["suspects"][:1]:
        text = (SCRIPTS / f"{script}.py").read_text().splitlines()[suspect["line"] - 1].strip()
        words += f"; {SUSPECT}{text}"
    return words


def right(label: dict[str, Any], found: Traced) -> bool:
    """Return whether a trace names the labelled line, cause and operation; where it is hidden, the line alone."""
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
            runs = sorted(one.launches for one in found)[len(found) // 2]
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
