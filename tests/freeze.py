"""Keep what detaudit says of every labeled script, outside the repository, and compare it with what it says later.

    python -m tests.freeze make FOLDER [NAMES] [--only logs,bisect,trace,help]
    python -m tests.freeze compare BEFORE AFTER

``make`` keeps, by script: the event logs and the reports of audits without flags and with recipe ``all``, the order in
which a bisection tried flags and its answer, and the culprit of a trace; and the ``--help`` of each command. What is
there is not made again, so it can be interrupted. ``compare`` prints what differs, without what two runs of the same
code differ in: times, processes, folders, and the bits of a training that is not deterministic. Goldens of reports are
in tests/report/golden/ and need no freezing.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from detaudit.cli import cli
from detaudit.runs.log_text import entries
from tests.corpus.measure import HERE, SCRIPTS

PARTS = ("logs", "bisect", "trace", "help")
RECIPES = ("none", "all")
_CHANGES = {"t", "time", "pid", "ppid", "port", "identity", "program", "environ", "files", "seconds", "started",
            "ended", "host"}  # fmt: skip
"""Keys of lines of event logs whose values no two runs share."""

_REPORTED = ("kind", "verdict", "outcome", "interrupted")
_FLAGS = ("needed", "not_needed")


def labeled() -> list[str]:
    """Return the names of all labeled scripts of the corpus."""
    return sorted(yaml.safe_load((HERE / "labels.yaml").read_text()))


def detaudit(folder: Path, *words: str) -> str:
    """Return what a command prints, in a copy of the folder of the scripts: some of them leave files."""
    project = folder / "project"
    shutil.copytree(SCRIPTS, project, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    command = [sys.executable, "-m", "detaudit", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    shutil.rmtree(project)
    return done.stdout or done.stderr


def make(folder: Path, names: Sequence[str], parts: Sequence[str]) -> None:
    """Keep what is not there yet."""
    for name in ("", *cli.list_commands(click.Context(cli))) if "help" in parts else ():
        kept = folder / "help" / f"{name or 'detaudit'}.txt"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(detaudit(folder, *([name] if name else []), "--help"))
    for number, name in enumerate(names, 1):
        of_script = folder / name
        for part, words in (
            ("logs", ["run", "--full", "--runs", "2", *(word for one in RECIPES for word in ("--recipe", one))]),
            ("bisect", ["bisect"]),
            ("trace", ["trace"]),
        ):
            kept = of_script / f"{part}.json"
            if part not in parts or kept.exists():
                continue
            print(f"{number}/{len(names)} {name}: {part}", flush=True)
            out = of_script / part
            shutil.rmtree(out, ignore_errors=True)  # of an interrupted audit
            out.mkdir(parents=True)
            words = [*words, "--timeout", "600", "--out", str(out / "results"), "--format", "json", "--quiet"]
            text = detaudit(out, *words, f"{name}.py")
            kept.write_text(text)
            if part != "logs":
                shutil.rmtree(out)


def said(folder: Path) -> dict[str, Any]:
    """Return all that is compared of what is kept in a folder, by name."""
    found: dict[str, Any] = {str(path.relative_to(folder)): path.read_text() for path in folder.glob("help/*.txt")}
    for path in sorted(folder.glob("*/*.json")):
        report, name = json.loads(path.read_text()), f"{path.parent.name} {path.stem}"
        found[name] = {key: report[key] for key in _REPORTED if key in report}
        found[name] |= {key: [one["flag"] for one in report[key]] for key in _FLAGS if report.get(key)}
        groups = report.get("groups", ())
        found[f"{name}: recipes in their order"] = [one["recipe"] for one in groups] if path.stem != "trace" else []
        for group in groups if path.stem == "logs" else ():
            recipe = group["recipe"]["name"]
            steady = group["verdict"] == "deterministic"
            found[f"{name}: {recipe}"] = _of_group(group)
            logs = path.parent / "logs" / "results" / "runs" / recipe / "1" / "logs"
            found[f"{name}: {recipe}, event logs"] = sorted(Counter(lines(logs, steady)).items())
        if path.stem == "trace":
            culprit = report.get("culprit") or {}
            found[f"{name}: culprit"] = {key: culprit.get(key) for key in ("file", "line", "cause", "op")}
    return found


def _of_group(group: dict[str, Any]) -> dict[str, Any]:
    difference = group["first_difference"] or {}
    return {
        "verdict": group["verdict"],
        "stages": group["stages"],
        "sources": [(one["line"], one["kind"], one["call"]) for one in group["sources"]],
        "first difference": [difference.get(key) for key in ("rank", "stage")],
    }


def lines(logs: Path, steady: bool) -> Iterator[str]:
    """Yield what is in event logs without what no two runs share; of runs that differ, without their values too."""
    for path in sorted(logs.glob("*.jsonl")):
        for entry in entries(path):
            event = {key: value for key, value in entry.items() if key not in _CHANGES}
            text = json.dumps(event, sort_keys=True)
            yield re.sub(r"/[\w./-]+/", "", text) if steady else f"{event.get('k')}: {', '.join(sorted(event))}"


def compare(before: Path, after: Path) -> int:
    """Print what differs, and return how many parts do."""
    ours, theirs = said(before), said(after)
    differing = [name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]]
    for name in sorted(differing):
        before_, after_ = ours[name], theirs[name]
        if name.endswith("event logs"):
            before_, after_ = ([one for one in a if one not in b] for a, b in ((before_, after_), (after_, before_)))
        print(f"{name}:\n  before: {str(before_)[:2000]}\n  after:  {str(after_)[:2000]}")
    only = sorted(ours.keys() ^ theirs.keys())
    print(f"{len(ours.keys() & theirs.keys())} parts compared, {len(differing)} differ; {len(only)} only on one side")
    return len(differing)


def main() -> int:
    """Make, or compare; the exit status is 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True)
    making = jobs.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("names", nargs="*")
    making.add_argument("--only", default=",".join(PARTS))
    comparing = jobs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.job == "compare":
        return int(compare(options.before, options.after) > 0)
    make(options.folder.resolve(), options.names or labeled(), options.only.split(","))
    return 0


if __name__ == "__main__":
    sys.exit(main())
