"""Check the structure of the package: imports run one way, and the recorder needs only the standard library."""

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

ROOMS = {
    # Ground: what all may import.
    "wire": set(),
    "errors": set(),
    "compat": set(),
    "private": set(),
    "redact": set(),
    "notebooks": set(),
    "__init__": set(),
    # Values that all rooms pass around, and what runs inside the training.
    "model": {"compat", "errors", "notebooks", "wire"},
    "recorder": {"private", "redact", "wire"},
    "scanner": {"recorder"},
    "callbacks": set(),
    # What is asked for, and how what leaves a run is compared.
    "config": {"compat", "errors", "model", "notebooks", "wire"},
    "entry_points": {"config", "errors"},
    "outputs": {"model", "redact"},
    # One process and its end; the user's code, read.
    "launch": {"config", "errors", "model", "notebooks", "outputs", "private", "redact", "wire"},
    "source": {"config", "model", "notebooks", "redact"},
    "rules": {"model", "notebooks", "source"},
    "store": {"errors", "launch", "model", "private"},
    "advice": {"config", "launch", "model", "redact", "wire"},
    "report": {"compat", "config", "errors", "launch", "model", "notebooks", "rules", "wire"},
    # What runs left, read; then judged.
    "runs": {
        "compat", "config", "errors", "launch", "model", "notebooks", "outputs", "private", "redact", "store", "wire",
    },
    "judge": {"compat", "config", "errors", "launch", "model", "outputs", "redact", "runs", "source", "wire"},
    "doctor": {"config", "launch", "model", "runs"},
    # Runs started, and recordings compared.
    "runner": {"config", "judge", "launch", "model", "outputs", "runs"},
    "ahead": {"launch", "runner"},
    "baseline": {"config", "errors", "judge", "model", "outputs", "runs", "store"},
    "compare": {"errors", "judge", "model", "outputs", "runs"},
    "trial": {"config", "judge", "launch", "model", "runner", "runs"},
    "history": {"advice", "baseline", "config", "errors", "judge", "launch", "model", "runs", "store"},
    # The jobs behind the commands.
    "audit": {
        "advice", "baseline", "errors", "history", "judge", "launch", "model", "runner", "runs", "source", "store",
    },
    "bisect": {
        "advice", "ahead", "config", "errors", "history", "judge", "launch", "model", "notebooks", "runner", "runs",
        "source", "store",
    },
    "trace": {
        "advice", "ahead", "config", "entry_points", "history", "judge", "launch", "model", "notebooks", "outputs",
        "private", "rules", "runner", "runs", "source", "store", "trial", "wire",
    },
    "fix": {
        "advice", "config", "errors", "judge", "launch", "model", "notebooks", "private", "rules", "runner", "runs",
        "source", "store", "trace", "trial",
    },
    "against": {
        "advice", "audit", "compare", "compat", "errors", "judge", "launch", "model", "notebooks", "private", "runner",
        "runs", "store", "trace",
    },
    "environments": {
        "advice", "against", "compat", "errors", "launch", "model", "private", "redact", "runner", "runs", "source",
        "trace", "wire",
    },
    "restore": {"fix", "model", "source"},
    "resume": {"audit", "judge", "launch", "model", "restore", "runner", "runs", "store", "wire"},
    "check": {
        "advice", "against", "audit", "baseline", "config", "errors", "judge", "launch", "model", "resume", "runner",
        "runs", "store",
    },
    "evidence": {
        "__init__", "baseline", "check", "compare", "compat", "config", "errors", "judge", "launch", "model",
        "notebooks", "private", "redact", "report", "runs", "store", "wire",
    },
    "cli": {
        "advice", "against", "audit", "baseline", "bisect", "check", "compare", "config", "doctor", "entry_points",
        "environments", "errors", "evidence", "fix", "judge", "launch", "model", "notebooks", "redact", "report",
        "resume", "rules",
        "runner", "runs", "store", "trace", "wire",
    },
    # Leaves, which no one imports and entry points name.
    "__main__": {"cli"},
    "exports": {"errors", "launch", "model", "report", "store"},
    "ops": {
        "cli", "config", "entry_points", "errors", "judge", "launch", "model", "private", "report", "runner", "runs",
        "store", "trace", "wire",
    },
    "pytest_plugin": {"compat", "judge", "model", "report", "store"},
    "remote": {
        "audit", "check", "cli", "config", "entry_points", "errors", "judge", "launch", "model", "notebooks", "private",
        "redact", "report", "runner", "runs", "store", "wire",
    },
}  # fmt: skip
"""Files and folders of the package, each with those that it may import, which are above it here."""

RECORDER = [
    {"bootstrap"},
    {"boot"},
    {"patches", "probes", "replay", "watch"},
    {"frameworks", "lines"},
    {"randomness"},
    {"training"},
    {"process"},
]
"""Rooms of the recorder, the top floor first. A room imports only from the floors below its own."""

TRAINERS = {
    "keras.py": {"keras", "tf_keras"},
    "lightning.py": {"lightning", "pytorch_lightning"},
    "transformers.py": {"transformers"},
}
"""A callback is a subclass of its trainer's own class, and only a training that uses this trainer imports it."""

