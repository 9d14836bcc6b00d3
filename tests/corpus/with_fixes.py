"""Run a script after applying the fixes named before it: those that measure.py cannot apply from outside the process.

python with_fixes.py seeds,deterministic script.py
"""

import importlib
import random
import runpy
import sys
from pathlib import Path

FRAMEWORKS = ("torch", "tensorflow")
"""The order in which the script's text is searched for them; ``keras`` stands for tensorflow."""


def framework_of(script: Path) -> str:
    """Return the name of the framework that a script trains with."""
    text = script.read_text()
    if not any(f"import {name}" in text for name in (*FRAMEWORKS, "keras")):
        return "sklearn"
    return "tensorflow" if "import tensorflow" in text or "import keras" in text else "torch"


def fix(word: str, name: str) -> None:
    """Apply one fix, in the framework with this name."""
    framework = importlib.import_module(name)
    if word == "seeds":
        random.seed(0)
        importlib.import_module("numpy.random").seed(0)
        if name != "sklearn":
            framework.manual_seed(0) if name == "torch" else framework.random.set_seed(0)
    elif word == "deterministic":
        if name == "torch":
            framework.use_deterministic_algorithms(True)
        else:
            framework.config.experimental.enable_op_determinism()
    elif word == "one-thread":
        if name == "torch":
            framework.set_num_threads(1)
        else:
            framework.config.threading.set_intra_op_parallelism_threads(1)
            framework.config.threading.set_inter_op_parallelism_threads(1)
    elif word == "numpy-entropy":
        # Every unseeded generator of NumPy draws its seed from this function (numpy/random/bit_generator.pyx).
        vars(importlib.import_module("numpy.random.bit_generator"))["randbits"] = random.Random(0).getrandbits
    else:
        raise ValueError(f"unknown fix {word}")


if __name__ == "__main__":
    words, script = sys.argv[1], Path(sys.argv[2])
    for word in words.split(","):
        fix(word, framework_of(script))
    sys.argv = [str(script)]
    sys.path[0] = str(script.parent)
    runpy.run_path(str(script), run_name="__main__")
