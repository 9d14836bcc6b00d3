"""The laws of the house: imports run one way, and the recorder stands on the standard library alone."""

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "detaudit"
FRAMEWORKS = {
    "torch",
    "tensorflow",
    "keras",
    "tf_keras",
    "jax",
    "numpy",
    "sklearn",
    "lightning",
    "pytorch_lightning",
    "transformers",
}

LAYERS = {
    "wire": set(),
    "errors": set(),
    "probe": set(),
    "model": {"errors", "wire", "probe"},
    "recipe": {"errors", "wire", "model"},
    "launch": {"errors", "wire", "model", "recipe"},
    "auditor": {"errors", "wire", "model", "probe", "recipe", "launch"},
    "report": {"errors", "wire", "model", "probe", "recipe", "launch"},
    "cli": {"errors", "wire", "model", "recipe", "launch", "auditor", "report"},
    "recorder": {"wire"},
    "pytest_plugin": {"model", "auditor", "report"},
    "callbacks": set(),
    "__main__": {"cli"},
    "__init__": set(),
}
"""Who may import whom."""

TRAINERS = {
    "keras.py": {"keras", "tf_keras"},
    "lightning.py": {"lightning", "pytorch_lightning"},
    "transformers.py": {"transformers"},
}
"""A callback is a subclass of its trainer's own class, and only a training that uses this trainer imports it."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Yield the absolute names of all that a file imports, wherever in it."""
    package = ("detaudit", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    own = layer(path)
    for name in imported(path):
        first, _, rest = name.partition(".")
        if first == "detaudit" and rest:
            other = rest.split(".")[0]
            # `from detaudit import __version__` is everybody's.
            assert other in LAYERS[own] | {own, "__version__"}, f"{path} imports {name}"


def test_there_is_no_circle() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    graph = {}
    for name, path in names.items():
        wanted = {w.rsplit(".", n)[0] for w in imported(path) for n in (0, 1)}
        graph[name] = {
            other for other in wanted if other in names and other != name and not name.startswith(f"{other}.")
        }
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_part_of_the_auditor_imports_a_framework(path: Path) -> None:
    allowed = TRAINERS.get(path.name, set()) if layer(path) == "callbacks" else set()
    assert {name.split(".")[0] for name in imported(path)} & FRAMEWORKS <= allowed


def test_nobody_imports_the_callbacks() -> None:
    for path in MODULES:
        assert layer(path) == "callbacks" or not [name for name in imported(path) if "detaudit.callbacks" in name]


@pytest.mark.parametrize("name", ["__init__", "mark", "child"])
def test_every_pytest_session_pays_for_pytest_and_the_standard_library_alone(name: str) -> None:
    tree = ast.parse((PACKAGE / "pytest_plugin" / f"{name}.py").read_text())
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            own = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
            ours = {f"detaudit.pytest_plugin.{one}" for one in ("mark", "child")}
            found |= set() if own & ours else {(node.module or "").split(".")[0]}
    assert found <= {*sys.stdlib_module_names, "pytest"}


@pytest.mark.parametrize("path", sorted((PACKAGE / "recorder").rglob("*.py")), ids=lambda path: path.name)
def test_the_recorder_needs_only_the_standard_library_and_python_3_9(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names)
    assert outside <= {"detaudit", "_detaudit", "sitecustomize"}
    ast.parse(path.read_text(), feature_version=(3, 9))
    if path.parent.name != "bootstrap":
        assert not [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Match)]
        assert "from __future__ import annotations" in path.read_text() or "def " not in path.read_text()


def test_wire_reads_in_python_3_9() -> None:
    ast.parse((PACKAGE / "wire.py").read_text(), feature_version=(3, 9))


def test_nothing_of_the_corpus_is_known_to_the_package() -> None:
    names = {path.stem for path in (ROOT / "tests" / "corpus").glob("scripts/*_*.py")}
    assert len(names) >= 40
    for path in MODULES:
        assert not [name for name in names if name in path.read_text()], path


def test_files_and_functions_stay_small() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 250, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 50, f"{path}: {node.name}"
