"""Fresh memory of torch and NumPy holds zeros, not what was left in it, whoever reads it before it is written."""

from __future__ import annotations

import importlib

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes, Order

_TORCH = ("empty", "empty_like", "empty_strided", "empty_permuted")
_TENSOR = ("new_empty", "new_empty_strided")
_NUMPY = ("empty", "empty_like")


def fill_torch(order: Order, changes: Changes) -> None:
    """Fill what torch.empty and its kin return, and what ``resize_`` adds; ``torch.Tensor(2, 3)`` is a class of C."""
    torch = loaded("torch")
    # The set is made of torch.empty and others when it is first asked for; inside torch, the originals are looked up.
    importlib.import_module("torch.utils._device")._device_constructors()

    def filled(function: Callable[..., Any]) -> Callable[..., Any]:
        def empty(*args: Any, **kwargs: Any) -> Any:
            tensor = function(*args, **kwargs)
            _zero(torch, tensor)
            return tensor

        return empty

    def resized(function: Callable[..., Any]) -> Callable[..., Any]:
        def resize(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = self.untyped_storage().nbytes() if _is_plain(torch, self) else 0
            tensor = function(self, *args, **kwargs)
            if _is_plain(torch, self):
                storage = self.untyped_storage()
                grown = torch.tensor([], dtype=torch.uint8, device=storage.device)
                grown.set_(storage, before, (max(storage.nbytes() - before, 0),)).zero_()
            return tensor

        return resize

    for name in filter(lambda name: hasattr(torch, name), _TORCH):  # empty_permuted is the youngest
        _as_builtin(torch, changes.replace(torch, name, filled, traced=True), name)
    for name in _TENSOR:
        changes.replace(torch.Tensor, name, filled)
    for name in ("resize_", "resize_as_"):
        changes.replace(torch.Tensor, name, resized)


def _is_plain(torch: Any, tensor: Any) -> bool:
    # Not a subclass: it may see what is done to it, and compilers trace with such, whose memory is the compiler's.
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type != "meta"


def _zero(torch: Any, tensor: Any) -> None:
    if _is_plain(torch, tensor):
        with torch.no_grad():  # a leaf may not be written to
            tensor.zero_()


def _as_builtin(torch: Any, wrapper: Any, name: str) -> None:
    # TorchScript knows functions of C by their addresses.
    try:
        torch.jit._builtins._register_builtin(wrapper, "aten::" + name)
    except AttributeError:
        pass  # a version without it


def fill_numpy(order: Order, changes: Changes) -> None:
    """Fill what np.empty and np.empty_like return; ``np.ndarray(shape)`` is a class of C and stays as it is."""
    numpy = loaded("numpy")

    def filled(function: Callable[..., Any]) -> Callable[..., Any]:
        def empty(*args: Any, **kwargs: Any) -> Any:
            array = function(*args, **kwargs)
            if isinstance(array, numpy.ndarray) and not array.dtype.hasobject:
                # Not through a subclass, such as a masked array, to which writing means more.
                array.view(numpy.ndarray)[...] = numpy.zeros((), array.dtype)
            return array

        return empty

    for name in _NUMPY:
        changes.replace(numpy, name, filled)
