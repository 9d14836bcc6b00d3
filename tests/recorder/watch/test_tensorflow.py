"""The operations of TensorFlow in a window of steps are recorded with their lines, and the script does not change."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detaudit
from detaudit import wire
from detaudit.recorder.training.digest import NumpyDigest

pytestmark = [pytest.mark.slow, pytest.mark.launches]

BOOTSTRAP = Path(detaudit.__file__).parent / "recorder" / "bootstrap"

SCRIPT = """
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(1)
table, head = tf.Variable(tf.ones((20, 4))), tf.Variable(tf.ones((4, 1)))
layer = keras.layers.Dense(4, name="inner")
layer.build((8, 4))
rows = iter(tf.data.Dataset.from_tensor_slices(np.arange(64) % 20).map(lambda i: i + 0).batch(8).repeat())

@tf.function(jit_compile=True)
def square(v):
    return v ** 2  # squared

@tf.function
def step(which):
    which = tf.cond(which[0] > 3, lambda: which + 0, lambda: which)
    for _ in tf.range(2):
        which = tf.bitwise.invert(tf.bitwise.invert(which))  # inverted
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(square(layer(tf.gather(table, which)) @ head))  # loss
    by_table, by_head = tape.gradient(loss, [table, head])
    table.scatter_sub(by_table)  # scatter
    head.assign_sub(0.1 * by_head)

for _ in range(3):
    step(next(rows))

eager = tf.Variable(tf.ones((3, 2)))
for _ in range(2):
    with tf.GradientTape() as tape:
        noise = tf.random.normal((3, 2))  # noise
        loss = tf.reduce_sum(tf.sin(eager) * noise)  # eager loss
    eager.assign_sub(tape.gradient(loss, eager))  # eager update
