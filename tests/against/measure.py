"""Compare pairs of commits: ``python -m tests.against.measure [NAMES]``.

What is known is kept in build/against/, so that it can be interrupted; docs/lab/against.md has the results.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "against"
PAGE = ROOT / "docs" / "lab" / "against.md"

DATA = """
import torch


def batches(steps):
    generator = torch.Generator().manual_seed(3)
    for _ in range(steps):
        x = torch.randn(16, 8, generator=generator)
        yield x, x.sum(1, keepdim=True)
"""
MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.first = nn.Linear(8, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.first(x)
        x = torch.relu(x)
        return self.last(x)
"""
TRAIN = """
import torch

from data import batches
from model import Net

RATE = 0.1


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9)
    for x, y in batches(6):
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("done")


main()
"""
IGNORED = "*.so\n*.egg-info\n__pycache__\n.detaudit\nbuild/\nenv/\n"
PROJECT = {"data.py": DATA.lstrip(), "model.py": MODEL.lstrip(), "train.py": TRAIN.lstrip(), ".gitignore": IGNORED}

PACKAGE = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "small"
version = "1.0"

[tool.setuptools.packages.find]
where = ["src"]
"""
EXTENSION = """#include <Python.h>

static PyObject *scale(PyObject *self, PyObject *number) {
    return PyFloat_FromDouble(2.0 * PyFloat_AsDouble(number));
}

