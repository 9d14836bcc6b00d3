"""Which package the operations of a line belong to, and the first variable that differs."""

import json
from pathlib import Path

import pytest

from detaudit.environments.operation import Called, calls, class_module, first_variable, package_of
from detaudit.environments.packages import PackagePair
from detaudit.launch.packages import Package, Packages

NUMPY = "numpy.ndarray"
IMPORTS = """import numpy as np
import numpy.linalg
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
"""


def called(line: str, **types: str) -> tuple[Called, ...]:
    text = f"{IMPORTS}{line}\n".encode()
    return calls(text, IMPORTS.count("\n") + 1, types)


@pytest.mark.parametrize(
    ("line", "types", "names", "modules"),
    [
        ("w = np.linalg.solve(a, b)", {}, ["numpy.linalg.solve"], {"numpy"}),
        ("w = np.linalg.solve(a, b)", {"np": "module"}, ["numpy.linalg.solve"], {"numpy"}),
        ("w = a @ b", {"a": NUMPY, "b": NUMPY}, ["operator @"], {"numpy"}),
        ("w = 2 * a + 1.0", {"a": NUMPY}, ["operator +", "operator *"], {"numpy"}),
        ("w = a @ b", {"a": "scipy.sparse._csr.csr_matrix", "b": NUMPY}, ["operator @"], {""}),
        ("w = a * b", {"a": "float", "b": "int"}, ["operator *"], {"builtins"}),
        ("w = a * b", {"a": NUMPY}, ["operator *"], {""}),
        ("a += b", {"a": NUMPY, "b": "float"}, ["operator +="], {"numpy"}),
        ("p = model.predict(x)", {"model": "sklearn.svm._classes.SVC"}, ["SVC.predict"], {"sklearn"}),
        ("p = model.predict(x)", {}, ["model.predict"], {""}),
        ("m = float((a ** 2).mean())", {"a": NUMPY}, ["numpy.mean", "operator **"], {"numpy"}),
        ("w = expit(np.dot(a, b))", {}, ["scipy.special.expit", "numpy.dot"], {"numpy", "scipy"}),
        ("w = mine(np.dot(a, b))", {}, ["mine", "numpy.dot"], {"", "numpy"}),
        ("np = x; w = np.dot(a, b)", {"np": "own.Thing"}, ["Thing.dot"], {"own"}),
        ("s = sum(a)", {"a": "list"}, ["sum"], {"builtins"}),
        ("def f(a): pass", {}, [], set()),
    ],
)
def test_a_line_says_what_it_calls(line: str, types: dict[str, str], names: list[str], modules: set[str]) -> None:
    operations = called(line, **types)
    assert [one.name for one in operations] == names
    assert {one.module for one in operations} == modules


def test_a_text_that_python_cannot_parse_calls_nothing() -> None:
    assert calls(b"w = (", 1, {}) == ()


def package(version: str, build: str, modules: tuple[str, ...] = (), requires: tuple[str, ...] = ()) -> Package:
    return Package(version, build=build, modules=modules, requires=requires)


def of(**packages: Package) -> Packages:
    return Packages("3.11.7", "/env", {name.replace("_", "-"): one for name, one in packages.items()})


SKLEARN = package("1.6.1", "1", ("sklearn",), ("numpy", "scipy"))
PAIR = PackagePair(
    of(
        scikit_learn=SKLEARN,
        numpy=package("2.2.6", "2", ("numpy",)),
        scipy=package("1.13.1", "3", ("scipy",), ("numpy",)),
    ),
    of(
        scikit_learn=SKLEARN,
        numpy=package("2.2.6", "2", ("numpy",)),
        scipy=package("1.15.3", "4", ("scipy",), ("numpy",)),
    ),
)


def test_a_package_is_named_if_it_has_all_operations() -> None:
    fit = package_of((Called("SVC.fit", "sklearn"),), PAIR)
    assert (fit.name, fit.versions, [one.name for one in fit.requires]) == (
        "scikit-learn",
        ("1.6.1", "1.6.1"),
        ["scipy"],
    )
    assert "which is 1.6.1 in both; of what it requires, scipy (1.13.1 in A, 1.15.3 in B) differs" in fit.text()
    mixed = package_of((Called("scipy.x", "scipy"), Called("numpy.y", "numpy")), PAIR)
    assert (mixed.name, mixed.calls) == ("", ("scipy.x", "numpy.y"))
    assert package_of((Called("mine", ""), Called("numpy.y", "numpy")), PAIR).name == ""
    assert package_of((Called("unheard.of", "unheard"),), PAIR).name == ""
    assert package_of((), PAIR).name == ""
    assert package_of((Called("sum", "builtins"),), PAIR).versions == ("3.11.7", "3.11.7")


def test_a_class_comes_from_what_the_script_imports() -> None:
    use = f"{IMPORTS}LogisticRegression().fit(x, y)\n".encode()
    assert class_module([use], "LogisticRegression") == "sklearn"
    assert class_module([b"import umap\numap.UMAP().fit(x)\n"], "UMAP") == "umap"
    assert class_module([use], "Pipeline") == ""
    assert class_module([use, b"class LogisticRegression: pass\n"], "LogisticRegression") == ""
    assert (
        class_module([use, b"from mine import LogisticRegression\nLogisticRegression()\n"], "LogisticRegression") == ""
    )


def test_versions_and_builds_of_packages_are_changes() -> None:
    a = of(numpy=package("2.2.6", "one"), click=Package("8.1.7"), old=Package("1"))
    b = Packages(
        "3.12.0", "/b", {"numpy": package("2.2.6", "two"), "click": package("8.1.7", "x"), "new": Package("2")}
    )
    changes = {one.name: (one.a, one.b) for one in PackagePair(a, b).changes()}
    assert changes == {
        "python": ("3.11.7", "3.12.0"),
        "numpy": ("2.2.6 (build one)", "2.2.6 (build two)"),
        "old": ("1", None),
        "new": (None, "2"),
    }
    assert PackagePair(a, a).changes() == ()


def recorded(folder: Path, name: str, **digests: str) -> Path:
    """Write the records of a run that assigned these variables, one on each line."""
    lines: list[dict[str, object]] = [
        {"k": "assigned", "n": n, "thread": "MainThread", "at": n, "step": 0,
         "file": "train.py", "line": n, "name": key, "digest": digest}
        for n, (key, digest) in enumerate(digests.items(), 1)
    ]  # fmt: skip
    numbers = list(range(1, len(digests) + 2))
    lines += [
        {"k": "path", "thread": "MainThread", "id": 1, "lines": [["train.py", numbers]]},
        {"k": "line", "thread": "MainThread", "step": 0, "paths": [[1, 1]], "ended": True},
    ]
    file = folder / name
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_the_first_variable_that_differs_is_no_text_and_does_not_change_by_itself(tmp_path: Path) -> None:
    same = {"x": "numpy.ndarray:<f8[2]:1"}
    a = recorded(tmp_path, "a", version="str:1", now="float:1", **same, w="numpy.ndarray:<f8[2]:2", v="float:3")
    again = recorded(tmp_path, "again", version="str:1", now="float:2", **same, w="numpy.ndarray:<f8[2]:2", v="float:3")
    b = recorded(tmp_path, "b", version="str:2", now="float:3", **same, w="numpy.ndarray:<f8[2]:9", v="float:9")
    first = first_variable(a, b, again)
    assert first is not None
    assert first.one.name == "w"
    assert first_variable(a, again, again) is None
