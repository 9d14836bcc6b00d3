"""Change the DataLoaders of torch: no workers, seeded workers, or batches in order."""

from __future__ import annotations

import inspect

from . import PatchOptions, apply, loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes

_OF_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout", "in_order")


def _edit(changes: Changes, edit: Callable[[dict[str, Any], Any], None]) -> None:
    """Call ``edit`` to change the arguments of every DataLoader, including subclasses, before it is created."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError:
                given = None  # the original raises for these arguments
            if given is None:
                function(self, *args, **kwargs)
            else:
                edit(given.arguments, signature.parameters)
                function(*given.args, **given.kwargs)

        return __init__

    changes.replace(loaded("torch.utils.data.dataloader").DataLoader, "__init__", make)


def no_workers(options: PatchOptions, changes: Changes) -> None:
    """Load data in the training process, and drop the options that need workers, which would raise."""

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        for name in ("num_workers", *_OF_WORKERS):
            arguments.pop(name, None)

    _edit(changes, edit)


def in_order(options: PatchOptions, changes: Changes) -> None:
    """Return batches in order. Versions of torch without the option ``in_order`` always do."""

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        if "in_order" in parameters:
            arguments["in_order"] = True

    _edit(changes, edit)


class WorkerInit:
    """A ``worker_init_fn`` that seeds before and after the user's own one. It is pickled for spawned workers."""

    def __init__(self, users: Callable[[int], Any] | None) -> None:
        self._users = users

    def __call__(self, worker: int) -> None:
        """Seed this worker."""
        seed = loaded("torch.utils.data").get_worker_info().seed  # the loader's base seed plus the worker's number
        _seed(seed)
        if self._users is not None:
            self._users(worker)
            _seed(seed)
        for module, patch in (
            ("random", "seed-python-generators"),
            ("numpy.random.bit_generator", "seed-numpy-entropy"),
            ("torch", "seed-torch-generators"),
        ):
            if _is_loaded(module):
                apply(patch, PatchOptions(seed))


def _is_loaded(module: str) -> bool:
    import sys

    return module in sys.modules


def _seed(seed: int) -> None:
    loaded("random").seed(seed)
    loaded("torch").manual_seed(seed)
    if _is_loaded("numpy.random"):
        loaded("numpy.random").seed(seed % 2**32)


def seed_workers(options: PatchOptions, changes: Changes) -> None:
    """Seed Python, NumPy, torch and unseeded generators in each worker.

    The seeds derive from the base seed of the loader, which its generator draws, or torch's global one.
    """

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        users = arguments.get("worker_init_fn")
        if arguments.get("num_workers") and not isinstance(users, WorkerInit):
            arguments["worker_init_fn"] = WorkerInit(users)

    _edit(changes, edit)
