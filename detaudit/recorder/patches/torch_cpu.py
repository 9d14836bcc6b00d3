"""One module of a torch model is run on the CPU, wherever the rest is."""

from __future__ import annotations

import atexit
import functools
import types
import weakref

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import Changes, Order

_WRAPPERS = ("_orig_mod.", "module.")
"""What torch.compile and the data-parallel wrappers put before the names of a model."""


def _plain(name: str) -> str:
    for prefix in _WRAPPERS:
        name = name.removeprefix(prefix)
    return name


def run_on_cpu(order: Order, changes: Changes) -> None:
    """Run the module whose name, as ``named_modules()`` of the model gives it, is the flag's value on the CPU.

    Its weights stay where they are, and a copy on the CPU takes their place for the time of each call, so optimizers,
    checkpoints and the rest of the model see no difference. Where all is on the CPU already, nothing happens.
    """
    torch = loaded("torch")
    looked_at: Any = weakref.WeakSet()
    seen = {"models": 0, "found": 0}

    def look(module: Any, _: Any) -> None:
        # The first module that is called is the whole model; those inside it are called later.
        if module in looked_at:
            return
        looked_at.update(module.modules())
        seen["models"] += 1
        try:
            for name, part in module.named_modules():
                if _plain(name) == order.value:
                    _wrap(torch, part, changes)
                    seen["found"] += 1
        except Exception as error:
            order.failed(f"{type(error).__name__}: {error}")

    def tell() -> None:
        if seen["models"] and not seen["found"]:
            order.failed(f"no model that ran has a module called {order.value!r}")

    changes.on_undo(torch.nn.modules.module.register_module_forward_pre_hook(look).remove)
    atexit.register(tell)
    changes.on_undo(lambda: atexit.unregister(tell))


def _wrap(torch: Any, module: Any, changes: Changes) -> None:
    original = module.forward
    if hasattr(original, "__detaudit_cpu__"):
        return  # it is part of two models
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
    # A bound method, because those can be copied and pickled. What was patched is not kept alive for taking it back.
    object.__setattr__(module, "forward", types.MethodType(forward, module))


def _device(torch: Any, *trees: Any) -> Any:
    """Return the device of the first tensor that is not on the CPU, None where all are."""
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
