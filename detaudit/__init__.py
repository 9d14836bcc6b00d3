"""detaudit: is a training script deterministic, and which settings make it so."""

__version__ = "0.1.0"
