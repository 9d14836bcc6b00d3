"""Find what modules hold: what their state_dict would save, which are parameters and persistent buffers."""

from __future__ import annotations

import sys

from ...training.models import Held, ModelStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from .reader import TorchReader

_GENERATOR = "seed_generator_state"
"""The name of a random state that Keras on torch keeps among the parameters."""


def in_loader_worker() -> bool:
    """Return whether this process loads data: a transform may be a module, and its output is a batch, no result."""
    worker: Any = sys.modules.get("torch.utils.data._utils.worker")
    return worker is not None and worker._worker_info is not None


class ModuleStates(ModelStates):
    """The state of all modules in this process."""

    def __init__(self, torch: Any, reader: TorchReader, write: Callable[[Sequence[Any]], None]) -> None:
        super().__init__(torch.nn.Module, reader, write)
        self._torch, self._plain, self._address = torch, reader.plain, reader.address

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a module and its submodules, by name."""
        found: Iterable[tuple[str, Any]] = model.named_modules()
        return found

    def held(self, part: Any) -> Iterator[Held]:
        """Yield the parameters and persistent buffers of a module that have values."""
        for name, tensor in part._parameters.items():
            if self._readable(tensor) and not name.endswith(_GENERATOR):
                yield Held(name, False, tensor)
        for name, tensor in part._buffers.items():
            if name not in part._non_persistent_buffers_set and self._readable(tensor):
                yield Held(name, True, tensor)
        if type(part).__module__.startswith("torch.ao.nn."):
            yield from self._quantized(part)

    def buffers(self, part: Any) -> list[Any]:
        """Return the persistent buffers of a module that are set."""
        transient = part._non_persistent_buffers_set
        return [
            one for name, one in part._buffers.items() if one is not None and name not in transient and not one.is_meta
        ]

    def _quantized(self, part: Any) -> Iterator[Held]:
        # Quantized weights are neither parameters nor buffers.
        saved: dict[str, Any] = {}
        part._save_to_state_dict(saved, "", True)
        for name in [name for name in saved if name not in part._parameters and name not in part._buffers]:
            for tensor in saved[name] if isinstance(saved[name], tuple) else (saved[name],):
                if isinstance(tensor, self._torch.Tensor) and tensor.is_quantized:
                    yield Held(f"{name}.int_repr()", False, tensor.int_repr())
                    yield Held(f"{name}.scale", False, self._scale(tensor))
                elif self._readable(tensor):
                    yield Held(name, False, tensor)

    def _scale(self, tensor: Any) -> Any:
        torch = self._torch
        if tensor.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
            return torch.stack([tensor.q_per_channel_scales().double(), tensor.q_per_channel_zero_points().double()])
        return torch.tensor([tensor.q_scale(), float(tensor.q_zero_point())], dtype=torch.float64)

    def _readable(self, tensor: Any) -> bool:
        """Return whether this is a tensor with values: not only a shape, and with memory that FSDP did not free."""
        if self._address(tensor):
            return True
        if not isinstance(tensor, self._torch.Tensor) or tensor.is_meta or hasattr(tensor, "fake_mode"):
            return False
        if type(tensor).__name__.startswith("Uninitialized"):
            return False
        plain = self._plain(tensor)
        return bool(plain.layout != self._torch.strided or not plain.numel() or plain.untyped_storage().nbytes())

    def weights(self, module: Any) -> list[Any]:
        """Return all that a module and its submodules hold."""
        return [held.tensor for _, part in self.parts(module) for held in self.held(part)]

    def tensors(self, value: Any) -> list[Any] | None:
        """Return a tensor, or none if it cannot be read; None for what is not a tensor."""
        if not isinstance(value, self._torch.Tensor):
            return None
        return [value] if self._readable(value) and not value.is_nested and not value.is_quantized else []

    def named(self, parameters: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return parameters in the order of the modules that ran since the last step, then of the leaves of the loss.

        Their place in an optimizer is no part of a training: ``list(set(model.parameters()))`` is a common idiom.
        """
        places: dict[int, int] = {}
        for module in self.recent():
            for parameter in module.parameters():
                places.setdefault(id(parameter), len(places))
        for leaf in leaves:
            places.setdefault(id(leaf), len(places))
        return sorted(parameters, key=lambda parameter: places.get(id(parameter), len(places)))
