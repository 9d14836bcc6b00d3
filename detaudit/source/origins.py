"""Follow the values used at a line back to the lines that made them, by reading the code."""

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from detaudit.source.text import SourceText, last

_MOST = 400
"""Expressions that are followed."""

SYSTEM_VALUES = frozenset(
    (
        *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time")),
        *(f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time")),
        *(f"time.{name}" for name in ("thread_time", "clock_gettime", "localtime", "gmtime", "ctime", "strftime")),
        *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
        *("datetime.date.today", "timeit.default_timer", "uuid.uuid1", "resource.getrusage"),
        *(f"os.{name}" for name in ("getpid", "getppid", "getloadavg", "times")),
        *("threading.get_ident", "threading.get_native_id"),
        *(f"psutil.{name}" for name in ("cpu_percent", "getloadavg", "virtual_memory", "Process")),
    )
)
"""Functions that return the time, a process ID, or how busy the system is."""


@dataclass(frozen=True)
class Origin:
    """An expression: its first and last line, and the full names of the functions that it calls."""

    line: int
    last: int
    calls: tuple[str, ...]

    @property
    def system_value(self) -> str | None:
        """Return the function among them that returns a value of the system, None if there is none."""
        return next((name for name in self.calls if name in SYSTEM_VALUES), None)


def origins(text: bytes, line: int) -> Iterator[Origin]:
    """Yield what makes the values that are used at a line, itself included, nearest first. Raises SyntaxError."""
    code = _Code(SourceText.of(text))
    waiting = deque(code.used_at(line))
    known: set[ast.AST] = set()
    while waiting and len(known) < _MOST:
        expression = waiting.popleft()
        if expression in known:
            continue
        known.add(expression)
        called = {code.page.full(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)}
        end = expression.end_lineno or expression.lineno
        yield Origin(expression.lineno, end, tuple(sorted(called - {""})))
        waiting.extend(code.made_of(expression))


def handed_over(text: bytes, line: int) -> Iterator[range]:
    """Yield the lines of the functions that a line gives to another, which may run them elsewhere. Raises SyntaxError.

    So does ``pool.map(simulate, cases)``.
    """
    code = _Code(SourceText.of(text))
    calls = (node for one in code.used_at(line) for node in ast.walk(one) if isinstance(node, ast.Call))
    for call in calls:
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            for function in code.functions.get(argument.id, ()) if isinstance(argument, ast.Name) else ():
                yield range(function.lineno, (function.end_lineno or function.lineno) + 1)


class _Code:
    """A source text, with the expressions that each name of a scope is made of, also by loops and in place."""

    def __init__(self, page: SourceText) -> None:
        self.page, self._tree, self._scope = page, page.reader.tree, page.reader.scope
        self._bound: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self._tree):
            self._read(node)

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._bind(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind([target], value)
            case ast.AugAssign(target=target, value=value):
                self._bind([target], value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind([target], value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._bind([target], value)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.functions.setdefault(name, []).append(node)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                self._calls.setdefault(name, []).append(node)
            case _:
                pass

    def _bind(self, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._bound.setdefault((self._scope(node), node.id), []).append(value)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):  # self.rate, in any method
                    self._bound.setdefault((self._tree, ast.unparse(node)), []).append(value)

    def used_at(self, line: int) -> list[ast.expr]:
        """Return the expressions that the innermost statement at a line is made of, without the body of a block."""
        at = [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        at.sort(key=lambda node: ((node.end_lineno or node.lineno) - node.lineno, -node.col_offset))
        expressions: list[ast.expr] = []
        for child in ast.iter_child_nodes(at[0]) if at else ():
            expressions += [child] if isinstance(child, ast.expr) else []
            expressions += [child.context_expr] if isinstance(child, ast.withitem) else []
        return expressions

    def made_of(self, expression: ast.expr) -> Iterator[ast.expr]:
        """Yield what the names in an expression are bound to, and what the functions that it calls return."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield from self._values(node)
            elif isinstance(node, ast.Attribute):
                yield from self._bound.get((self._tree, ast.unparse(node)), ())
            elif isinstance(node, ast.Call):
                yield from self._returned(node)

    def _values(self, name: ast.Name) -> Iterator[ast.expr]:
        scope = self._scope(name)
        while True:
            if values := self._bound.get((scope, name.id)):
                yield from values
                return
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and _is_argument(scope, name.id):
                for call in self._calls.get(scope.name, ()):
                    yield from (*call.args, *(keyword.value for keyword in call.keywords))
                return
            if scope is self._tree:
                return
            scope = self._scope(scope)

    def _returned(self, call: ast.Call) -> Iterator[ast.expr]:
        for function in self.functions.get(last(call.func), ()):
            for node in ast.walk(function):
                if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                    yield node.value


def _is_argument(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    arguments = function.args
    return name in {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
