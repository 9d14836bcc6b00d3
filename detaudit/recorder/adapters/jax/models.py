"""Find what models on JAX hold at the end: layers of Keras, and modules of flax.nnx."""

from __future__ import annotations

from ...training.models import Held, ModelStates
from ..tensorflow.models import LayerStates
from .carried import has_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ...training.reader import FrameworkReader

__all__ = ["LayerStates", "NnxStates"]


class NnxStates(ModelStates):
    """The variables of all instances of ``nnx.Module`` that are alive at the end, but for random states."""

    def __init__(self, nnx: Any, reader: FrameworkReader, write: Callable[[Sequence[Any]], None]) -> None:
        super().__init__(nnx.Module, reader, write)
        self._nnx = nnx

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a module and the modules in it, by name."""
        inner = [(".".join(map(str, path)), module) for path, module in self._nnx.iter_modules(model)]
        return [("", model), *[(name, module) for name, module in inner if module is not model]]

    def held(self, part: Any) -> Iterator[Held]:
        """Yield the variables of a module that are not in its submodules."""
        parameter = self._nnx.Param
        for name, variable in self._variables("", vars(part)):
            array = variable.get_raw_value() if hasattr(variable, "get_raw_value") else variable.raw_value
            if has_numbers(array) and not type(variable).__name__.startswith("Rng"):
                yield Held(name, not isinstance(variable, parameter), array)

    def _variables(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, self._nnx.Variable):
            yield name, value
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield from self._variables(f"{name}/{key}" if name else str(key), inner)
        elif isinstance(value, (list, tuple)):
            for place, inner in enumerate(value):
                yield from self._variables(f"{name}/{place}", inner)
