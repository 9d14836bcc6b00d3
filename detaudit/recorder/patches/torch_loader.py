"""DataLoaders of torch: without workers, with workers that are seeded, with batches in order."""

from __future__ import annotations

import inspect

from . import Order, apply, loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Changes

_OF_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout", "in_order")


def _edit(changes: Changes, edit: Callable[[dict[str, Any], Any], None]) -> None:
    """Have ``edit`` change the arguments of every DataLoader, also of subclasses, before it is made."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError:
                given = None  # the original says what is wrong with them
            if given is None:
                function(self, *args, **kwargs)
            else:
                edit(given.arguments, signature.parameters)
                function(*given.args, **given.kwargs)

        return __init__

    changes.replace(loaded("torch.utils.data.dataloader").DataLoader, "__init__", make)


def no_workers(order: Order, changes: Changes) -> None:
    """Load in the process that trains; without workers, their other options would raise."""

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        for name in ("num_workers", *_OF_WORKERS):
            arguments.pop(name, None)

    _edit(changes, edit)


def in_order(order: Order, changes: Changes) -> None:
    """Take the batches in order; before ``in_order`` there was nothing else."""

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        if "in_order" in parameters:
            arguments["in_order"] = True

    _edit(changes, edit)


class WorkerInit:
    """A ``worker_init_fn`` that seeds before and after the script's own; a spawned worker unpickles it."""

    def __init__(self, users: Callable[[int], Any] | None) -> None:
        self._users = users

    def __call__(self, worker: int) -> None:
        """Seed a worker, which torch has told who it is."""
        seed = loaded("torch.utils.data").get_worker_info().seed  # the loader's base seed and the worker's number
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
                apply(patch, Order(seed))


def _is_loaded(module: str) -> bool:
    import sys

    return module in sys.modules


def _seed(seed: int) -> None:
    loaded("random").seed(seed)
    loaded("torch").manual_seed(seed)
    if _is_loaded("numpy.random"):
        loaded("numpy.random").seed(seed % 2**32)


def seed_workers(order: Order, changes: Changes) -> None:
    """Seed Python, NumPy and torch in each worker, and what makes a generator without a seed there.

    The seeds come from the base seed of the loader, which comes from its generator, or torch's.
    """

    def edit(arguments: dict[str, Any], parameters: Any) -> None:
        users = arguments.get("worker_init_fn")
        if arguments.get("num_workers") and not isinstance(users, WorkerInit):
            arguments["worker_init_fn"] = WorkerInit(users)

    _edit(changes, edit)
