"""The pytest plugin: ``@pytest.mark.deterministic`` audits a test, the fixture ``determinism`` compares values.

Every pytest session in an environment with detaudit imports this module, so it imports only pytest and the standard
library at first, and everything else when it is used.
"""

import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from detaudit.pytest_plugin import mark
from detaudit.pytest_plugin.child import Child

_WORKER_INPUT = "detaudit_options"

_child = pytest.StashKey[Child | None]()
_environment = pytest.StashKey[Mapping[str, str]]()
_core_options = pytest.StashKey[frozenset[str]]()
_options = pytest.StashKey[Mapping[str, Any]]()


class Determinism:
    """The value of the fixture ``determinism``."""

    def assert_bit_equal(self, a: object, b: object) -> None:
        """Fail unless ``a`` and ``b`` are bit-identical, and say where and by how much they differ.

        Each is a number, a string, an array or tensor of any library, or a list, tuple or dict of these, such as a
        ``state_dict()``. NaNs with the same bits match, +0 and -0 differ. Raises AssertionError if the values differ,
        TypeError for other types.
        """
        __tracebackhide__ = True
        from detaudit.pytest_plugin import equality

        text = equality.difference(a, b)
        if text:
            raise AssertionError(text)


@pytest.fixture(scope="session")
def determinism() -> Determinism:
    """Compare two values bit for bit: ``determinism.assert_bit_equal(a, b)``."""
    return Determinism()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting ``detaudit_args``."""
    text = f"command-line arguments for the pytest sessions that run a test marked {mark.NAME}"
    parser.addini("detaudit_args", text, type="args", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Note which options exist before any conftest file adds its own."""
    early_config.stash[_core_options] = frozenset(vars(early_config.known_args_namespace))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and find out whether this session is a run of an audit."""
    config.addinivalue_line("markers", mark.LINE)
    config.stash[_child] = child = Child.here()
    config.stash[_environment] = dict(os.environ)
    config.stash[_options] = getattr(config, "workerinput", {}).get(_WORKER_INPUT) or _own_options(config)
    if child is not None:
        child.configure(config)


def _own_options(config: pytest.Config) -> dict[str, Any]:
    """Return the options that conftest files added and whose values JSON can represent."""
    core = config.stash.get(_core_options, None)
    added = {name: value for name, value in vars(config.option).items() if core is not None and name not in core}
    return {name: value for name, value in added.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the options to a worker of pytest-xdist, which cannot distinguish them from those of pytest."""
    node.workerinput[_WORKER_INPUT] = node.config.stash[_options]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test with an invalid mark before any of its fixtures is set up."""
    if item.get_closest_marker(mark.NAME) is not None:
        _mark(item)
        problem = _unsupported(item)
        if problem:
            pytest.fail(f"@pytest.mark.{mark.NAME} {problem}", pytrace=False)


def _unsupported(item: pytest.Item) -> str:
    """Return why a test cannot be audited: if pytest does not call it itself, it would pass without an audit."""
    cases = getattr(sys.modules.get("unittest"), "TestCase", ())
    owner = getattr(item, "cls", None)
    if not isinstance(item, pytest.Function) or (owner is not None and issubclass(owner, cases)):
        return "works only on plain functions and on methods of plain classes"
    if inspect.iscoroutinefunction(item.obj) or inspect.isasyncgenfunction(item.obj):
        return "does not support async tests; call asyncio.run() in a plain test"
    return ""


def _mark(item: pytest.Item) -> mark.Mark:
    marker = item.get_closest_marker(mark.NAME)
    arguments = ((), {}) if marker is None else (marker.args, marker.kwargs)
    try:
        return mark.read(*arguments)
    except mark.MarkError as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Audit a marked test, or call it if this session is a run of that audit."""
    if pyfuncitem.get_closest_marker(mark.NAME) is None:
        return None
    config = pyfuncitem.config
    child = config.stash[_child]
    if child is not None:
        function: Callable[..., Any] = pyfuncitem.obj
        child.call(function, {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    else:
        from detaudit.pytest_plugin import parent

        parent.audit(pyfuncitem, _mark(pyfuncitem), config.stash[_environment], config.stash[_options])
    return True
