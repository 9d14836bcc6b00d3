"""One adapter for each framework, loaded only when the script imports the framework."""

ADAPTERS = {
    "torch": "torch.watcher",
    "tensorflow": "tensorflow.watcher",
    "jax": "jax.watcher",
    "optax": "jax.updates",
    "keras": "jax.updates",
}
"""Top-level module that a script imports, and the module here that hooks it."""
