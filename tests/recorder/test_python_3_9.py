"""The recorder runs on Python 3.9 with only the standard library: in a real process, if this machine has Python 3.9."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from detaudit.runs.log_text import entries
from tests.interpreters import find

pytestmark = pytest.mark.launches

ROOT = Path(__file__).parents[2]

NUMPY = """
import contextlib, math, struct
from types import SimpleNamespace

__version__ = "0"
uint8, uint64 = "u1", int
add = SimpleNamespace(reduce=lambda array: math.fsum(array.values))

class Bytes(bytes):
    size = property(len)

class Float:
    kind = "f"
    def __str__(self):
        return "float64"

class Array:
    dtype = Float()
    def __init__(self, values, shape=None):
        self.values, self.size = values, len(values)
        self.shape = (self.size,) if shape is None else shape
    def reshape(self, size):
        return Array(self.values)
    def view(self, dtype):
        return Bytes(struct.pack("%dd" % self.size, *self.values))
    def astype(self, dtype):
        return self
    def __getitem__(self, key):
        return Array(self.values[key]) if isinstance(key, slice) else self.values[key]

def asarray(value):
    if isinstance(value, Array):
        return value
    return Array(list(value)) if isinstance(value, (list, tuple)) else Array([float(value)], ())

def ascontiguousarray(array):
    return array

def frombuffer(data, dtype):
    return 0

def empty(size, dtype):
    return None

def errstate(all):
    return contextlib.nullcontext()
"""
"""As much of NumPy as detaudit.record needs for numbers, for a Python that may not have it installed."""

SCRIPT = """
import datetime, importlib, os, pkgutil, queue, random, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed

import _detaudit.recorder
import detaudit

found = list(pkgutil.walk_packages(_detaudit.recorder.__path__, "_detaudit.recorder."))
for module in found:
    importlib.import_module(module.name)
frameworks = {"torch", "tensorflow", "jax", "keras"}
print(len(found), sorted(frameworks.intersection(sys.modules)))

random.seed(3)
random.Random()
os.listdir(".")
with os.scandir(".") as entries:
    names = [entry.name for entry in entries]
os.environ["OMP_NUM_THREADS"] = "1"
tempfile.NamedTemporaryFile().close()
with ThreadPoolExecutor(2) as pool:
    done = [future.result() for future in as_completed([pool.submit(abs, -1), pool.submit(abs, -2)])]
items = queue.Queue()
threading.Thread(target=items.put, args=(1,)).start()
items.get()
for step in range(2):
    detaudit.monitor({"values": [step, "text", None]}, "probe")
    detaudit.record(loss=0.5, weights=[step + 1.0])
"""

FLAGS = [
    ("random", {"id": "seed-generators", "patch": "seed-python-generators", "seed": 0}),
    ("os", {"id": "sort-listings", "patch": "sort-listings", "seed": 0}),
    ("os", {"id": "order-listings", "vary": "order-listings", "number": 2}),
    ("time", {"id": "count-clock", "patch": "count-clock", "seed": 0}),
    ("time", {"id": "move-clock", "vary": "move-clock", "number": 60}),
    ("datetime", {"id": "move-datetime", "vary": "move-datetime", "number": 60}),
]


@pytest.fixture(scope="module")
def python() -> str:
    found = find("3.9")
    if found is None:
        pytest.skip("no Python 3.9 is installed")
    return found


def run(python: str, folder: Path, watch: dict[str, Any] | None = None) -> tuple[list[dict[str, Any]], str]:
    """Run the script in Python 3.9, and return what is in its event log, and what it printed."""
    (folder / "numpy.py").write_text(NUMPY)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "logs").mkdir()
    env = {
        "PYTHONPATH": os.pathsep.join([str(BOOTSTRAP), str(ROOT)]),
        wire.ENV_LOGS: str(folder / "logs"),
        wire.ENV_STAGES: ",".join(wire.STAGES),
        wire.ENV_FLAGS: "\n".join(f"{module}\t{json.dumps(flag)}" for module, flag in FLAGS),
        **({} if watch is None else {wire.ENV_WATCH: json.dumps(watch)}),
    }
    done = subprocess.run(
        [python, "train.py"], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    (log,) = (folder / "logs").glob("*" + wire.LOG_SUFFIX)
    return list(entries(log)), done.stdout


def test_a_script_is_recorded_on_python_3_9(python: str, tmp_path: Path) -> None:
    lines, printed = run(python, tmp_path)
    kinds = {line["k"] for line in lines}
    assert not [line for line in lines if line["k"] == "trouble"]
    assert (lines[0]["k"], lines[-1]["k"]) == ("hello", "bye")
    assert lines[0]["python"].startswith("3.9.")
    count, frameworks = printed.split(" ", 1)
    assert int(count) >= 70
    assert frameworks == "[]\n"
    assert kinds == {
        *("hello", "flag", "source", "environ", "probe", "generators", "row", "weights", "final", "settings"),
        "bye",
        "data",
    }
    assert {line["id"]: line["state"] for line in lines if line["k"] == "flag"} == {
        flag["id"]: wire.FLAG_APPLIED for _, flag in FLAGS
    }
    sources = {(line["kind"], line["what"]) for line in lines if line["k"] == "source"}
    assert sources >= {
        ("seed", "random.seed"), ("listing-order", "os.listdir"), ("listing-order", "os.scandir"),
        ("completion-order", "concurrent.futures.as_completed"), ("completion-order", "queue.Queue.get"),
    }  # fmt: skip
    events = [(line["step"], line["stage"]) for line in lines if line["k"] == "row"]
    assert events == [
        (1, "rng"), (1, "forward"), (1, "update"), (2, "rng"), (2, "forward"), (2, "update")
    ]  # fmt: skip
    (final,) = [line for line in lines if line["k"] == "final"]
    assert (final["steps"], final["sum"], final["loss"]) == (2, (2.0).hex(), (0.5).hex())
    assert final["loss_dtype"] is not None
    (_, second) = [line for line in lines if line["k"] == "weights"]
    assert (second["step"], second["tensors"]) == (2, final["weights"])
    assert [line["n"] for line in lines if line["k"] == "probe"] == [1, 1, 1, 2, 2, 2]
    (settings,) = [line for line in lines if line["k"] == "settings"]
    assert settings["versions"] == {"numpy": "0"}
    assert settings["environ"]["end"] == {"OMP_NUM_THREADS": "1"}


def test_lines_are_recorded_on_python_3_9(python: str, tmp_path: Path) -> None:
    lines, _ = run(python, tmp_path, {"level": "lines", "first": 0, "last": 9})
    assert not [line for line in lines if line["k"] == "trouble"]
    (log,) = (tmp_path / "logs").glob("*" + wire.OPS_SUFFIX)
    recorded = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["k"] for line in recorded} >= {"path", "line", "assigned"}
    steps = [line["text"] for line in recorded if line.get("name") == "step"]
    assert steps == ["0", "1", "1"]  # the last one as the loop ends
