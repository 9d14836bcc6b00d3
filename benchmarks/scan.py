"""Scan the operations of torch and TensorFlow, and write the tables of docs/ops.md.

``python -m benchmarks.scan --write docs/ops.md`` does both scans in build/, or goes on with them. With ``--from FILE``,
which ``detaudit ops --format json`` printed, only the tables are written; it may be given several times.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from tabulate import tabulate

from detaudit.model.fact import count, duration
from detaudit.model.operations import OpScan
from detaudit.report.operations import HEADINGS, rows

BUILD = Path("build")
FRAMEWORKS = ("torch", "tensorflow")


def scanned(framework: str) -> bytes:
    """Return the report of a scan as JSON; one that was interrupted goes on."""
    out = BUILD / f"ops-{framework}"
    words = ["--resume", str(out)] if out.exists() else ["--framework", framework, "--out", str(out)]
    command = [sys.executable, "-m", "detaudit", "ops", *words, "--format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    return done.stdout


def section(scans: Iterable[OpScan]) -> str:
    """Return what is written about the scans of one framework, which may differ in the types of elements."""
    lines = []
    for one in scans:
        what = f"{one.framework} {one.version} on {one.device} with {count(one.threads, 'thread')}"
        types = " and ".join(one.dtypes)
        took = f"{count(one.operations, 'operation')}, {count(one.cases, 'case')} in {duration(one.wall_s)}"
        lines += [f"{what}, {types}: {took}, begun {one.started[:10]}.", ""]
        if one.interrupted:
            lines += ["This scan was interrupted: some operations were repeated in the first process alone.", ""]
        lines += [tabulate(rows(one.differing), [head.lower() for head in HEADINGS], "github"), ""]
        lines += _list("Match, but the switch raises", [f"`{found.op}`" for found in one.refused])
        lines += _list("Match, and are different with one thread", [f"`{name}`" for name in one.thread_dependent])
        lines += _list("Ended their process", [f"`{found.op}` ({found.dtype})" for found in one.crashed])
        lines += _list("Not repeated", [f"`{found.op}` ({found.dtype}): {found.error}" for found in one.skipped])
    return "\n".join(lines)


def _list(title: str, items: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(items))
    return [f"{title} ({count(len(found), 'operation')}): {', '.join(found)}", ""] if found else []


def written(page: str, framework: str, text: str) -> str:
    """Return the page with the text between the marks of a framework."""
    pattern = rf"(<!-- scan: {framework} -->\n).*?(<!-- end -->)"
    return re.sub(pattern, lambda found: f"{found[1]}\n{text}\n{found[2]}", page, flags=re.DOTALL)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--from", dest="files", type=Path, action="append", default=[])
    options = parser.parse_args()
    reports = [file.read_bytes() for file in options.files] or [scanned(framework) for framework in FRAMEWORKS]
    scans = [msgspec.json.decode(report, type=OpScan) for report in reports]
    page = options.write.read_text()
    for framework in FRAMEWORKS:
        if found := [one for one in scans if one.framework == framework]:
            page = written(page, framework, section(found))
    options.write.write_text(page)


if __name__ == "__main__":
    main()
