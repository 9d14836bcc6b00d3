"""The code that saves and restores what a resumed training lost, for a dict that torch saves and loads."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from detaudit.fix.changes import Change, Text, all_applied, diff, text_of
from detaudit.model.resume import Checkpoint, Lost, LostKind
from detaudit.source.text import SourceText, argument_of, last

_STATEFUL = (
    LostKind.WEIGHTS,
    LostKind.BUFFERS,
    LostKind.OTHER_MODEL,
    LostKind.OPTIMIZER,
    LostKind.LEARNING_RATE,
    LostKind.SCHEDULER,
    LostKind.SCALER,
)
"""What has a ``state_dict``; the first part of its names is a variable, or the name of its class."""

_LIST = '[part.tolist() if hasattr(part, "tolist") else part for part in {}]'
"""A state of NumPy as ``torch.load`` reads it with ``weights_only``."""


@dataclass(frozen=True)
class _State:
    """A state to be saved under a key: the expression that gives it, and the statement that restores ``{}``."""

    key: str
    saved: str
    restored: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """Edits of one file that may restore what was lost; ``file`` is seen from the folder of runs."""

    file: str
    before: Text
    after: Text
    what: tuple[LostKind, ...]

    def diff(self) -> str:
        """Return the edits as a unified diff."""
        return diff({self.file: self.before}, {self.file: self.after})


def proposal(lost: Iterable[Lost], checkpoints: Iterable[Checkpoint], folder: Path) -> Proposal | None:
    """Return the edits that may restore what was lost, None if the script does not save a dict with torch in one file.

    ``folder`` is the user's folder in which runs start.
    """
    lost = [*lost]
    for read in checkpoints:
        path = Path(read.file)
        if (
            read.by != "torch"
            or not read.line
            or path.suffix != ".py"
            or path.is_absolute()
            or {"..", "site-packages"} & {*path.parts}
        ):
            continue
        with suppress(OSError, SyntaxError, ValueError, RecursionError):
            before = text_of(read.file, (folder / path).read_bytes())
            page = SourceText("".join(before.lines))
            code = _Checkpointing.at(page, read.line)
            if code is None:
                continue
            states = [(one.what, state) for one in lost for state in _states(code, one)]
            changes = code.changes(read.file, [*dict.fromkeys(state for _, state in states)])
            after = all_applied({read.file: before}, changes)
            if after:
                return Proposal(read.file, before, after[read.file], tuple(dict.fromkeys(what for what, _ in states)))
    return None


# Which states are to be saved.


def _states(code: "_Checkpointing", lost: Lost) -> Iterator[_State]:
    page = code.page
    if lost.what is LostKind.GENERATOR:
        for name in lost.names:
            yield from _generator(code, name)
    elif lost.what in _STATEFUL:
        shown = dict.fromkeys(match[0] for name in lost.names if (match := re.match(r"[A-Za-z_]\w*", name)))
        for variable in dict.fromkeys(_variable(page, name) for name in shown):
            if variable:
                yield _State(variable, f"{variable}.state_dict()", f"{variable}.load_state_dict({{}})")


def _generator(code: "_Checkpointing", name: str) -> Iterator[_State]:
    """Yield the state of a generator of torch, Python or NumPy, or of one that is a variable."""
    match name:
        case "torch":
            torch, needs = _module(code.page, "torch", "")
            yield _State("torch_rng", f"{torch}.get_rng_state()", f"{torch}.set_rng_state({{}})", needs)
        case "random":
            module, needs = _module(code.page, "random", "")
            yield _State("python_rng", f"{module}.getstate()", f"{module}.setstate({{}})", needs)
        case "numpy.random":
            module, needs = _module(code.page, "numpy", "np")
            state = code.loadable(f"{module}.random.get_state()")
            yield _State("numpy_rng", state, f"{module}.random.set_state({{}})", needs)
        case _:
            made = {code.page.full(call.func) for call in _made(code.page, name)}
            if made & {"numpy.random.default_rng", "numpy.random.Generator"}:
                yield _State(name, f"{name}.bit_generator.state", f"{name}.bit_generator.state = {{}}")
            elif "numpy.random.RandomState" in made:
                yield _State(name, code.loadable(f"{name}.get_state()"), f"{name}.set_state({{}})")
            elif "random.Random" in made:
                yield _State(name, f"{name}.getstate()", f"{name}.setstate({{}})")
            elif "torch.Generator" in made:
                yield _State(name, f"{name}.get_state()", f"{name}.set_state({{}})")


def _module(page: SourceText, module: str, short: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of a module in a file, and the import that it needs."""
    imported = [
        name.asname or name.name
        for node in ast.walk(page.reader.tree)
        if isinstance(node, ast.Import)
        for name in node.names
        if name.name == module
    ]
    alias = f"import {module} as {short}" if short else f"import {module}"
    return (imported[0], ()) if imported else (short or module, (alias,))


def _assignments(page: SourceText) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(page.reader.tree):
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))


def _made(page: SourceText, variable: str) -> list[ast.Call]:
    """Return the calls that a variable is assigned from, those of its methods included."""
    values = [value for name, value in _assignments(page) if name == variable]
    return [node for value in values for node in ast.walk(value) if isinstance(node, ast.Call)]


def _variable(page: SourceText, shown: str) -> str:
    """Return the variable with this name, or the only one that is made by a class with it; else an empty text."""
    assigned = [*_assignments(page)]
    if any(name == shown for name, _ in assigned):
        return shown
    made = {name for name, value in assigned if isinstance(value, ast.Call) and last(value.func) == shown}
    return made.pop() if len(made) == 1 else ""


