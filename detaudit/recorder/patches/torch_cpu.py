"""Run one module of a torch model on the CPU."""

from __future__ import annotations

import atexit
import functools
import types
import weakref

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import Changes, PatchOptions

_WRAPPERS = ("_orig_mod.", "module.")
"""Prefixes that torch.compile and the data-parallel wrappers add to the names of modules."""


def _plain(name: str) -> str:
    for prefix in _WRAPPERS:
        name = name.removeprefix(prefix)
    return name


def run_on_cpu(options: PatchOptions, changes: Changes) -> None:
    """Run a module on the CPU; the flag's value is its name in the model's ``named_modules()``.

    The weights keep their device, and a copy on the CPU replaces them during each call. Optimizers, checkpoints and
    the rest of the model are not affected. Nothing changes if everything is on the CPU anyway.
    """
    torch = loaded("torch")
    searched: Any = weakref.WeakSet()
    seen = {"models": 0, "found": 0}

    def search(module: Any, _: Any) -> None:
        # The first module to be called is the whole model; those inside it are called later.
        if module in searched:
            return
        searched.update(module.modules())
        seen["models"] += 1
        try:
            for name, part in module.named_modules():
                if _plain(name) == options.value:
                    _wrap(torch, part, changes)
                    seen["found"] += 1
        except Exception as error:
            options.failed(f"{type(error).__name__}: {error}")

    def report_missing() -> None:
        if seen["models"] and not seen["found"]:
            options.failed(f"no model that ran has a module named {options.value!r}")

    changes.on_undo(torch.nn.modules.module.register_module_forward_pre_hook(search).remove)
    atexit.register(report_missing)
    changes.on_undo(lambda: atexit.unregister(report_missing))


def _wrap(torch: Any, module: Any, changes: Changes) -> None:
    original = module.forward
    if hasattr(original, "__detaudit_cpu__"):
        return  # this module is part of two models
    bound = getattr(original, "__self__", None) is module
    function = original.__func__ if bound else original

    @functools.wraps(function)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = functools.partial(function, self) if bound else function
        device = _device(torch, (*self.parameters(), *self.buffers()), args, kwargs)
        if device is None or not changes.in_force:
            return call(*args, **kwargs)
        return _moved(torch, _on_cpu(torch, self, call, args, kwargs), device)

    forward.__detaudit_cpu__ = True  # type: ignore[attr-defined]
    # A bound method can be copied and pickled. The module is not kept alive to undo the change.
    object.__setattr__(module, "forward", types.MethodType(forward, module))


def _device(torch: Any, *trees: Any) -> Any:
    """Return the device of the first tensor that is not on the CPU, or None if all are."""
    leaves = torch.utils._pytree.tree_leaves(trees)
    return next((leaf.device for leaf in leaves if torch.is_tensor(leaf) and leaf.device.type != "cpu"), None)


def _moved(torch: Any, tree: Any, device: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda leaf: leaf.to(device) if torch.is_tensor(leaf) else leaf, tree)


def _on_cpu(torch: Any, module: Any, call: Any, args: Any, kwargs: Any) -> Any:
    # Gradients flow back through the copies.
    state = {name: tensor.cpu() for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    args, kwargs = _moved(torch, (args, kwargs), "cpu")
    with torch.nn.utils.stateless._reparametrize_module(module, state, tie_weights=True):
        result = call(*args, **kwargs)
    with torch.no_grad():
        for name, buffer in module.named_buffers():  # such as the running mean of a batch norm
            if state[name] is not buffer:
                buffer.copy_(state[name])
    return result
