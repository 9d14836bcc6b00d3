"""Audit equal trainings that log and show progress in many ways: whatever is not deterministic is a false alarm.

Each script is audited with cold caches, with warm ones, and with --isolate. Results are kept as those of
tests/results/audit.py.

    python -m tests.zoo.audit [NAMES] [--runs 3] [--cache cold|warm|isolated] [--write FILE]
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.results.audit import CACHES, Audited, arguments, audit_all

SCRIPTS = Path(__file__).parent / "scripts"

_HEAD = """# Ways to log and to show progress

Written by `make test-zoo`: equal trainings, audited with `--runs {runs}` and without `--ignore`. Each must be judged
deterministic (D): inconclusive (?) and nondeterministic (N) are false alarms, ! is an audit that gave no report.
*Cold* and *warm* are the caches of the first run, *isolated* is with `--isolate`.

"""


def table(audits: Mapping[str, Mapping[str, Audited]], runs: int) -> str:
    """Return the results, by cache and by script, as Markdown."""
    names = list(dict.fromkeys(name for found in audits.values() for name in found))
    judged = [one for found in audits.values() for one in found.values()]
    alarms = sum(one.letter != "D" for one in judged)
    lines = [f"{len(names)} scripts, {len(judged)} audits, {alarms} false alarms.", ""]
    lines += [f"| script | {' | '.join(audits)} | named |", f"|---|{':-:|' * len(audits)}---|"]
    for name in names:
        found = [audits[cache].get(name) for cache in audits]
        letters = ["" if one is None else one.letter if one.letter == "D" else f"**{one.letter}**" for one in found]
        wrong = [one for one in found if one is not None and one.letter != "D"]
        shown = (wrong[0].problem or next(iter(wrong[0].named), "")) if wrong else ""
        shown = shown.replace("|", "\\|").replace("`", "'")[:100]
        lines.append(f"| {name} | {' | '.join(letters)} | {f'`{shown}`' if shown else ''} |")
    return _HEAD.format(runs=runs) + "\n".join(lines) + "\n"


def main() -> int:
    """Audit the scripts; the exit status is 1 if there is a false alarm."""
    parser = arguments(__doc__)
    parser.set_defaults(cache=None)
    options = parser.parse_args()
    names = options.scripts or sorted(path.stem for path in SCRIPTS.glob("*.py"))
    labels = {name: {"verdict": "D", "class": "zoo"} for name in names}
    caches = [options.cache] if options.cache else CACHES
    audits = {cache: audit_all(names, SCRIPTS, labels, options.runs, cache) for cache in caches}
    print(table(audits, options.runs))
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(table(audits, options.runs))
    return 0 if all(one.letter == "D" for found in audits.values() for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
