"""What a training starts a step with, name by name, and the end of a run in the middle: for runs that are resumed."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys

from ... import wire
from . import digest, generators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    class Training(Protocol):
        """What counts steps; see steps.py."""

        steps: int
        held: Callable[[], Iterable[tuple[str, str, str, str]]]

        def write(self) -> None:
            """Write the events of the steps that ended."""

        def held_at(self, step: int, values: list[list[str]]) -> None:
            """Write what it held when a step began."""

        def guarded(self, where: str, function: Callable[[], object]) -> None:
            """Call a function and record its exception."""


_PLAIN = (bool, int, float, str, type(None))
_MOST = 20_000
_LONGEST = 60


class Held:
    """Writes what a training holds when a step begins, and ends this process when one begins.

    Both are asked for by variables (ENV_HELD, ENV_STOP), and most runs have neither. A step begins with a call of a
    model that learns, the last one before a loss; without such a call, with the loss. ``seen`` is how many steps there
    were when one was last seen to begin.
    """

    def __init__(self) -> None:
        self.step, self.stop = (int(os.environ.get(name) or 0) for name in (wire.ENV_HELD, wire.ENV_STOP))
        self.seen = -1
        self._first: int | None = None

    def __bool__(self) -> bool:
        return bool(self.step or self.stop)

    def begins(self, training: Training) -> None:
        """Note that a step of a training begins, or goes on."""
        self.seen = training.steps
        if self.stop and training.steps >= self.stop:
            self._end(training)
        self._first = training.steps if self._first is None else self._first
        if self.step and training.steps in ((self._first,) if self.step == 1 else (self.step - 1,)):
            training.guarded("held", lambda: self._write(training))

    def ended(self, training: Training) -> None:
        """Note that a step of a training ended whose beginning nobody may have seen."""
        if self.stop and training.steps > self.stop:
            self._end(training)

    def _end(self, training: Training) -> None:
        self.stop = 0  # a script that catches the signal may finish the step and save
        training.write()
        os.kill(os.getpid(), signal.SIGTERM)

    def _write(self, training: Training) -> None:
        held = [*_generators(), *training.held()]
        names: dict[tuple[str, str], int] = {}
        lines = []
        for of, name, text, of_value in held[:_MOST]:
            again = names[of, name] = names.get((of, name), 0) + 1
            lines.append([of, name if again == 1 else "%s#%d" % (name, again), text, of_value])
        training.held_at(self.step, lines)


def plain(of: str, name: str, value: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield the numbers and texts of a state, with their names in it; what is neither is left out."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from plain(of, "%s.%s" % (name, key) if name else str(key), one)
    elif isinstance(value, (list, tuple)) and len(value) <= 64:
        for index, one in enumerate(value):
            yield from plain(of, "%s.%d" % (name, index), one)
    elif isinstance(value, _PLAIN):
        text = repr(value)
        yield of, name, text[:_LONGEST], digest.of_bytes(text.encode("utf-8", "backslashreplace"))


def objects(*types: type[Any]) -> Iterator[Any]:
    """Yield the objects of these types that are alive, about in the order in which they were made."""
    for generation in (2, 1, 0):
        for one in gc.get_objects(generation):
            if issubclass(type(one), types):
                yield one


def variable(value: Any, otherwise: str) -> str:
    """Return the name of a variable of the script that has this value."""
    script = sys.modules.get("__main__")
    names = [name for name, one in vars(script).items() if one is value] if script is not None else []
    return names[0] if names else otherwise


def _generators() -> Iterator[tuple[str, str, str, str]]:
    for name, of_state in generators.digests().items():
        yield wire.HELD_GENERATOR, name, "", of_state
    script = sys.modules.get("__main__")
    own: Iterable[Any] = [*objects(random.Random)]
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        own = [*own, *objects(numpy.Generator, numpy.RandomState)]
    for one in own:
        name = variable(one, "")
        if one is not getattr(sys.modules["random"], "_inst", None) and name:
            yield wire.HELD_GENERATOR, name, "", digest.of_bytes(repr(_state(one)).encode())
    torch: Any = sys.modules.get("torch")
    if torch is None or script is None:
        return
    seen: set[int] = set()
    data: Any = sys.modules.get("torch.utils.data")
    loaders = [*objects(data.DataLoader, data.Sampler)] if data is not None else []
    owners = [(variable(one, type(one).__name__), getattr(one, "generator", None)) for one in loaders]
    variables = [(name, one) for name, one in vars(script).items() if isinstance(one, torch.Generator)]
    for name, one in (*variables, *(("%s.generator" % owner, one) for owner, one in owners)):
        if isinstance(one, torch.Generator) and one is not torch.default_generator and id(one) not in seen:
            seen.add(id(one))
            yield wire.HELD_GENERATOR, name, "", digest.of_bytes(bytes(one.get_state().numpy().tobytes()))


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return [(name, repr(value)) for name, value in sorted(generator.bit_generator.state.items())]
    return [repr(one) if not hasattr(one, "tobytes") else one.tobytes() for one in generator.get_state(legacy=True)]