static PyMethodDef methods[] = {{"scale", scale, METH_O, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_scale", "", -1, methods};
PyMODINIT_FUNC PyInit__scale(void) { return PyModule_Create(&module); }
"""

HEAD = """# What compare --against says of pairs of commits

Written by `make test-against`. Each pair is a commit and the one after it, or the working tree. The expected verdict
was written before detaudit ran, but for that of `sum_of_columns`: `torch.equal` says that it is no change. Of pairs
that differ, the line of each side where the codes part counts too.

"""


def pairs() -> dict[str, dict[str, Any]]:
    """Return all pairs by name."""
    table: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "pairs.yaml").read_text())
    return table


def project(setting: str) -> dict[str, str]:
    """Return the files of the project, as a setting needs them."""
    files = dict(PROJECT)
    if setting in ("editable", "finder"):
        files |= {"pyproject.toml": PACKAGE, "src/small/__init__.py": "", "src/small/model.py": files.pop("model.py")}
        files["train.py"] = files["train.py"].replace("from model", "from small.model")
    if setting == "extension":
        files["data.py"] = files["data.py"].replace("import torch", "import torch\nfrom _scale import scale")
        files["data.py"] = files["data.py"].replace("yield x,", "yield x * scale(1.5),")
        files["scale.c"] = EXTENSION
    return files


def edited(files: Mapping[str, str], edits: Mapping[str, Any]) -> dict[str, str]:
    """Return files with edits. Raises ValueError for a text that is not there."""
    after = dict(files)
    for name, edit in edits.items():
        if isinstance(edit, list):
            for old, new in edit:
                if old not in after[name]:
                    raise ValueError(f"{name} has no {old!r}")
                after[name] = after[name].replace(old, new)
        elif edit is None:
            del after[name]
        else:
            after[name] = edit
    return after


def write(folder: Path, files: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
    """Write the files of a commit into a folder, and remove those that only the one before has."""
    for name in {*(before or {})} - {*files}:
        (folder / name).unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def git(folder: Path, *words: str) -> str:
    """Run git in a folder."""
    user = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *user, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def environment(folder: Path, setting: str) -> str:
    """Return the Python of a new environment, in which a project is installed so that its folder is imported."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    packages = next((folder / "env").glob("lib/python*/site-packages"))
    (packages / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    python = str(folder / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "-e", "."]
    subprocess.run(install, cwd=folder, check=True)
    if setting == "finder":
        as_finder(packages, folder)
    return python


def as_finder(packages: Path, folder: Path) -> None:
    """Replace the path of an editable installation by a finder, as setuptools writes one for other layouts."""
    for file in packages.glob("__editable__*.pth"):
        file.unlink()
    mapping = {"small": str(folder / "src" / "small")}
    finder = (
        "import sys\nfrom importlib.util import spec_from_file_location\n"
        f"MAPPING = {mapping!r}\n\n\nclass Finder:\n"
        "    @classmethod\n    def find_spec(cls, name, path=None, target=None):\n"
        "        if name in MAPPING:\n"
        "            init = MAPPING[name] + '/__init__.py'\n"
        "            return spec_from_file_location(name, init, submodule_search_locations=[MAPPING[name]])\n\n\n"
        "def install():\n    sys.meta_path.append(Finder)\n"
    )
    (packages / "__editable___small_1_0_finder.py").write_text(finder)
    (packages / "__editable__.small-1.0.pth").write_text(
        "import __editable___small_1_0_finder; __editable___small_1_0_finder.install()\n"
    )


def build(folder: Path) -> None:
    """Build the extension of a project in its folder, where git ignores it."""
    target = folder / f"_scale{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", include, folder / "scale.c", "-o", target], check=True)


def commits(pair: Mapping[str, Any], folder: Path, *, dirty: bool) -> tuple[str, list[str]]:
    """Make a repository with a pair; return the commit to compare with, and the options of detaudit.

    If it is ``dirty``, the second side is not committed.
    """
    setting = pair.get("setting", "")
    base = project(setting)
    before, after = (edited(base, pair.get(side, {})) for side in ("before", "after"))
    write(folder, before)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=before")
    write(folder, after, before)
    options = ["--python", environment(folder, setting)] if setting in ("editable", "finder") else []
    if setting == "extension":
        build(folder)
    if dirty:
        return "HEAD", options
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=after")
    return "HEAD~1", options


def compared(pair: Mapping[str, Any], folder: Path, *, dirty: bool) -> dict[str, Any]:
    """Run detaudit on a pair, and return its report."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ref, options = commits(pair, folder, dirty=dirty)
    words = ["compare", "train.py", "--against", ref, "--trace", "--runs", "2", "--quiet", "--format", "json", *options]
    command = [sys.executable, "-m", "detaudit", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    shutil.rmtree(folder)
    kept = ("verdict", "doubts", "code", "parting", "first_difference")
    return {"dirty": dirty, "exit": done.returncode, **{key: report[key] for key in kept}}


def judged(pair: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return ``right``, or what is wrong."""
    status = {"identical": 0, "different": 1, "inconclusive": 125}[pair["says"]]
    if (report["verdict"], report["exit"]) != (pair["says"], status):
        return f"WRONG: {report['verdict']}"
    if "parts" in pair and places(report) != pair["parts"]:
        return f"PARTS ELSEWHERE: {places(report)}"
    return "right"


def places(report: Mapping[str, Any]) -> list[str | None]:
    """Return the lines of both sides where the codes part."""
    sides = [(report["parting"] or {}).get(side) for side in ("a", "b")]
    return [f"{side['file']}:{side['line']}" if side else None for side in sides]


def main(names: Sequence[str]) -> int:
    """Compare what is not known yet, write the page, and return 1 if an answer is wrong."""
    KEPT.mkdir(parents=True, exist_ok=True)
    table = pairs()
    for name in names or table:
        kept = KEPT / f"{name}.json"
        if not kept.exists():
            dirty = list(table).index(name) % 2 == 0
            kept.write_text(json.dumps(compared(table[name], KEPT / "work" / name, dirty=dirty), indent=1))
        print(f"{name}: {judged(table[name], json.loads(kept.read_text()))}", flush=True)
    known = {
        name: json.loads((KEPT / f"{name}.json").read_text()) for name in table if (KEPT / f"{name}.json").exists()
    }
    outcomes = {name: judged(table[name], report) for name, report in known.items()}
    rows = [
        f"| {name} | {table[name].get('setting', '')} | {'working tree' if report['dirty'] else 'commit'} | "
        f"{table[name]['says']} | {outcomes[name]} | {_parted(report)} |"
        for name, report in known.items()
    ]
    right = sum(outcome == "right" for outcome in outcomes.values())
    head = "| pair | setting | second side | expected | detaudit | the codes part at |"
    page = [head, "|---|---|---|---|---|---|", *rows]
    PAGE.write_text(f"{HEAD}{len(known)} pairs, {right} right.\n\n" + "\n".join(page) + "\n")
    return int(right < len(known))


def _parted(report: Mapping[str, Any]) -> str:
    parting = report["parting"]
    sides = [parting[side] for side in ("a", "b")] if parting else []
    return ", ".join(f"{one['file']}:{one['line']} `{one['operation']}`" if one else "-" for one in sides)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
