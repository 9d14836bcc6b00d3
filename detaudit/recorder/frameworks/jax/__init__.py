"""Hook trainings in JAX."""
