"""Fill uninitialized memory of torch and NumPy with zeros."""

from __future__ import annotations

import importlib

from . import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes, PatchOptions

_TORCH = ("empty", "empty_like", "empty_strided", "empty_permuted")
_TENSOR = ("new_empty", "new_empty_strided")
_NUMPY = ("empty", "empty_like")


def fill_torch(options: PatchOptions, changes: Changes) -> None:
    """Fill the results of torch.empty and similar functions, and memory that ``resize_`` adds.

    The result of ``torch.Tensor(2, 3)`` is not filled: torch.Tensor is a C class.
    """
    torch = loaded("torch")
    # On its first use, torch builds this set of torch.empty and others. It looks up the originals in it.
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

    for name in filter(lambda name: hasattr(torch, name), _TORCH):  # older versions have no empty_permuted
        _as_builtin(torch, changes.replace(torch, name, filled, traced=True), name)
    for name in _TENSOR:
        changes.replace(torch.Tensor, name, filled)
    for name in ("resize_", "resize_as_"):
        changes.replace(torch.Tensor, name, resized)


def _is_plain(torch: Any, tensor: Any) -> bool:
    # A subclass may react to writes, and compilers trace with subclasses, whose memory belongs to the compiler.
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type != "meta"


def _zero(torch: Any, tensor: Any) -> None:
    if _is_plain(torch, tensor):
        with torch.no_grad():  # torch refuses to write to a leaf that requires a gradient
            tensor.zero_()


_known_by_address: list[Any] = []
"""What TorchScript takes for a C function by its address, which must never become that of another function."""


def _as_builtin(torch: Any, wrapper: Any, name: str) -> None:
    _known_by_address.append(wrapper)
    try:
        torch.jit._builtins._register_builtin(wrapper, "aten::" + name)
    except AttributeError:
        pass  # a version without it


def fill_numpy(options: PatchOptions, changes: Changes) -> None:
    """Fill the results of np.empty and np.empty_like. ``np.ndarray(shape)`` is not filled: np.ndarray is a C class."""
    numpy = loaded("numpy")

    def filled(function: Callable[..., Any]) -> Callable[..., Any]:
        def empty(*args: Any, **kwargs: Any) -> Any:
            array = function(*args, **kwargs)
            if isinstance(array, numpy.ndarray) and not array.dtype.hasobject:
                # Write past a subclass: writing to a masked array, for one, changes its mask too.
                array.view(numpy.ndarray)[...] = numpy.zeros((), array.dtype)
            return array

        return empty

    for name in _NUMPY:
        changes.replace(numpy, name, filled)