ARRAYS = {"figures.py", "live_log.py", "log_rows.py", "series.py", "tensors.py"}
"""The modules that use NumPy, which takes longer to import than `detaudit --help`."""

MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
FOLDERS = sorted({path.parent for path in MODULES})


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Yield the absolute names of everything that a file imports, at any place in it."""
    package = ("detaudit", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the names of the package's own modules that a file imports."""
    for name in imported(path):
        while name and name not in NAMES:
            name = name.rpartition(".")[0]
        if name:
            yield name


def rooms(folder: Path) -> dict[str, set[str]]:
    """Return the modules and folders in a folder, each with its neighbors that it imports from."""
    prefix = ".".join(folder.relative_to(ROOT).parts) + "."
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        others = {name.removeprefix(prefix).split(".")[0] for name in imported_modules(path) if name.startswith(prefix)}
        found.setdefault(room, set()).update(others - {room})
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    own = layer(path)
    for name in imported(path):
        first, _, rest = name.partition(".")
        if first == "detaudit" and rest:
            other = rest.split(".")[0]
            # `from detaudit import __version__` is everybody's.
            assert other in ROOMS[own] | {own, "__version__"}, f"{path} imports {name}"


def test_the_rooms_are_in_the_order_of_their_imports() -> None:
    assert set(ROOMS) == {layer(path) for path in MODULES}, "each room has a line"
    before: set[str] = set()
    for room, imports in ROOMS.items():
        assert imports <= before, room
        before.add(room)


def test_rooms_of_the_recorder_import_only_from_the_floors_below() -> None:
    found = rooms(PACKAGE / "recorder")
    floors = {room: number for number, floor in enumerate(RECORDER) for room in floor}
    assert set(floors) == set(found) - {"__init__"}, "each room has a floor"
    arrows = {(room, other) for room in floors for other in found[room]}
    assert not {(room, other) for room, other in arrows if floors[room] >= floors[other]}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        name: {other for other in imported_modules(path) if other != name and not name.startswith(f"{other}.")}
        for name, path in NAMES.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_rooms_import_each_other_in_a_circle(folder: Path) -> None:
    found = rooms(folder)
    graphlib.TopologicalSorter({room: found[room] for room in found if room != "__init__"}).prepare()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_part_of_the_auditor_imports_a_framework(path: Path) -> None:
    allowed = {"numpy"} if path.name in ARRAYS else set()
    allowed = TRAINERS.get(path.name, set()) if layer(path) == "callbacks" else allowed
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


IN_THE_TRAINING = sorted(
    path for folder in ("notebooks", "recorder", "scanner") for path in (PACKAGE / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", IN_THE_TRAINING, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_recorder_and_the_scanner_need_only_the_standard_library_and_python_3_9(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names)
    asked = {"IPython", "traitlets"} if path.parent.name == "notebooks" else set()  # by a cell that needs them
    assert outside <= {"detaudit", "_detaudit", "sitecustomize", *asked}
    ast.parse(path.read_text(), feature_version=(3, 9))
    if path.parent.name != "bootstrap":
        assert not [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Match)]
        assert "from __future__ import annotations" in path.read_text() or "def " not in path.read_text()


@pytest.mark.parametrize("path", IN_THE_TRAINING, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_hook_asks_for_a_frame_that_native_code_does_not_have(path: Path) -> None:
    assert "_getframe(1)" not in path.read_text(), "it raises ValueError if no Python function lies below; use f_back"


@pytest.mark.parametrize("name", ["wire", "private", "redact"])
def test_what_the_recorder_imports_reads_in_python_3_9(name: str) -> None:
    path = PACKAGE / f"{name}.py"
    assert {found.split(".")[0] for found in imported(path)} <= set(sys.stdlib_module_names)
    ast.parse(path.read_text(), feature_version=(3, 9))


def test_nothing_of_the_corpus_is_known_to_the_package() -> None:
    names = {path.stem for path in (ROOT / "tests" / "corpus").glob("scripts/*_*.py")}
    assert len(names) >= 40
    for path in MODULES:
        assert not [name for name in names if name in path.read_text()], path


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_does(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = docstring.partition("\n\n")[0]
    assert first.endswith("."), f"{path} does not start with a docstring of one or more sentences"


LEAVES = ("exports", "ops", "remote")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_leaves_are_imported_by_nobody(path: Path) -> None:
    leaves = {name.split(".")[1] for name in imported_modules(path) if name.count(".")} & set(LEAVES) - {layer(path)}
    assert not leaves, f"name what is needed of {', '.join(leaves)} by an entry point"


THREADED = ("outputs", "runs", "launch", "remote")
"""Rooms whose functions the threads of ``--jobs`` call."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_decoder_is_made_in_a_thread(path: Path) -> None:
    """msgspec crashes if two threads decode a struct for the first time; a Decoder of a module is made on import."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    typed = [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("decode", "convert")
        for word in call.keywords
        if word.arg == "type" and "msgspec.Raw" not in ast.unparse(word.value)
    ]
    assert layer(path) not in THREADED or not typed, f"make the decoder at line {typed} when the module is imported"
