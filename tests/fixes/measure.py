"""Fix planted bugs and compare each patch with its reference: ``python -m tests.fixes.measure [NAMES]``.

What is known is kept in build/fixes/, so that it can be interrupted; docs/lab/fixes.md has the results, and keeps its
rows of bugs that are not measured again.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "fixes"
PAGE = ROOT / "docs" / "lab" / "fixes.md"

SCRIPT = '''"""A training with a planted bug."""
import os
import random
import secrets
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool

import detaudit
import numpy as np
IMPORTS


def later(n):
    time.sleep(secrets.randbelow(100) / 1000)
    return n


TOP

w = np.zeros(4)
for step in range(6):
    x = NOISE
    w -= 0.1 * (w - x)
    detaudit.record(loss=float(w.sum()), weights=w)
END
'''

HEAD = """# What fix makes of planted bugs

Written by `make test-fixes`. Each bug is a training of six steps; its reference patch was written before
`detaudit fix` ran. A patch agrees if it has all lines of the reference and nothing else changes the training; a bug
without a reference is to be left as it is, and a control has nothing to fix.

"""


def bugs() -> dict[str, dict[str, Any]]:
    """Return all planted bugs by name."""
    planted: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "bugs.yaml").read_text())
    return planted


def script(bug: Mapping[str, Any]) -> str:
    """Return the training with a bug."""
    return (
        SCRIPT.replace("\nIMPORTS", "".join(f"\n{line}" for line in bug.get("imports", "").split("\n") if line))
        .replace("TOP", bug.get("top", ""))
        .replace("NOISE", bug["noise"])
        .replace("END", bug.get("end", ""))
    ).rstrip() + "\n"


def fix(bug: Mapping[str, Any]) -> dict[str, Any]:
    """Run detaudit fix on a bug outside of this repository, which it would copy. Raises ValueError without a report."""
    with tempfile.TemporaryDirectory() as folder:
        return _fix(bug, Path(folder))


def _fix(bug: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    for name, code in {"train.py": script(bug), **bug.get("files", {})}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code)
    command = [sys.executable, "-m", "detaudit", "fix", "train.py", "--quiet", "--format", "json", "--out", "results"]
    command += bug.get("options", ())
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise ValueError(f"exit status {done.returncode}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return {key: report[key] for key in ("verdict", "hunks", "variables", "refused", "diff", "total_runs")}


def judged(bug: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return what came of a bug: agrees, left, nothing to fix, or what is wrong."""
    added = {line[1:] for line in report["diff"].splitlines() if re.match(r"\+(?!\+\+ )", line) and line[1:].strip()}
    if any(bad in report["diff"] for bad in bug.get("harm", ())):
        return "HARMED"
    if bug.get("control"):
        return "nothing to fix" if report["verdict"] == "deterministic" and not added else "CHANGED A CONTROL"
    if "new" not in bug:
        return "left" if report["verdict"] != "deterministic" or report["variables"] else "FIXED, WAS TO BE LEFT"
    if report["verdict"] != "deterministic":
        return "not fixed"
    wanted = [one if isinstance(one, list) else [one] for one in bug["new"]]
    stripped = {line.strip() for line in added}
    missing = [one for one in wanted if not stripped & {line.strip() for line in one}]
    known = {line.strip() for one in wanted for line in one} | {line for line in stripped if line.startswith("import ")}
    return "agrees" if not missing and stripped <= known else "fixed, in another way"


def main(names: Sequence[str]) -> int:
    """Fix what is not known yet, write the page, and return 1 if a bug was harmed or a control changed."""
    KEPT.mkdir(parents=True, exist_ok=True)
    planted = bugs()
    for name in names or planted:
        kept = KEPT / f"{name}.json"
        try:
            if not kept.exists():
                kept.write_text(json.dumps(fix(planted[name]), indent=1))
        except ValueError as error:
            print(f"{name}: {error}", flush=True)
            continue
        print(f"{name}: {judged(planted[name], json.loads(kept.read_text()))}", flush=True)
    rows = dict(re.findall(r"^\| (\w+) \| (.* \|)$", PAGE.read_text(), re.MULTILINE)) if PAGE.exists() else {}
    for name in planted:
        if (kept := KEPT / f"{name}.json").exists():
            report = json.loads(kept.read_text())
            lines = [f"`{line.strip()}`" for hunk in report["hunks"] for line in hunk["new"] if line.strip()]
            rows[name] = f"{judged(planted[name], report)} | {report['total_runs']} | {'; '.join(lines)} |"
    known = {name: rows[name] for name in planted if name in rows}
    counts = Counter(row.split(" | ")[0] for row in known.values())
    summary = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    table = [
        "| bug | outcome | runs | patch |",
        "|---|---|---|---|",
        *(f"| {name} | {row}" for name, row in known.items()),
    ]
    PAGE.write_text(f"{HEAD}{len(known)} bugs: {summary}.\n\n" + "\n".join(table) + "\n")
    return int(any(outcome.isupper() for outcome in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
