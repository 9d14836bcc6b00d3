"""The pytest plugin: ``@pytest.mark.deterministic`` audits a test, the fixture ``determinism`` compares bits.

Every pytest session of an environment imports this: the standard library and pytest alone, all else when it is used.
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
    """What the fixture ``determinism`` is."""

    def assert_bit_equal(self, a: object, b: object) -> None:
        """Fail unless ``a`` and ``b`` are equal bit for bit, and say where and by how much they are not.

        They are numbers, strings, arrays and tensors of any library, or lists, tuples and dicts of them, such as a
        ``state_dict()``. Equal NaNs are equal, +0 and -0 are not. Raises AssertionError; TypeError for anything else.
        """
        __tracebackhide__ = True
        from detaudit.pytest_plugin import equality

        words = equality.difference(a, b)
        if words:
            raise AssertionError(words)


@pytest.fixture(scope="session")
def determinism() -> Determinism:
    """Compare two values bit for bit: ``determinism.assert_bit_equal(a, b)``."""
    return Determinism()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting for options that the runs of an audited test need."""
    text = f"arguments for the pytest in which a test marked {mark.NAME} is run"
    parser.addini("detaudit_args", text, type="args", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Note which options there are before any conftest file adds its own."""
    early_config.stash[_core_options] = frozenset(vars(early_config.known_args_namespace))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and learn whether this is a run of an audit."""
    config.addinivalue_line("markers", mark.LINE)
    config.stash[_child] = child = Child.here()
    config.stash[_environment] = dict(os.environ)
    config.stash[_options] = getattr(config, "workerinput", {}).get(_WORKER_INPUT) or _own_options(config)
    if child is not None:
        child.configure(config)


def _own_options(config: pytest.Config) -> dict[str, Any]:
    """Return the options that conftest files added, as far as they are plain values."""
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
    """Tell a worker of pytest-xdist the options, which it could not tell apart."""
    node.workerinput[_WORKER_INPUT] = node.config.stash[_options]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose mark cannot be obeyed, before any of its fixtures is made."""
    if item.get_closest_marker(mark.NAME) is not None:
        _mark(item)
        problem = _not_for_us(item)
        if problem:
            pytest.fail(f"@pytest.mark.{mark.NAME} {problem}", pytrace=False)


def _not_for_us(item: pytest.Item) -> str:
    """Return why a test cannot be audited: one that pytest does not call itself would pass without an audit."""
    cases = getattr(sys.modules.get("unittest"), "TestCase", ())
    owner = getattr(item, "cls", None)
    if not isinstance(item, pytest.Function) or (owner is not None and issubclass(owner, cases)):
        return "is for functions and methods of plain classes, no others"
    if inspect.iscoroutinefunction(item.obj) or inspect.isasyncgenfunction(item.obj):
        return "cannot audit an async test; call asyncio.run in a plain one"
    return ""


def _mark(item: pytest.Item) -> mark.Mark:
    found = item.get_closest_marker(mark.NAME)
    arguments = ((), {}) if found is None else (found.args, found.kwargs)
    try:
        return mark.read(*arguments)
    except mark.MarkError as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Audit a marked test; in a run of that audit, call it."""
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