np.save("table.npy", table.numpy())
print(float(tf.reduce_sum(table)), float(tf.reduce_sum(eager)), keras.random.normal((2,)).numpy())
"""


def line(comment: str, script: str = SCRIPT) -> int:
    """Return the number of the line of a script that has this comment."""
    (number,) = [n for n, text in enumerate(script.splitlines(), 1) if text.endswith(f"# {comment}")]
    return number


def ran(folder: Path, watch: dict[str, Any] | None, script: str = SCRIPT) -> tuple[str, list[dict[str, Any]], Path]:
    """Run a script, and return its stdout, the lines of its instrumentation log, and the folder of its logs."""
    (folder / "train.py").write_text(script)
    trace = folder / f"trace{len(list(folder.iterdir()))}"
    trace.mkdir()
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if watch is not None:
        env |= {"PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: str(trace), wire.ENV_WATCH: json.dumps(watch)}
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    events = [json.loads(text) for file in trace.glob("*.jsonl") for text in file.read_text().splitlines()]
    assert [entry for entry in events if entry["k"] == "trouble"] == []
    return done.stdout, list(lines(trace)), trace


def lines(trace: Path) -> Iterator[dict[str, Any]]:
    for file in trace.glob(f"*{wire.OPS_SUFFIX}"):
        yield from map(json.loads, file.read_text().splitlines())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tensorflow")
    return tmp_path_factory.mktemp("recorded")


@pytest.fixture(scope="module")
def watched(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    printed, ops, _ = ran(folder, {"level": "ops", "first": 1, "last": 5})
    return printed, ops


def test_the_script_prints_the_same_when_instrumented(folder: Path, watched: tuple[str, list[dict[str, Any]]]) -> None:
    assert watched[0] == ran(folder, None)[0]


def test_each_operation_is_recorded_once_with_its_line(folder: Path, watched: tuple[str, list[dict[str, Any]]]) -> None:
    ops = [entry for entry in watched[1] if entry["k"] == "op"]
    assert [entry["n"] for entry in sorted(ops, key=lambda e: e["n"])] == list(range(len(ops)))
    keys = [entry["key"] for entry in ops if "key" in entry]
    assert len(set(keys)) == len(keys)
    assert {entry["file"] for entry in ops} == {str(folder / "train.py")}

    def of(op: str, comment: str) -> list[dict[str, Any]]:
        return [entry for entry in ops if entry["op"] == op and entry["line"] == line(comment)]

    assert [entry["step"] for entry in of("ResourceScatterSub", "scatter")] == [1, 2, 3]
    assert len(of("Invert", "inverted")) == 3 * 2 * 2
    assert sorted({entry["key"].rsplit("/", 1)[1] for entry in of("Invert", "inverted")}) == ["0", "1"]
    assert [entry["key"] for entry in of("Pow", "squared")] == [f"{call}/square/pow/0" for call in (1, 2, 3)]
    assert {entry["module"] for entry in of("MatMul", "loss") if "module" in entry} == {"inner"}
    assert [entry["random"] for entry in of("RandomStandardNormal", "noise")] == [True, True]
    assert all(entry["backward"] for entry in of("Cos", "eager loss"))
    assert len(of("Cos", "eager loss")) == 2
    assert {entry["thread"] for entry in ops} == {"MainThread"}


def test_the_value_of_a_variable_is_an_input_and_an_output(watched: tuple[str, list[dict[str, Any]]]) -> None:
    updates = [entry for entry in watched[1] if entry["op"] == "ResourceScatterSub"]
    found = [entry["ins"][0] for entry in updates]
    left = [entry["outs"][0] for entry in updates]
    assert [len(entry["ins"]) for entry in updates] == [3, 3, 3]
    assert [one[:2] for one in left[:-1]] == found[1:]
    assert len({digest for digest, _ in found}) == 3
    gathered = [entry["ins"][0] for entry in watched[1] if entry["op"] == "ResourceGather"]
    assert gathered == found
    batches = [entry for entry in watched[1] if entry["op"] == "IteratorGetNext"]
    assert len(batches) == 3
    assert all(entry["ins"] == [] for entry in batches)


def test_nothing_is_recorded_outside_the_window(folder: Path) -> None:
    _, ops, _ = ran(folder, {"level": "ops", "first": 3, "last": 3})
    assert {entry["step"] for entry in ops if entry.get("key")} == {2, 3}
    updates = [entry for entry in ops if entry["op"] == "ResourceScatterSub"]
    assert [update["outs"][0][:2] for update in updates[:-1]] == [update["ins"][0] for update in updates[1:]]
    assert all(update["ins"][0][0] for update in updates)


def test_the_tensors_of_one_operation(folder: Path, watched: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = [entry for entry in watched[1] if entry["op"] == "ResourceScatterSub"][-1]
    _, ops, trace = ran(folder, {"level": "tensors", "first": 1, "last": 5, "key": wanted["key"]})
    assert [entry["role"] for entry in ops] == ["in0", "in1", "in2", "out0"]
    assert [entry["digest"] for entry in ops[:3]] == [digest for digest, _ in wanted["ins"]]
    assert ops[3]["digest"] == wanted["outs"][0][0]
    raw = (trace / ops[3]["file"]).read_bytes()
    array = np.frombuffer(raw, ops[3]["dtype"]).reshape(ops[3]["shape"])
    assert (array == np.load(folder / "table.npy")).all()
    assert ops[3]["digest"] == f"float32[20,4]:{NumpyDigest(np).words(array):016x}"

    eager = [entry for entry in watched[1] if "key" not in entry]
    (place, *_) = [n for n, entry in enumerate(eager) if entry["op"] == "Sin"]
    _, ops, _ = ran(folder, {"level": "tensors", "first": 1, "last": 5, "thread": "MainThread", "n": place})
    assert [(entry["role"], entry["digest"]) for entry in ops] == [
        ("in0", eager[place]["ins"][0][0]),
        ("out0", eager[place]["outs"][0][0]),
    ]


RACING = ["ResourceScatterSub"]


def test_only_operations_that_may_race_are_recorded(folder: Path, watched: tuple[str, list[dict[str, Any]]]) -> None:
    printed, ops, _ = ran(folder, {"level": "racing", "first": 1, "last": 5, "racing": RACING})
    assert printed == watched[0]
    assert [(entry["op"], entry["line"], entry["step"]) for entry in ops] == [
        ("ResourceScatterSub", line("scatter"), step) for step in (1, 2, 3)
    ]
    whole = [entry for entry in watched[1] if entry["op"] == "ResourceScatterSub"]
    assert [(entry["ins"], entry["outs"]) for entry in ops] == [(entry["ins"], entry["outs"]) for entry in whole]


def test_operations_that_may_race_are_listed_without_changing_a_graph(folder: Path) -> None:
    _, ops, _ = ran(folder, {"level": "modules", "first": 1, "last": 5, "racing": RACING})
    assert [(entry["op"], entry["line"]) for entry in ops] == [("ResourceScatterSub", line("scatter"))]
    assert (ops[0]["ins"], ops[0]["outs"]) == ([], [])


THREADS = """
import threading
import keras, tensorflow as tf
keras.utils.set_random_seed(1)
weight = tf.Variable(tf.ones((4,)))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weight * x)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))

