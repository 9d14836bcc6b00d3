"""Run each script twice without detaudit, look at what leaves it, and write measured.yaml.

Twice in a fresh folder at the same path (``fresh``), and where it matters also where the first run left its files
(``again``). This module knows nothing of detaudit; labels.yaml must agree with what it writes (test_labels.py).
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
MEASURED = HERE / "measured.yaml"
NET = SCRIPTS / "net.py"
KEEPS_STATE = {"appended", "left-behind"}


def fingerprint(script: Path) -> str:
    """Return what changes when a script is edited: it must be measured again then."""
    return hashlib.sha256(script.read_bytes()).hexdigest()[:12]


def make_project(script: Path, folder: Path, files: Mapping[str, str]) -> Path:
    """Return a new working directory below a folder, with a script, its network, and files that were there before."""
    project = folder / "project"
    project.mkdir()
    for source in (script, NET):
        shutil.copy(source, project)
    for name, text in files.items():
        (project / name).write_text(text)
    return project


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose home, caches and temporary folder are below a folder, where they are made."""
    dropped = ("XDG_", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    for name in ("home", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    return env | {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "OMP_NUM_THREADS": "1"}


def _run(script: Path, project: Path) -> dict[str, str]:
    """Return a digest of each file that is there after a run, of both streams, and the exit status."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        env = environment(project.parent)
        code = subprocess.run(
            [sys.executable, "-B", script.name], cwd=project, env=env, stdout=out, stderr=err, check=False
        ).returncode
        texts = {}
        for name, stream in (("stdout", out), ("stderr", err)):
            stream.seek(0)
            texts[name] = hashlib.sha256(stream.read()).hexdigest()
            if name == "stderr" and code:
                stream.seek(0)
                print(stream.read().decode()[-2000:], file=sys.stderr)
    roots = {"": project, "~/": project.parent / "home"}
    files = {
        prefix + str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for prefix, root in roots.items()
        for path in root.rglob("*")
        if path.is_file()
    }
    return {**files, **texts, "exit": str(code)}


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the names of what differs, or is there in one run only."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def measure(name: str, label: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs between two runs of a script, in fresh folders and where another run left its files."""
    script = SCRIPTS / f"{name}.py"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder, "here")
        first = _fresh(script, root, label)
        found = {"again": _run(script, root / "project")} if label["class"] in KEEPS_STATE else {}
        found["fresh"] = _fresh(script, root, label)
    return {
        "script": fingerprint(script),
        **{how: differing(first, outputs)[:8] for how, outputs in found.items()},
        "exit": sorted({int(first["exit"]), *(int(outputs["exit"]) for outputs in found.values())}),
    }


def _fresh(script: Path, root: Path, label: Mapping[str, Any]) -> dict[str, str]:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return _run(script, make_project(script, root, label.get("given", {})))


def known() -> dict[str, Any]:
    """Return what measured.yaml says."""
    read: dict[str, Any] = yaml.safe_load(MEASURED.read_text()) if MEASURED.exists() else {}
    return read


def stale(labels: Mapping[str, Any]) -> Iterator[str]:
    """Yield the scripts that were not measured as they are now."""
    for name in labels:
        if known().get(name, {}).get("script") != fingerprint(SCRIPTS / f"{name}.py"):
            yield name


def main() -> None:
    """Measure what measured.yaml does not know yet, or the scripts that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; by default, all that were not measured yet")
    options = parser.parse_args()
    labels = yaml.safe_load((HERE / "labels.yaml").read_text())
    for name in options.scripts or list(stale(labels)):
        measured = {name: found for name, found in known().items() if name in labels}
        measured[name] = measure(name, labels[name])
        print(name, labels[name]["verdict"], measured[name], flush=True)
        lines = ["# Written by twice.py: files and streams whose bytes differ between two runs, and exit statuses."]
        for one, found in sorted(measured.items()):
            lines.append(
                f"{one}: {yaml.safe_dump(found, default_flow_style=True, sort_keys=False, width=1000).strip()}"
            )
        MEASURED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
