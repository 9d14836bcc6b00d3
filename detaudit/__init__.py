"""detaudit: is a training script deterministic, and which settings make it so.

A script may call ``record`` where no hook can see its training; outside an audit that does nothing.
"""

import sys as _sys

__version__ = "0.1.0"


def record(*, loss: object = None, weights: object = None) -> None:
    """Tell an audit that a training step ended. Outside an audit this costs one look-up.

    ``loss`` is a number or an array of one element; ``weights`` an array, a number, or a list, tuple or dict
    of them, nested as you like: NumPy, torch, JAX, or anything that NumPy can read. Without weights an audit can
    find that runs differ, but never that they are equal. Nothing is raised, whatever goes wrong: the audit's
    report says it.
    """
    script = _sys.modules.get("_detaudit.recorder.script")
    if script is not None:
        script.record(loss, weights)
