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
