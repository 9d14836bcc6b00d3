"""Run the cells of a notebook in one namespace, as the program of a process: run.py NOTEBOOK ARGUMENTS."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import linecache
import os
import re
import sys
import traceback
import types

if "_detaudit" not in sys.modules:  # the recorder is not loaded: the notebook still runs
    sys.modules["_detaudit"] = types.ModuleType("_detaudit")
    sys.modules["_detaudit"].__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from _detaudit.notebooks import cells as reading  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, TracebackType
    from typing import Any

_ASYNC = 0x80
"""The flag of code that awaits, inspect.CO_COROUTINE."""

_FUTURES = 0xFFFE0000
"""The flags of ``from __future__``, which go on in later cells."""


class _Captured:
    """What a cell of ``%%capture`` printed."""

    def __init__(self, stdout: str, stderr: str) -> None:
        self.stdout, self.stderr = stdout, stderr

    def show(self) -> None:
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show

    def __str__(self) -> str:
        return self.stdout


def _display(*values: Any, **_: Any) -> None:
    """Print values as the last expression of a cell is printed: what is shown is text."""
    for _value in values:
        pass


class _Shell:
    """IPython's shell, made when a cell first asks for it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __call__(self) -> Any:
        from IPython.core.interactiveshell import InteractiveShell  # type: ignore[import-not-found]
        from traitlets.config import Config  # type: ignore[import-not-found]

        if not InteractiveShell.initialized():
            config = Config()
            config.HistoryManager.enabled = False  # which has a thread, and a database outside the runs
            logs = os.environ.get("DETAUDIT_LOGS")
            own = {"ipython_dir": os.path.join(os.path.dirname(logs), "ipython")} if logs else {}
            # Each run has a profile of its own, since the first one of a user makes files.
            InteractiveShell.instance(config=config, user_module=self._module, user_ns=self._module.__dict__, **own)
        return InteractiveShell.instance()


class _Run:
    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb") as file:
            self._cells = reading.read(file.read())
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        text = reading.script(self._cells)
        lines = text.splitlines(keepends=True) if text.isascii() else [line + "\n" for line in text.split("\n")]
        linecache.cache[path] = (len(text), None, lines, path)
        self._module = types.ModuleType("__main__")
        # As in Jupyter, __file__ is not defined. It calls the path of a notebook __session__.
        self._module.__dict__.update(__builtins__=__builtins__, __session__=path, display=_display)
        if _has_ipython():
            self._module.__dict__["get_ipython"] = _Shell(self._module)
        sys.modules["__main__"] = self._module
        if "tqdm.notebook" in text:
            with contextlib.suppress(ImportError):  # in Jupyter, tqdm.auto has done that
                importlib.import_module("tqdm.notebook")

    def all(self) -> None:
        """Run all cells, within an event loop if one of them awaits."""
        if any(self._awaits(cell) for cell in self._cells):
            import asyncio

            asyncio.run(self._all())
            return
        with contextlib.suppress(StopIteration):
            self._all().send(None)

    async def _all(self) -> None:
        for cell in self._cells:
            if cell.is_skipped:
                continue
            for line in cell.installs:
                sys.stderr.write("detaudit: cell %d, line %d is not run: %s\n" % (cell.number, line, _INSTALLS))
            try:
                if cell.capture is None:
                    await self._cell(cell)
                else:
                    await self._captured(cell)
            except Exception:
                if not cell.may_raise:
                    raise
                _show(self._path, *sys.exc_info())

    async def _captured(self, cell: Any) -> None:
        stdout, stderr = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                await self._cell(cell)
        finally:
            if cell.capture:
                self._module.__dict__[cell.capture] = _Captured(stdout.getvalue(), stderr.getvalue())

    async def _cell(self, cell: Any) -> None:
        for code in self._compiled(cell):
            result = eval(code, self._module.__dict__)  # noqa: S307 - the user's own code
            if code.co_flags & _ASYNC:
                await result

    def _awaits(self, cell: Any) -> bool:
        try:
            return any(code.co_flags & _ASYNC for code in self._compiled(cell))
        except (SyntaxError, ValueError):
            return False  # known when it is the cell's turn

    def _compiled(self, cell: Any) -> Iterator[CodeType]:
        """Yield the code of a cell, and that of a last expression that is shown."""
        if cell.is_skipped:
            return
        text = "\n" * (reading.PER_CELL * cell.number) + "\n".join(cell.code) + "\n"
        tree = compile(text, self._path, "exec", self._flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        last = [one for one in tree.body[-1:] if isinstance(one, ast.Expr) and not _is_silent(text, one)]
        code = compile(ast.Module(tree.body[: len(tree.body) - len(last)], []), self._path, "exec", self._flags, True)
        self._flags |= code.co_flags & _FUTURES
        yield code
        if last:
            yield compile(ast.Interactive([*last]), self._path, "single", self._flags, True)


_INSTALLS = "an audit installs nothing"


def _is_silent(text: str, last: ast.Expr) -> bool:
    """Whether a semicolon follows an expression, which then is not shown."""
    lines = text.split("\n")
    rest = lines[last.end_lineno - 1].encode()[last.end_col_offset :]  # type: ignore[operator]
    return rest.lstrip().startswith(b";")


def _has_ipython() -> bool:
    return importlib.util.find_spec("IPython") is not None


def _show(path: str, kind: Any, error: Any, trace: TracebackType | None) -> None:
    """Print a traceback from the first cell on, with cells and lines."""
    while trace is not None and trace.tb_frame.f_code.co_filename != path and _leads(trace, path):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(kind, error, trace))
    pattern = rf'(File "{re.escape(path)}"), line (\d+)'

    def located(match: re.Match[str]) -> str:
        number, line = divmod(int(match[2]), reading.PER_CELL)
        return "%s, cell %d, line %d" % (match[1], number, line) if number else match[0]

    sys.stderr.write(re.sub(pattern, located, text))


def _leads(trace: TracebackType, path: str) -> bool:
    one: TracebackType | None = trace
    while one is not None and one.tb_frame.f_code.co_filename != path:
        one = one.tb_next
    return one is not None


def main() -> None:
    """Run the notebook that the command line names, with its folder as the working directory, as Jupyter does."""
    path = os.path.abspath(sys.argv[1])
    sys.argv[:] = [path, *sys.argv[2:]]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(path)
    os.chdir(os.path.dirname(path))
    if os.environ.get("MPLBACKEND", "module://").startswith("module://"):  # nobody looks at the plots of a run
        os.environ["MPLBACKEND"] = "Agg"
    sys.excepthook = lambda kind, error, trace: _show(path, kind, error, trace)
    try:
        run = _Run(path)
    except reading.NotebookError as error:
        sys.exit(f"{path}: {error.place} {error}")
    run.all()


if __name__ == "__main__":
    main()
