"""Every error that detaudit can print, with its hint, read from the source code so that none is left out."""

import ast
import importlib.util
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import detaudit
from detaudit.errors import DetauditError, ExitCode
from detaudit.pytest_plugin.mark import MarkError
from docs._generate.templates import Module, Scope, is_known, texts

_ELSEWHERE = ("detaudit.recorder", "detaudit.callbacks", "detaudit.__main__")
"""What runs within the training, where nothing is raised to the user."""


@dataclass(frozen=True)
class Message:
    """An error: its text with placeholders, its hints, its exit status, and the folder it comes from.

    The status is None in the pytest plugin, where a test fails.
    """

    text: str
    hints: tuple[str, ...]
    status: int | None
    folder: str


def modules() -> list[Module]:
    """Return the modules of detaudit that raise errors."""
    found = pkgutil.walk_packages(detaudit.__path__, "detaudit.", onerror=lambda name: None)
    names = [one.name for one in found if not one.name.startswith(_ELSEWHERE)]
    return [_module(name) for name in names]


def _module(name: str) -> Module:
    """Return the source of a module, without its values if a package of an export is not installed."""
    spec = importlib.util.find_spec(name)
    path = Path(spec.origin or "") if spec else Path()
    try:
        made = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("detaudit"):
            raise
        made = ModuleType(name)
    return Module(path, ast.parse(path.read_text()), made)


def messages(known: Sequence[Module]) -> list[Message]:
    """Return all errors that these modules can raise or print."""
    classes = {one.__name__: one for one in (DetauditError, MarkError, *_subclasses(DetauditError))}
    found: dict[tuple[str, str], Message] = {}
    for here in known:
        for call, function in here.calls:
            kind = _kind(call, here, classes)
            if kind is None:
                continue
            for one in _of_call(call, Scope(here, function), kind, known):
                earlier = found.get((one.text, one.folder), one)
                hints = tuple(dict.fromkeys((*earlier.hints, *one.hints)))
                found[one.text, one.folder] = replace(one, hints=hints)
    return list(found.values())


def _subclasses(kind: type[object]) -> Iterator[type[object]]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def _kind(call: ast.Call, here: Module, classes: dict[str, type[object]]) -> type[object] | None:
    """Return the class of the error that a call makes, None if it makes none. ``fail`` is that of click."""
    match call.func:
        case ast.Name(id="cls"):
            around = [node for node in here.tree.body if isinstance(node, ast.ClassDef) and call in ast.walk(node)]
            return classes.get(around[0].name) if around else None
        case ast.Name(id=name):
            return classes.get(name)
        case ast.Attribute(attr="fail", value=ast.Name(id="self")):
            return SystemExit
        case _:
            return None


def _of_call(call: ast.Call, place: Scope, kind: type[object], known: Sequence[Module]) -> Iterator[Message]:
    message, hint, *_ = [*call.args, None, None]
    folder = place.module.made.__name__.split(".")[1]
    of_click = kind is SystemExit
    for scope in _scopes(place, call, known):
        hints = () if of_click else tuple(filter(None, texts(hint, scope)))
        for text in texts(message, scope):
            yield Message(f"Invalid value: {text}" if of_click else text, hints, _status(kind), folder)


def _status(kind: type[object]) -> int | None:
    if kind is MarkError:
        return None
    if kind is DetauditError:  # the class itself is only printed, for an internal error
        return ExitCode.INTERNAL
    return kind.exit_code if issubclass(kind, DetauditError) else ExitCode.USAGE


def _scopes(scope: Scope, call: ast.Call, known: Sequence[Module]) -> Iterator[Scope]:
    """Yield where a call is made: for a function that others give parts of the text to, once for each of those."""
    used = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
    values = [value for name in used for value in scope.assigned(name)]
    used |= {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}
    given = used & set(scope.parameters)
    callers = _callers(scope, known) if given else ()
    bound = [one for one in callers if any(is_known(text) for name in given for text in one.bound.get(name, ()))]
    yield from bound or [scope]


def _callers(scope: Scope, known: Sequence[Module]) -> Iterator[Scope]:
    """Yield a scope of a function for each of its calls in these modules, with what it is given."""
    function, home = scope.function, scope.module
    if function is None:
        return
    for other in known:
        if other is home or not function.name.startswith("_"):
            for call, around in other.calls:
                if _may_call(call.func, function, home):
                    yield Scope(other, around).call(function, call, home)


def _may_call(called: ast.expr, function: ast.FunctionDef, home: Module) -> bool:
    """Return whether a call may be of this function or method of ``home``."""
    first = function.args.args[0].arg if function.args.args else ""
    match called:
        case ast.Name(id=found):
            return found == function.name
        case ast.Attribute(attr=found, value=ast.Name(id=owner)) if first != "self":
            return found == function.name and owner in (
                {"cls", *vars(home.made)} if first == "cls" else {home.path.stem}
            )
        case ast.Attribute(attr=found):
            return found == function.name and first == "self"
        case _:
            return False
