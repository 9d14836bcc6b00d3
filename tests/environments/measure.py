"""Compare pairs of environments: ``python -m tests.environments.measure [NAMES]``. It needs uv, and a package index.

What is known is kept in build/environments/, so that it can be interrupted; docs/lab/environments.md has the results.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "environments"
PAGE = ROOT / "docs" / "lab" / "environments.md"

HEAD = """# What compare says of pairs of environments

Written by `make test-environments`. Each pair is one script and two environments: two files of requirements, or two
Pythons. The expected answer was written before detaudit ran; of pairs of NumPy alone, from digests of the variables of
the scripts, without detaudit. Of pairs that differ, the line or the fit where the environments part counts too, and the
package it belongs to.

"""


def pairs() -> dict[str, dict[str, Any]]:
    """Return all pairs by name."""
    table: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "pairs.yaml").read_text())
    return table


def wheel(folder: Path, name: str, text: str, version: str = "1.0") -> Path:
    """Write a wheel of a package with one module into a folder, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}\n")
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"])
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content)
    return file


def requirements(folder: Path, side: str, packages: Sequence[str]) -> str:
    """Write the requirements of a side, and return the name of their file."""
    if any(one.startswith("small==") for one in packages):
        factor = "1 / 3" if side == "a" else "0.333333333333"
        wheel(folder / f"wheels-{side}", "small", f"def scaled(x):\n    return x * ({factor})\n")
        packages = [f"--find-links ./wheels-{side}", *packages]
    (folder / f"{side}.txt").write_text("".join(f"{one}\n" for one in packages))
    return f"{side}.txt"


def environment(target: Path) -> Path:
    """Make an environment on top of the packages of this one, and return its own folder of packages."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", target], check=True)
    own = next(target.glob("lib/python*/site-packages"))
    (own / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    return own


def over_this(folder: Path, side: str, packages: Sequence[str]) -> str:
    """Return the Python of a new environment with these packages on top of those of this one."""
    target = folder.parent / f"{folder.name}-{side}"
    environment(target)
    python = str(target / "bin" / "python")
    if packages:
        subprocess.run(["uv", "pip", "install", "--quiet", "--no-deps", "--python", python, *packages], check=True)
    return python


def compared(pair: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run detaudit on a pair, and return its report."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)  # runs start from copies of this
    script = f"{pair['script']}.py"
    shutil.copy(HERE / "scripts" / script, folder / script)
    make, option = (over_this, "--python") if pair.get("over") else (requirements, "--requirements")
    words = [word for side in "ab" for word in (option, make(folder, side, pair[side]))]
    words += ["--artifact", "w.npy"] if "np.save" in (folder / script).read_text() else []
    command = [sys.executable, "-m", "detaudit", "compare", script, *words]
    command += ["--trace", "--runs", "2", "--quiet", "--format", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    shutil.rmtree(folder)
    kept = ("verdict", "doubts", "parting", "first_difference", "environment_changes", "warnings")
    return {"exit": done.returncode, **{key: report[key] for key in kept}}


def part(report: Mapping[str, Any]) -> str:
    """Return the line where the environments part, else the operation, ``""`` if neither is known."""
    place = (report["parting"] or {}).get("a") or {}
    return f"{place['file']}:{place['line']}" if place.get("file") else str(place.get("operation", ""))


def judged(pair: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return ``right``, or what is wrong."""
    status = {"identical": 0, "different": 1, "inconclusive": 125}[pair["says"]]
    if (report["verdict"], report["exit"]) != (pair["says"], status):
        return f"WRONG: {report['verdict']}"
    if pair["says"] != "different":
        return "right"
    package = (report["parting"] or {}).get("package") or {}
    if part(report) != pair["part"] or package.get("name", "") != (pair["package"] or ""):
        return f"PARTS ELSEWHERE: {part(report)}, {package.get('name')}"
    requires = [one["name"] for one in package["requires"]]
    return "right" if "requires" not in pair or requires == pair["requires"] else f"REQUIRES: {requires}"


def row(name: str, pair: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return the row of a pair in the table."""
    changes = ", ".join(f"{one['name']} {one['a'] or '-'} → {one['b'] or '-'}" for one in report["environment_changes"])
    package = (report["parting"] or {}).get("package") or {}
    where = f"{part(report)} `{report['parting']['a']['operation']}`" if report["parting"] else ""
    belongs = (package.get("name") or "unknown") if report["parting"] else ""
    belongs += "".join(f" (same in both; requires {one['name']})" for one in package.get("requires", ()))
    return f"| {name} | {pair['script']} | {changes} | {pair['says']} | {judged(pair, report)} | {where} | {belongs} |"


def main(names: Sequence[str]) -> int:
    """Compare what is not known yet, write the page, and return 1 if an answer is wrong."""
    os.environ.setdefault("DETAUDIT_CACHE", str(KEPT / "cache"))
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    KEPT.mkdir(parents=True, exist_ok=True)
    table = pairs()
    for name in names or table:
        kept = KEPT / f"{name}.json"
        if not kept.exists():
            kept.write_text(json.dumps(compared(table[name], KEPT / "work" / name), indent=1))
        print(f"{name}: {judged(table[name], json.loads(kept.read_text()))}", flush=True)
    reports = {
        name: json.loads((KEPT / f"{name}.json").read_text()) for name in table if (KEPT / f"{name}.json").exists()
    }
    rows = [row(name, table[name], report) for name, report in reports.items()]
    right = sum(judged(table[name], report) == "right" for name, report in reports.items())
    head = "| pair | script | what differs | expected | detaudit | the environments part at | package |"
    page = [head, "|---|---|---|---|---|---|---|", *rows]
    PAGE.write_text(f"{HEAD}{len(reports)} pairs, {right} right.\n\n" + "\n".join(page) + "\n")
    return int(right < len(reports))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