def train(first):
    for number in range(3):
        meet.wait()
        step(tf.fill((4,), float(first + number)))  # called

step(tf.zeros(4))
meet = threading.Barrier(2)
threads = [threading.Thread(target=train, args=(first,), name=f"trainer-{first}") for first in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_calls_by_threads_are_recorded_with_their_variables(folder: Path) -> None:
    _, ops, _ = ran(folder, {"level": "ops", "first": 0, "last": 20}, THREADS)
    calls = [entry for entry in ops if entry["op"] == "tf.function"]
    assert sorted(entry["thread"] for entry in calls) == ["trainer-0"] * 3 + ["trainer-1"] * 3
    assert {entry["line"] for entry in calls} == {line("called", THREADS)}
    assert all(len(entry["ins"]) == 2 for entry in calls)
    alone = [entry for entry in ops if entry["thread"] == "MainThread"]
    assert {entry["line"] for entry in alone if entry["op"] == "AssignSubVariableOp"} == {11}


IMPORTS = "import tensorflow as tf, keras"

PIPELINE = """
import tensorflow as tf, keras
keras.utils.set_random_seed(1)
weight = tf.Variable(tf.ones((4,)))
optimizer = keras.optimizers.SGD(0.1)
optimizer.build([weight])

def augment(x):
    return x + tf.random.normal((4,))  # drawn

for x in tf.data.Dataset.from_tensor_slices(tf.ones((6, 4))).map(augment, num_parallel_calls=2):  # mapped
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weight * x)
    optimizer.apply([tape.gradient(loss, weight)], [weight])
"""


def test_operations_that_may_race_in_a_pipeline_are_listed(folder: Path) -> None:
    _, ops, _ = ran(folder, {"level": "ops", "first": 1, "last": 2, "racing": ["ParallelMapDatasetV2"]}, PIPELINE)
    listed = [(entry["op"], entry["line"]) for entry in ops if entry.get("listed")]
    assert all(entry["ins"] == entry["outs"] == [] for entry in ops if entry.get("listed"))
    assert listed == [
        ("RandomStandardNormal", line("drawn", PIPELINE)), ("ParallelMapDatasetV2", line("mapped", PIPELINE)),
    ]  # fmt: skip
    assert "Mul" in {entry["op"] for entry in ops}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("num_parallel_calls=2", "num_parallel_calls=1"), set()),
        ((", num_parallel_calls=2", ""), set()),
        (("import tensorflow as tf, keras", f"{IMPORTS}\ntf.config.experimental.enable_op_determinism()"), set()),
        (("num_parallel_calls=2", "num_parallel_calls=2, deterministic=True"), {"drawn", "mapped"}),
    ],
    ids=["one-call", "no-calls", "determinism", "draws-still-race"],
)
def test_what_is_sequential_by_now_is_not_listed(folder: Path, change: tuple[str, str], names: set[str]) -> None:
    code = PIPELINE.replace(*change)
    assert code != PIPELINE
    _, ops, _ = ran(folder, {"level": "ops", "first": 1, "last": 2, "racing": ["ParallelMapDatasetV2"]}, code)
    assert {entry["line"] for entry in ops if entry.get("listed")} == {line(name, code) for name in names}


NUMBERS = """
import tensorflow as tf
x = tf.Variable([1.0, 2.0])
eager = 0.25 * x  # eager number
tf.nn.leaky_relu(eager, alpha=0.375)  # attribute
rate = 0.5

@tf.function
def step(value, scale):
    half = rate * value  # constant
    whole = half * scale  # argument
    return whole * tf.reduce_sum(value)  # computed

step(eager, tf.constant(0.75))
"""


def test_numbers_given_to_an_operation(folder: Path) -> None:
    _, ops, _ = ran(folder, {"level": "ops", "first": 0, "last": 2}, NUMBERS)
    given = {op["line"]: op.get("scalars") for op in ops if op["op"] in ("Mul", "LeakyRelu")}
    lines_ = [line(comment, NUMBERS) for comment in ("eager number", "attribute", "constant", "argument", "computed")]
    assert [given[one] for one in lines_] == [{"1": "0.25"}, {"alpha": "0.375"}, {"1": "0.5"}, {"2": "0.75"}, None]
