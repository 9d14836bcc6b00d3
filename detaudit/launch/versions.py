"""Find out which packages the Python of a training has, without importing any of them."""

import json
import subprocess

from detaudit.errors import UnknownNameError

KNOWN = (
    *("torch", "torchvision", "triton", "tensorflow", "tensorflow-cpu", "tf-keras", "keras", "jax", "jaxlib", "flax"),
    *("optax", "numpy", "scipy", "scikit-learn", "pandas", "pillow", "opencv-python", "horovod", "lightning"),
    *("transformers", "accelerate", "xgboost", "lightgbm", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
)
"""Distributions whose version may change the result of a training."""

_ASK = """
import importlib.metadata as metadata, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps([platform.python_version(), found]))
"""


def installed(python: str) -> tuple[str, dict[str, str]]:
    """Return the version of an interpreter, and the versions of the KNOWN packages that it has.

    Raises UnknownNameError if it is not a Python interpreter that runs.
    """
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _ASK, *KNOWN], capture_output=True, text=True, timeout=60, check=True
        )
        version, found = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        reason = f"exit status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise UnknownNameError(f"{python} is not a working Python interpreter: {reason}", "Check --python.") from error
    return version, found
