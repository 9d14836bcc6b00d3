"""Record the state of modules: their buffers at each step, and what they hold when they are freed or at the end.

The state is what a state_dict holds: parameters and persistent buffers. A module is freed with everything still in
place if its class has ``__del__``, so that nothing needs to be kept alive for this.
"""

from __future__ import annotations

import gc
import weakref

from ...training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ...training.steps import Training
    from .reader import TorchReader


class _Ran:
    """A module that ran: its name in the outermost module, and the references to its modules with buffers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0
        self.buffers: list[tuple[weakref.ref[Any], str]] = []


class ModuleStates:
    """The state of all modules in this process."""

    def __init__(self, torch: Any, training: Training, reader: TorchReader) -> None:
        self._torch, self._training, self._reader = torch, training, reader
        self._ran: dict[int, _Ran] = {}
        self._recent: dict[int, weakref.ref[Any]] = {}
        self._over = False

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._recent, self._over = {}, False

    def install(self, guard: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        """Make every module call ``freed`` when it is freed. ``guard`` makes a hook of a function."""
        module, freed = self._torch.nn.Module, guard(self.freed)
        finalize = getattr(module, "__del__", None)

        def __del__(module_: Any) -> None:
            if finalize is not None:
                finalize(module_)
            if not self._over and id(module_) in self._ran:
                freed(module_)

        module.__del__ = __del__

    def ran(self, module: Any) -> None:
        """Note an outermost module that is about to run."""
        if id(module) not in self._recent:
            self._recent[id(module)] = weakref.ref(module)
            if id(module) not in self._ran:
                self._name(module)

    def _name(self, outermost: Any) -> None:
        for name, module in outermost.named_modules():
            self._ran.setdefault(id(module), _Ran(_path(outermost, name)))

    def named(self, parameters: Sequence[Any]) -> list[Any]:
        """Return parameters in the order of the modules that ran, then the others as they are.

        Their place in an optimizer is no part of a training: ``list(set(model.parameters()))`` is a common idiom.
        """
        modules = [module for reference in self._recent.values() if (module := reference()) is not None]
        places: dict[int, int] = {}
        for module in modules:
            for parameter in module.parameters():
                places.setdefault(id(parameter), len(places))
        return sorted(parameters, key=lambda parameter: places.get(id(parameter), len(places)))

    def at_step(self) -> str | None:
        """Return the digest of the buffers of all modules that ran since the last step, None if there are none.

        Threads may run their modules in any order, so that does not count.
        """
        recent, self._recent = self._recent, {}
        found = []
        for key, reference in recent.items():
            module = reference()
            buffers = self._buffers(key, module) if module is not None else []
            if buffers:
                found.append(digest.of_parts(self._reader.parts(buffers)))
        return digest.of_bytes("".join(sorted(found)).encode()) if found else None

    def _buffers(self, key: int, module: Any) -> list[Any]:
        known = self._ran[key]
        known.asked += 1
        if known.asked & (known.asked - 1) == 0:  # modules and buffers can be added later, but rarely are
            known.buffers = [(weakref.ref(one), name) for one in module.modules() for name in _persistent(one)]
        owners = [(owner, name) for reference, name in known.buffers if (owner := reference()) is not None]
        found = [owner._buffers.get(name) for owner, name in owners]
        return [buffer for buffer in found if buffer is not None and self._readable(buffer)]

    def freed(self, module: Any) -> None:
        """Record the state of a module that ran and is freed."""
        known = self._ran.pop(id(module))
        self._recent.pop(id(module), None)
        if not (self._torch.cuda.is_initialized() and self._torch.cuda.is_current_stream_capturing()):
            self._training.state(self._records(module, known.name), live=False)

    def at_end(self) -> None:
        """Record the state of all modules that are still alive, whether they ran or not."""
        self._over = True
        alive = [one for one in gc.get_objects() if issubclass(type(one), self._torch.nn.Module)]
        inner = {id(part) for one in alive for part in one._modules.values()}
        names = {id(one): self._ran[id(one)].name for one in alive if id(one) in self._ran}
        for one in sorted(alive, key=lambda one: id(one) in inner):
            if id(one) not in names:
                parts = [(id(part), _path(one, name)) for name, part in one.named_modules()]
                names.update([(part, path) for part, path in parts if part not in names])
        self._training.state([record for one in alive for record in self._records(one, names[id(one)])], live=True)

    def _records(self, module: Any, name: str) -> list[list[Any]]:
        """Return ``[class, name, buffer, dtype, shape, digest]`` for each tensor of a module, not of its submodules."""
        held = [(key, one) for key, one in _tensors(self._torch, module) if self._readable(one)]
        parts = self._reader.parts([tensor for _, tensor in held])
        kind = type(module).__name__
        return [
            [
                kind,
                f"{name}.{key}",
                key not in module._parameters,
                dtype,
                [int(size) for size in shape],
                "%016x" % words,
            ]
            for (key, _), (_, dtype, shape, words) in zip(held, parts)
        ]

    def _readable(self, tensor: Any) -> bool:
        """Return whether a tensor has values: memory of its own, not shape alone, and not freed as FSDP does."""
        if not isinstance(tensor, self._torch.Tensor) or tensor.is_meta or hasattr(tensor, "fake_mode"):
            return False
        if type(tensor).__name__.startswith("Uninitialized"):
            return False
        plain = self._reader.plain(tensor)
        return bool(plain.layout != self._torch.strided or not plain.numel() or plain.untyped_storage().nbytes())


def _path(outermost: Any, name: str) -> str:
    prefix = type(outermost).__name__
    return f"{prefix}.{name}" if name else prefix


def _persistent(module: Any) -> list[str]:
    return [name for name in module._buffers if name not in module._non_persistent_buffers_set]


def _tensors(torch: Any, module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that the state_dict of a module holds, by name, without those of its submodules."""
    saved = dict(module._parameters.items())
    saved.update({name: module._buffers[name] for name in _persistent(module)})
    if type(module).__module__.startswith("torch.ao.nn."):  # quantized weights are neither
        module._save_to_state_dict(saved, "", True)
    for name, value in saved.items():
        for tensor in value if isinstance(value, tuple) else (value,):
            if isinstance(tensor, torch.Tensor) and tensor.is_quantized:
                yield f"{name}.int_repr()", tensor.int_repr()
                yield f"{name}.scale", _scale(torch, tensor)
            elif isinstance(tensor, torch.Tensor):
                yield name, tensor


def _scale(torch: Any, tensor: Any) -> Any:
    if tensor.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
        return torch.stack([tensor.q_per_channel_scales().double(), tensor.q_per_channel_zero_points().double()])
    return torch.tensor([tensor.q_scale(), float(tensor.q_zero_point())], dtype=torch.float64)
