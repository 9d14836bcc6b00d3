"""Check the text of the package: it runs no shell, evaluates no data, loads no pickle, and connects to nothing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from detaudit.config import yamlfile

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "detaudit").rglob("*.py"))

IMPORTS = {
    *("_pickle", "_posixsubprocess", "code", "codeop", "cloudpickle", "commands", "dill", "imp", "joblib", "marshal"),
    *("pickle", "pty", "shelve"),
    *("aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "socketserver", "ssl", "telnetlib"),
    *("fsspec", "mlflow", "urllib.request", "urllib3", "xmlrpc"),
}
"""Modules that load objects, run code, or connect to other machines."""

ALLOWED = {
    "mlflow_server.py": {"import mlflow"},
    "storage.py": {"import fsspec"},
    "ray_driver.py": {"import socket"},
    "notebooks/run.py": {"compile()", "eval()"},
}
"""What four modules may do: connect to the server, or the cluster, that the user names; run the user's cells."""

BUILTINS = {"__import__", "compile", "eval", "exec"}
CALLS = {
    *("os.popen", "os.system", "subprocess.getoutput", "subprocess.getstatusoutput", "tempfile.mktemp"),
    *("numpy.load", "pandas.read_pickle", "tensorflow.keras.models.load_model", "torch.load"),
    *("tarfile.extractall", "zipfile.extractall", "archive.extract", "archive.extractall"),
    *("yaml.full_load", "yaml.full_load_all", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all"),
}
OPTIONS = {"allow_pickle", "shell", "weights_only"}
"""Options that are as dangerous when they are given a name as when they are literally true."""


def dotted(node: ast.expr) -> str:
    """Return the name of what is called, ``""`` if it is not one."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the names of the modules that a statement imports, and those of the packages that they are in."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for parts in (name.split(".") for name in names):
        yield from (".".join(parts[: length + 1]) for length in range(len(parts)))


def dangers(tree: ast.AST) -> Iterator[str]:
    """Yield what a module must not do."""
    for node in ast.walk(tree):
        yield from (f"import {name}" for name in imported(node) if name in IMPORTS)
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg}
            safe = name != "yaml.load" or options.get("Loader") in ("_LOADER", "yaml.SafeLoader")
            if name in BUILTINS | CALLS or re.fullmatch(r"os\.(exec|spawn|posix_spawn)\w*", name) or not safe:
                yield f"{name}()"
            yield from (f"{option}=" for option in sorted(options.keys() & OPTIONS))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_does_nothing_dangerous(path: Path) -> None:
    allowed = next((what for name, what in ALLOWED.items() if path.as_posix().endswith(f"/{name}")), set())
    assert set(dangers(ast.parse(path.read_text()))) <= allowed


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import urllib.request", "import socket", "eval(text)",
        "from mlflow import MlflowClient",
        "exec(text)", "__import__(name)", "from urllib import request",
        "compile(text, '', 'exec')", "os.system(text)", "os.execv(a, b)",
        "subprocess.run(text, shell=True)", "subprocess.run(text, shell=flag)", "torch.load(path)",
        "yaml.load(text)", "yaml.load(text, Loader=yaml.Loader)", "yaml.unsafe_load(text)",
        "numpy.load(path, allow_pickle=True)", "archive.extractall(folder)",
    ],
)  # fmt: skip
def test_dangerous_code_is_found(code: str) -> None:
    assert list(dangers(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "re.compile(text)",
        "model.compile(loss)",
        "yaml.safe_load(text)",
        "subprocess.run(words)",
        "from . import code",
        "import urllib.parse",
    ],
)
def test_other_code_is_not(code: str) -> None:
    assert not list(dangers(ast.parse(code)))


def test_a_file_of_yaml_makes_no_objects() -> None:
    with pytest.raises(yaml.YAMLError):
        yaml.load("!!python/object/apply:os.getcwd []", Loader=yamlfile._LOADER)


@pytest.mark.parametrize("name", [".github/workflows/release.yml", "action.yml", "docs/ci.md"])
def test_actions_of_others_are_pinned_by_their_hash(name: str) -> None:
    used = re.findall(r"^[ -]+uses: *(.*)$", (ROOT / name).read_text(), re.MULTILINE)
    others = [one for one in used if not one.startswith("OWNER/detaudit@REF")]
    assert others
    assert not [one for one in others if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)]
