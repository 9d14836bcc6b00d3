"""One adapter for each framework, loaded only when the script imports it."""

ADAPTERS = {
    "torch": "torch",
    "tensorflow": "tensorflow",
    "jax": "jax",
    "optax": "jax_updates",
    "keras": "jax_updates",
}
"""Top-level module that a script imports, and the file here that knows how to watch it."""

GENERATORS = ("random", "numpy.random")
"""Modules whose import brings a global random generator; see rng.py."""

SEEDED = ("random", "numpy.random", "torch", "tensorflow", "jax")
"""Modules with functions that take a seed; see sources.py."""

WATCHED = (
    ("random", "draws", "watch_python"),
    ("numpy.random", "draws", "watch_numpy"),
    ("numba.core.config", "draws", "leave"),
    ("torch._dynamo.eval_frame", "draws", "leave_to_dynamo"),
    ("concurrent.futures._base", "arrivals", "watch_futures"),
    ("concurrent.futures.thread", "threads", "name_tasks"),
    ("multiprocessing.pool", "arrivals", "watch_pool"),
    ("queue", "queues", "watch"),
    ("torch.utils.data.dataloader", "arrivals", "watch_loaders"),
)
"""Modules, and the file and the function that watch what is drawn or handed out there, before any flag is applied."""
