"""One adapter for each framework, loaded only when the script imports it."""

ADAPTERS = {
    "torch": "torch.watcher",
    "tensorflow": "tensorflow.watcher",
    "jax": "jax.watcher",
    "optax": "jax.updates",
    "keras": "jax.updates",
}
"""Top-level module that a script imports, and the file here that knows how to watch it."""

GENERATORS = ("random", "numpy.random")
"""Modules whose import brings a global random generator; see training/generators.py."""

SEEDED = ("random", "numpy.random", "torch", "tensorflow", "jax")
"""Modules with functions that take a seed; see randomness/seeds.py."""

WATCHED = (
    ("random", "randomness.draws", "watch_python"),
    ("numpy.random", "randomness.draws", "watch_numpy"),
    ("numba.core.config", "randomness.draws", "leave"),
    ("torch._dynamo.eval_frame", "randomness.draws", "leave_to_dynamo"),
    ("concurrent.futures._base", "randomness.completion_order", "watch_futures"),
    ("concurrent.futures.thread", "process.threads", "name_tasks"),
    ("multiprocessing.pool", "randomness.completion_order", "watch_pool"),
    ("queue", "randomness.queues", "watch"),
    ("torch.utils.data.dataloader", "randomness.completion_order", "watch_loaders"),
)
"""Modules, and the file and the function that watch what is drawn or handed out there, before any flag is applied."""