# Where a file saves and loads its checkpoint, and the lines that do so too.


@dataclass(frozen=True)
class _Checkpointing:
    """A statement ``load`` that assigns what torch loads to ``variable``, in a ``suite``; ``saves`` save a dict."""

    page: SourceText
    load: ast.Assign
    variable: str
    suite: Sequence[ast.stmt]
    saves: Sequence[tuple[ast.stmt, ast.Call]]

    @classmethod
    def at(cls, page: SourceText, line: int) -> "_Checkpointing | None":
        """Return the code that loads at a line, None if it assigns no dict to a variable, or none is saved."""
        suites = [
            suite
            for node in ast.walk(page.reader.tree)
            for _, suite in ast.iter_fields(node)
            if isinstance(suite, list) and suite and all(isinstance(one, ast.stmt) for one in suite)
        ]
        calls = [
            (suite, one, call)
            for suite in suites
            for one in suite
            if isinstance(one, ast.Expr | ast.Assign) and _is_alone(page, one)
            if isinstance(call := one.value, ast.Call)
        ]
        saves = [
            (one, call)
            for _, one, call in calls
            if page.full(call.func) == "torch.save" and call.args and isinstance(call.args[0], ast.Dict | ast.Name)
        ]
        for suite, one, call in calls:
            if one.lineno <= line <= (one.end_lineno or 0) and page.full(call.func) == "torch.load" and saves:
                match one:
                    case ast.Assign(targets=[ast.Name(id=variable)]) if _keys(page, variable):
                        return cls(page, one, variable, suite, saves)
                    case _:
                        pass
        return None

    def loadable(self, state: str) -> str:
        """Return the expression of a state of NumPy as this code can load it."""
        call = self.load.value
        only = argument_of(call, "weights_only") if isinstance(call, ast.Call) else None
        return state if isinstance(only, ast.Constant) and not only.value else _LIST.format(state)

    def changes(self, file: str, states: Sequence[_State]) -> list[Change]:
        """Return the changes that save these states, unless they are, and restore them."""
        saved = self._saved()
        used = {*saved.values(), *_keys(self.page, self.variable)}
        keys = {one: saved.get(one.saved) or (f"{one.key}_state" if one.key in used else one.key) for one in states}
        new = {keys[one]: one.saved for one in states if one.saved not in saved}
        needs = tuple(dict.fromkeys(need for one in states for need in one.needs))
        restoring = [one.restored.format(f'{self.variable}["{key}"]') for one, key in keys.items()]
        saving = [self._saving(file, *save, new) for save in self.saves] if new else []
        return [*saving, self._restoring(file, restoring, needs)] if states else []

    def _saved(self) -> dict[str, str]:
        """Return the key of each expression that is saved."""
        saved: dict[str, str] = {}
        names = {call.args[0].id for _, call in self.saves if isinstance(call.args[0], ast.Name)}
        for node in ast.walk(self.page.reader.tree):
            match node:
                case ast.Dict(keys=keys, values=values):
                    pairs = zip(keys, values, strict=True)
                    saved |= {ast.unparse(v): str(k.value) for k, v in pairs if isinstance(k, ast.Constant)}
                case ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key)))], value=value
                ) if name in names:
                    saved[ast.unparse(value)] = key
                case _:
                    pass
        return saved

    def _saving(self, file: str, statement: ast.stmt, call: ast.Call, new: dict[str, str]) -> Change:
        first, end = statement.lineno, statement.end_lineno or 0
        lines = tuple(self.page.lines[first - 1 : end])
        if not isinstance(call.args[0], ast.Dict):
            indent, name = " " * statement.col_offset, ast.unparse(call.args[0])
            return Change(file, first, lines, (*(f'{indent}{name}["{key}"] = {new[key]}' for key in new), *lines))
        keys, values = call.args[0].keys, call.args[0].values
        at = self.page.span(values[-1])[1] if values else self.page.span(call.args[0])[1] - 1
        below = bool(values) and values[-1].end_lineno != call.args[0].end_lineno and keys[0] is not None
        between = f",\n{' ' * (keys[0].col_offset if keys[0] is not None else 0)}" if below else ", "
        entries = between.join(f'"{key}": {value}' for key, value in new.items())
        edited = self.page.edited([(at, at, f"{between}{entries}" if values else entries)])
        more = len(edited.lines) - len(self.page.lines)
        return Change(file, first, lines, tuple(edited.lines[first - 1 : end + more]))

    def _restoring(self, file: str, code: Sequence[str], needs: tuple[str, ...]) -> Change:
        """Return the change that restores after the last statement beside the load that reads what was loaded."""
        later = self.suite[self.suite.index(self.load) :]
        reads = [one for one in later if one is self.load or self.variable in _names(one)]
        indent = " " * self.load.col_offset
        restoring = tuple(f"{indent}{line}" for line in code)
        if isinstance(reads[-1], ast.Return):
            old = (self.page.lines[reads[-1].lineno - 1],)
            return Change(file, reads[-1].lineno, old, (*restoring, *old), needs)
        end = reads[-1].end_lineno or 0
        old = (self.page.lines[end - 1],)
        return Change(file, end, old, (*old, *restoring), needs)


def _is_alone(page: SourceText, statement: ast.stmt) -> bool:
    """Whether nothing precedes a statement on its line."""
    return not page.lines[statement.lineno - 1].encode()[: statement.col_offset].strip()


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _keys(page: SourceText, variable: str) -> set[str]:
    """Return the keys by which a variable is read."""
    return {
        str(node.slice.value)
        for node in ast.walk(page.reader.tree)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if isinstance(node.value, ast.Name) and node.value.id == variable
    }
