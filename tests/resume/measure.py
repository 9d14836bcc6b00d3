"""Resume every labeled script, and write a page of what was named: ``python -m tests.resume.measure --write FILE``."""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec

from detaudit.audit import Auditor
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target, resolve_target
from detaudit.resume import stops_of
from detaudit.runner import Observer
from tests.resume.scripts import SCRIPTS, Script

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".resume"
"""Where results are kept, so that a measurement that was ended goes on."""


class Base:
    """Runs a base uninterrupted, then stops and resumes its scripts, in a folder that has them all."""

    def __init__(self, scripts: Sequence[Script], folder: Path) -> None:
        (folder / "train.py").write_text(scripts[0].base, encoding="utf-8")
        for script in scripts:
            (folder / f"{script.file}").write_text(script.code, encoding="utf-8")
        recipe = load_recipe("none", load_catalogue(), devices=(), seed=0, add=(), remove=())
        out = folder / ".detaudit" / "resume"
        self.settings = Settings(
            target=_target("train.py"), recipes=(recipe,), runs=2, out=out, mark=token_hex(4), cwd=folder, isolate=True
        )
        self.launcher = LocalLauncher()
        self.audit = Auditor(self.settings, self.launcher).run()

    def point(self, script: Script) -> dict[str, Any]:
        """Return what came of one stop of a script."""
        words = (_target(f"{script.file} --resume"), _target(f"{script.file} {script.stop}"))
        stops = stops_of(self.settings, self.launcher, Observer(), self.audit.groups[0], *words)
        assert stops is not None, f"{script.name}: {self.audit.groups[0].verdict}, {self.audit.groups[0].runs}"
        point: dict[str, Any] = msgspec.to_builtins(stops.once())
        for name in ("stopped", "resumed", "held"):
            shutil.rmtree(self.settings.out / "runs" / name, ignore_errors=True)
        return point


def _target(command: str) -> Target:
    script, *arguments = command.split()
    return resolve_target((script,), tuple(arguments), "", sys.executable)


def wrong(script: Script, report: dict[str, Any]) -> str:
    """Return what a report says wrongly of a script, an empty text if all is right."""
    points = [point for point in report["points"] if point["place"] != "before-the-first"]
    statuses = {point["status"] for point in points}
    if not script.lost:
        return "" if statuses == {"matches"} else f"a control: {sorted(statuses)}"
    if statuses != {"differs"}:
        return f"not seen: {sorted(statuses)}"
    (kind,) = script.lost
    for point in points:
        lost = {one["what"]: one for one in point["lost"]}
        if kind.value not in lost:
            return f"named {', '.join(lost) or 'nothing'}"
        one = lost[kind.value]
        if script.named and not any(re.search(script.named, name) for name in one["names"]):
            return f"names {one['names']}"
        if script.missing and not one["missing"]:
            return "does not say that the checkpoint lacks it"
    return ""


def others(script: Script, report: dict[str, Any]) -> list[str]:
    """Return what else was named."""
    named = dict.fromkeys(one["what"] for point in report["points"] for one in point["lost"])
    return [what for what in named if what not in {kind.value for kind in script.lost}]


def page(results: Sequence[tuple[Script, dict[str, Any]]]) -> str:
    """Return the page of all results."""
    right = sum(not wrong(script, report) for script, report in results)
    alone = sum(not wrong(script, report) and not others(script, report) for script, report in results)
    lines = [
        "# Resumed runs: what was lost, and what was named",
        "",
        "Scripts that lose one thing when they are resumed, and controls that lose nothing "
        "(`tests/resume/scripts.py`). "
        "Each is stopped by `--stop` and resumed; `make test-resume` writes this page.",
        "",
        f"Right: {right} of {len(results)}; {alone} of them name nothing else.",
        "",
        "| script | lost | named | what else | first sentence |",
        "|---|---|---|---|---|",
    ]
    for script, report in results:
        label = ", ".join(sorted(kind.value for kind in script.lost)) or "nothing"
        problem = wrong(script, report)
        point = report["points"][0] if report["points"] else {"lost": []}
        shown = next((one for one in point["lost"] if one["what"] in label), None)
        names = ", ".join(f"`{name}`" for name in (shown or {}).get("names", [])[:3])
        lines.append(
            f"| {script.name} | {label} | {'**' + problem + '**' if problem else 'yes' if script.lost else 'matches'} "
            f"| {', '.join(others(script, report)) or '-'} | {names or '-'} |"
        )
    return "\n".join(lines).replace("| first sentence |", "| values |") + "\n"


def measure(names: Sequence[str]) -> list[tuple[Script, dict[str, Any]]]:
    """Return the reports on scripts; those that are kept are not made again."""
    FOLDER.mkdir(exist_ok=True)
    for base in dict.fromkeys(script.base for script in SCRIPTS):
        wanted = [
            one for one in SCRIPTS if one.base == base and (one.name in names if names else not _kept(one).exists())
        ]
        if wanted:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)  # where audits are named from
                runs = Base(wanted, Path(folder).resolve())
                for script in wanted:
                    report = {"points": [runs.point(script)]}
                    _kept(script).write_text(json.dumps(report), encoding="utf-8")
                    print(f"{script.name}: {wrong(script, report) or 'right'} {others(script, report)}", flush=True)
            os.chdir(ROOT)
    kept = [script for script in SCRIPTS if _kept(script).exists()]
    return [(script, json.loads(_kept(script).read_text(encoding="utf-8"))) for script in kept]


def _kept(script: Script) -> Path:
    return FOLDER / f"{script.name}.json"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    written = page(measure(options.names))
    if options.write:
        options.write.write_text(written, encoding="utf-8")
