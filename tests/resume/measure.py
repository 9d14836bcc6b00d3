"""Resume every labeled script, and write a page of what was named: ``python -m tests.resume.measure --write FILE``."""

import argparse
import json
import os
import re
import shutil
import subprocess
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
from tests.resume.trainers import TRAINERS

ROOT = Path(__file__).parents[2]
ALL = (*SCRIPTS, *TRAINERS)
FOLDER = ROOT / ".resume"
"""Where results are kept, so that a measurement that was ended goes on."""


class Base:
    """Runs a base uninterrupted, then stops and resumes its scripts, in a folder that has them all."""

    def __init__(self, scripts: Sequence[Script], folder: Path, python: str) -> None:
        self._python = python
        (folder / "train.py").write_text(scripts[0].base, encoding="utf-8")
        for script in scripts:
            (folder / f"{script.file}").write_text(script.code, encoding="utf-8")
        recipe = load_recipe("none", load_catalogue(), devices=(), seed=0, add=(), remove=())
        out = folder / ".detaudit" / "resume"
        self.settings = Settings(
            target=self._target("train.py"),
            recipes=(recipe,),
            runs=2,
            out=out,
            mark=token_hex(4),
            cwd=folder,
            isolate=True,
        )
        self.launcher = LocalLauncher()
        self.audit = Auditor(self.settings, self.launcher).run()

    def report(self, script: Script) -> dict[str, Any]:
        """Return what came of one stop of a script, and the change that restores what it lost."""
        words = self._target(f"{script.file} --resume"), self._target(f"{script.file} {script.stop}")
        stops = stops_of(self.settings, self.launcher, Observer(), self.audit.groups[0], *words)
        assert stops is not None, f"{script.name}: {self.audit.groups[0].verdict}, {self.audit.groups[0].runs}"
        point = stops.once()
        report = {"points": [point], "restored": stops.restored([point])}
        for name in ("stopped", "resumed", "held"):
            shutil.rmtree(self.settings.out / "runs" / name, ignore_errors=True)
        built: dict[str, Any] = msgspec.to_builtins(report)
        return built

    def _target(self, command: str) -> Target:
        script, *arguments = command.split()
        return resolve_target((script,), tuple(arguments), "", self._python)


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


def restored(report: dict[str, Any]) -> str:
    """Return what a change does that restores what was lost."""
    change = report["restored"]
    return "-" if change is None else "matches" if change["first_difference"] is None else "differs later"


def page(results: Sequence[tuple[Script, dict[str, Any]]]) -> str:
    """Return the page of all results."""
    right = sum(not wrong(script, report) for script, report in results)
    alone = sum(not wrong(script, report) and not others(script, report) for script, report in results)
    lossy = [(script, report) for script, report in results if script.lost and "torch.save" in script.base]
    cured, curable = sum(restored(report) == "matches" for _, report in lossy), len(lossy)
    lines = [
        "# Resumed runs: what was lost, and what was named",
        "",
        "Scripts that lose one thing when they are resumed, and controls that lose nothing "
        "(`tests/resume/scripts.py`). "
        "Each is stopped by `--stop` and resumed; `make test-resume` writes this page. Those of trainers and of JAX "
        "(`tests/resume/trainers.py`) need an environment that has these packages: "
        "`python -m tests.resume.measure --python PYTHON`.",
        "",
        f"Right: {right} of {len(results)}; {alone} of them name nothing else. {cured} of {curable} that lose",
        "something in a checkpoint of `torch.save`"
        " match with the change that `resume` prints, which saves and restores it.",
        "",
        "| script | lost | named | what else | values | with the change |",
        "|---|---|---|---|---|---|",
    ]
    measured = {script.name: report for script, report in results}
    for script in ALL:
        if script.name not in measured:
            lines.append(f"| {script.name} | not measured{f': needs {script.needs}' if script.needs else ''} | | | | |")
            continue
        report = measured[script.name]
        label = ", ".join(sorted(kind.value for kind in script.lost)) or "nothing"
        problem = wrong(script, report)
        point = report["points"][0] if report["points"] else {"lost": []}
        shown = next((one for one in point["lost"] if one["what"] in label), None)
        names = ", ".join(f"`{name}`" for name in (shown or {}).get("names", [])[:3])
        lines.append(
            f"| {script.name} | {label} | {'**' + problem + '**' if problem else 'yes' if script.lost else 'matches'} "
            f"| {', '.join(others(script, report)) or '-'} | {names or '-'} | {restored(report)} |"
        )
    return "\n".join(lines) + "\n"


def measure(names: Sequence[str], python: str) -> list[tuple[Script, dict[str, Any]]]:
    """Return the reports on scripts; those that are kept are not made again, nor are those that lack a package."""
    FOLDER.mkdir(exist_ok=True)
    for base in dict.fromkeys(script.base for script in ALL):
        asked = [one for one in ALL if one.base == base and (one.name in names if names else not _kept(one).exists())]
        skipped = [one for one in asked if one.needs and not _has(one.needs, python)]
        for one in skipped:
            print(f"{one.name}: skipped, as {one.needs} is not installed", flush=True)
        if scripts := [one for one in asked if one not in skipped]:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)  # where audits are named from
                runs = Base(scripts, Path(folder).resolve(), python)
                for script in scripts:
                    report = runs.report(script)
                    _kept(script).write_text(json.dumps(report), encoding="utf-8")
                    said = wrong(script, report) or "right", others(script, report), restored(report)
                    print(script.name, *said, sep=": ", flush=True)
            os.chdir(ROOT)
    kept = [script for script in ALL if _kept(script).exists()]
    return [(script, json.loads(_kept(script).read_text(encoding="utf-8"))) for script in kept]


def _has(package: str, python: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def _kept(script: Script) -> Path:
    return FOLDER / f"{script.name}.json"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the scripts")
    options = parser.parse_args()
    written = page(measure(options.names, options.python))
    if options.write:
        options.write.write_text(written, encoding="utf-8")
