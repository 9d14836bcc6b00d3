"""Every style of training in TensorFlow and Keras is recorded, in all stages. Recording changes nothing."""

import os
import subprocess
import sys
from typing import Any

import pytest

from detaudit.model import Stage
from detaudit.runs.log import read_run
from tests.process.conftest import Project
from tests.process.test_training import KERAS_FIT

pytestmark = pytest.mark.slow

ALL = ["init", "rng", "batch", "forward", "backward", "update", "state"]


def recorded(project: Project, **options: Any) -> tuple[list[str], dict[str, Any]]:
    """Run train.py bare and recorded in all stages; return what both printed, and the group of the recorded one."""
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    bare = subprocess.run(
        [sys.executable, "train.py"], cwd=project.folder, env=env, capture_output=True, text=True, check=False
    )
    assert bare.returncode == 0, bare.stderr
    done = project.run("train.py", "--runs", "1", "--stages", ",".join(ALL), "--out", "results", **options)
    (group,) = done.json["groups"]
    (run,) = group["runs"]
    assert (run["status"], run["warnings"]) == ("ok", []), run
    assert (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text() == bare.stdout
    return bare.stdout.splitlines(), group


COMMON = """
import hashlib, keras, numpy as np, tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
keras.utils.set_random_seed(0)
L = keras.layers
seen = []

def trained(*arrays):
    seen.extend([np.asarray(a) for a in arrays if np.asarray(a).dtype == "float32"])

def show():
    print(f"{sum(a.astype('f8').sum() for a in seen):.17g}", hashlib.sha256(b"".join(map(bytes, seen))).hexdigest())
    print(tf.random.normal((2,)).numpy(), np.random.rand(), keras.random.normal((2,)).numpy())

def update(tape, loss, model):
    variables = model.trainable_variables
    model.optimizer.apply(tape.gradient(loss, variables), variables)
"""

KERAS = """
x, y = np.random.normal(size=(128, 8)).astype("f4"), np.random.randint(0, 4, 128)

def compiled(model, **options):
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **options)
    return model

def layers():
    return [keras.Input((8,)), L.Dense(16), L.Dropout(0.1), L.Dense(4)]

class Custom(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = L.Dense(4)
    def call(self, x):
        return self.dense(tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0))
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        update(tape, loss, self)
        return {"loss": loss}

models = [compiled(keras.Sequential(layers()))]
for _ in range(4):
    models[0].train_on_batch(x, y)
for options in ({"steps_per_execution": 4}, {"jit_compile": True}, {"run_eagerly": True}):
    models.append(compiled(keras.Sequential(layers()), **options))
models.append(compiled(Custom()))
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    models.append(compiled(keras.Sequential(layers())))
for model in models[1:]:
    model.fit(x, y, batch_size=16, epochs=1, verbose=0)
    model.evaluate(x, y, verbose=0)

a, b = keras.Input((5, 3), name="a"), keras.Input((2,), dtype="string", name="b")
words = L.Flatten()(L.Embedding(4, 2)(L.StringLookup(vocabulary=["k", "l", "m"])(b)))
model = keras.Model({"a": a, "b": b}, L.Dense(1)(L.Concatenate()([L.LSTM(4)(a), words])))
data = {"a": np.random.normal(size=(8, 5, 3)), "b": tf.constant([["k", "m"], ["l", "?"]] * 4)}
for eagerly in (False, True):
    model.compile("sgd", "mse", run_eagerly=eagerly)
    for _ in range(2):
        model.fit(data, np.ones((8, 1)), batch_size=4, verbose=0, shuffle=False)
        model.predict({**data, "a": np.random.normal(size=(8, 5, 3))}, verbose=0)
models.append(model)

for model in models:
    trained(*[w for w in model.trainable_weights])
show()
"""


def test_keras(project: Project) -> None:
    project.write("train.py", COMMON + KERAS)
    printed, group = recorded(project)
    (run,) = group["runs"]
    # By train_on_batch, by each of four ways to fit, on each of two replicas, with two inputs in graphs and eagerly.
    assert run["steps"] == 4 + 4 * 8 + 2 * 8 + 2 * 2 * 2
    (training,) = read_run(project.folder / "results" / "runs" / "none" / "1")[0].trained
    batches = [training.digests[Stage.BATCH][step] for step in range(run["steps"] - 7, run["steps"] + 1)]
    assert batches[:2] == batches[2:4]  # the same data twice: the inputs of a prediction are not a batch
    assert batches[4:6] == batches[6:]
    assert batches[0] != batches[1]
    assert group["stages"] == ALL
    assert float(printed[0].split()[0]) == pytest.approx(run["ranks"][0]["sum_of_weights"], rel=1e-9)


LOOPS = """
import tempfile
w = tf.Variable(tf.ones((8, 1)))
rows = tf.data.Dataset.from_tensor_slices(tf.random.normal((64, 8))).batch(8)

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - 1.0) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))

@tf.function
def epoch():
    for row in rows:
        step(row)
epoch()
concrete = tf.function(step).get_concrete_function(tf.TensorSpec((8, 8)))
for row in rows.take(3):
    concrete(row)
trained(w)

@tf.function(jit_compile=True)
def compiled(x):
    for _ in tf.range(3):
        step(x)
compiled(tf.random.normal((4, 8)))
seen[-1] = w.numpy()

def net(*widths):
    model = keras.Sequential([keras.Input((8,)), *[L.Dense(width) for width in widths]])
    model.optimizer = keras.optimizers.Adam()
    return model

maker, critic = net(4, 8), net(1)
def gan(x, z):
    with tf.GradientTape() as making, tf.GradientTape() as judging:
        fake = maker(z, training=True)
        made, judged = -tf.reduce_mean(critic(fake)), tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(x))
    gradients = making.gradient(made, maker.trainable_variables)
    update(judging, judged, critic)
    maker.optimizer.apply(gradients, maker.trainable_variables)
for run in (gan, tf.function(gan)):
    for _ in range(2):
        run(tf.random.normal((4, 8)), tf.random.normal((4, 8)))
trained(*maker.trainable_weights, *critic.trainable_weights)

deep = [tf.Variable(tf.random.normal((8, 8))), tf.Variable(tf.random.normal((8, 1)))]
block = tf.recompute_grad(lambda x: tf.nn.relu(x @ deep[0]))
def checkpointed(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((block(x) @ deep[1]) ** 2)
    for variable, gradient in zip(deep, tape.gradient(loss, deep)):
        variable.assign_sub(0.01 * gradient)
for run in (checkpointed, tf.function(checkpointed)):
    run(tf.random.normal((4, 8)))
trained(*deep)

symbolic = tf.Variable(tf.ones((8, 1)))
@tf.function
def without_a_tape(x):
    loss = tf.reduce_mean((x @ symbolic - 1.0) ** 2)
    symbolic.assign_sub(0.1 * tf.gradients(loss, symbolic)[0])
for _ in range(2):
    without_a_tape(tf.random.normal((4, 8)))
trained(symbolic)

model = net(1)
forward = tf.function(model)
for _ in range(2):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(forward(tf.random.normal((4, 8))) ** 2)
    update(tape, loss, model)
@tf.function
def penalised(x):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = forward(x)
        penalty = tf.reduce_sum(inner.gradient(y, x) ** 2)
    variables = model.trainable_variables
    model.optimizer.apply(tape.gradient([y, penalty], variables), variables)
for _ in range(2):
    penalised(tf.random.normal((4, 8)))
trained(*model.trainable_weights)

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    mirrored = tf.Variable(tf.ones((8, 1)))
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([mirrored])
@tf.function(jit_compile=True)
def on_one_device(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ mirrored - 1.0) ** 2)
    return tape.gradient(loss, [mirrored])
@tf.function
def on_both(x):
    strategy.run(lambda x: optimizer.apply_gradients(zip(on_one_device(x), [mirrored])), (x,))
for x in strategy.experimental_distribute_dataset(rows.take(2)):
    on_both(x)
trained(mirrored)

class Exported(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.ones((8, 1)))
    @tf.function(input_signature=[tf.TensorSpec((None, 8))])
    def train(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.w - 1.0) ** 2)
        self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
        return loss
module = Exported()
module.train(tf.ones((2, 8)))
trained(module.w)
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder, signatures=module.train.get_concrete_function())
    again = tf.saved_model.load(folder)
print(again.train(tf.ones((4, 8))).numpy(), again.w.numpy().sum())
show()
"""


def test_custom_training_loops(project: Project) -> None:
    project.write("train.py", COMMON + LOOPS)
    printed, group = recorded(project)
    (run,) = group["runs"]
    expected = {
        "a loop in a function": 8,
        "a concrete function": 3,
        "a loop under XLA": 3,
        "two models, eagerly and in a graph": 2 * 2 * 2,
        "recomputation, eagerly and in a graph": 2,
        "tf.gradients in a graph": 2,
        "a function under an eager tape": 2,
        "a penalty, two losses": 2,
        "XLA on two devices": 2 * 2,
        "exported": 1,
    }
    assert run["steps"] == sum(expected.values())
    assert float(printed[1].split()[0]) == pytest.approx(run["ranks"][0]["sum_of_weights"], rel=1e-9)


SESSIONS = """
import gc, numpy as np, tensorflow as tf, weakref
v1 = tf.compat.v1
v1.disable_eager_execution()
v1.set_random_seed(0)
random = np.random.default_rng(0)
x, y = v1.placeholder(tf.float32, (None, 8)), v1.placeholder(tf.float32, (None, 1))
with v1.variable_scope("old", use_resource=False):
    w = v1.get_variable("w", (8, 1))
with v1.variable_scope("new", use_resource=True):
    b = v1.get_variable("b", (1,), initializer=v1.zeros_initializer())
loss = tf.reduce_mean((v1.nn.dropout(x @ w + b, rate=0.1) - y) ** 2)
train = v1.train.AdamOptimizer(0.05).minimize(loss, global_step=v1.train.get_or_create_global_step())
rows = tf.data.Dataset.from_tensor_slices(random.normal(size=(32, 8)).astype("f4")).batch(8).repeat()
row = v1.data.make_one_shot_iterator(rows).get_next()
noisy = tf.reduce_mean((row @ w - 1.0) ** 2) + v1.random_normal(())  # whose gradient needs no draw
optimizer = v1.train.GradientDescentOptimizer(0.01)
clipped = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(noisy, [w])]
after = tf.group(optimizer.apply_gradients(pair for pair in clipped))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for _ in range(4):
        feed = {x: random.normal(size=(16, 8)), y: random.normal(size=(16, 1))}
        print(session.run({"loss": loss, "train": [train]}, feed))
    for _ in range(3):
        session.run(after)
    print(session.run([loss, noisy], feed))
    total = sum(a.astype("f8").sum() for a in session.run([w, b]))

def fold():
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v = v1.get_variable("v", initializer=tf.ones((3,)), use_resource=True)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v**2))
        session.run(v1.global_variables_initializer())
        session.run(train)
        return weakref.ref(graph), session.run(v).astype("f8").sum()

graph, more = fold()
gc.collect()

def by_hand(resource):
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=tf.ones((3,)), use_resource=resource)
        gradient = tf.gradients(tf.reduce_sum(v**2), [v])[0]
        train = v1.assign_sub(v, 0.1 * gradient)
        session.run(v1.global_variables_initializer())
        session.run(gradient)
        session.run(train)
        return session.run(v).astype("f8").sum()

more += by_hand(True) + by_hand(False)
print(graph() is None, f"{total + more:.17g}")
"""


def test_sessions(project: Project) -> None:
    project.write("train.py", SESSIONS)
    printed, group = recorded(project)
    (run,) = group["runs"]
    assert (run["steps"], group["stages"]) == (4 + 3 + 1 + 2, [stage for stage in ALL if stage != "state"])
    graph_is_gone, total = printed[-1].split()
    assert graph_is_gone == "True"
    assert float(total) == pytest.approx(run["ranks"][0]["sum_of_weights"], rel=1e-12)


SESSION = """
import os, numpy as np, tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
noise = int.from_bytes(os.urandom(2), "little") / 1e6
w = v1.get_variable("w", (8, 1), use_resource=RESOURCE, initializer=v1.ones_initializer())
"""

EAGER = """
import os, tensorflow as tf
noise = int.from_bytes(os.urandom(2), "little") / 1e6
w = tf.Variable(tf.ones((8, 1)))
"""

ASSIGNED = (
    SESSION
    + """
x = v1.placeholder(tf.float32, (None, 8))
train = w.assign_sub(0.05 * tf.transpose(x) @ (x @ w - 1.0) + NOISE)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for _ in range(3):
        session.run(train, {x: np.ones((4, 8))})
"""
)

CALLABLE = (
    SESSION
    + """
train = v1.train.GradientDescentOptimizer(0.1 + NOISE).minimize(tf.reduce_sum(w**2))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    step = session.make_callable(train)
    for _ in range(3):
        step()
"""
)

OTHERWISE = {
    "assigned": ASSIGNED.replace("RESOURCE", "True"),
    "a reference that is assigned": ASSIGNED.replace("RESOURCE", "False")
    .replace("w.assign_sub(", "v1.assign(w, w - (")
    .replace("+ NOISE", "+ NOISE)"),
    "a callable": CALLABLE.replace("RESOURCE", "True"),
    "Keras in a session": """
import os, numpy as np, tensorflow as tf
from tensorflow.python.keras import layers, models
from tensorflow.python.keras.optimizer_v2 import gradient_descent
tf.compat.v1.disable_eager_execution()
noise = int.from_bytes(os.urandom(2), "little") / 1e6
model = models.Sequential([layers.Dense(1, input_shape=(8,), kernel_initializer="ones")])
model.compile(gradient_descent.SGD(0.01 + NOISE), "mse")
model.fit(np.ones((12, 8)), np.zeros((12, 1)), batch_size=4, verbose=0, shuffle=False)
""",
    "the last update of a tape": EAGER
    + """
for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.ones((4, 8)) @ w - 1.0) ** 2)
    w.assign_sub((0.01 + (NOISE if step == 2 else 0)) * tape.gradient(loss, w))
""",
    "no gradient": EAGER
    + """
@tf.function
def step():
    w.assign_sub((0.1 + NOISE) * w)
step()
""",
}


@pytest.mark.parametrize("way", OTHERWISE)
def test_weights_that_are_updated_otherwise_are_compared(project: Project, way: str) -> None:
    project.write("train.py", OTHERWISE[way].replace("NOISE", "noise") + "import training\ntraining.train(seed=0)\n")
    done = project.run("train.py", "--runs", "2")
    (group,) = done.json["groups"]
    assert (done.code, group["first_difference"]["stage"]) == (1, "update"), done.out
    steps = {rank["framework"]: rank["steps"] for rank in group["runs"][0]["ranks"]}
    assert steps["tensorflow"] == (1 if way == "no gradient" else 3), steps


def test_an_unordered_pipeline_is_the_first_to_differ(project: Project) -> None:
    project.write(
        "train.py",
        """
        import keras, numpy as np, os, tensorflow as tf, time
        keras.utils.set_random_seed(0)
        def slow(i):
            time.sleep(os.urandom(1)[0] / 20000)
            return np.full(8, i, "f4") / 64
        def load(i):
            return tf.ensure_shape(tf.numpy_function(slow, [i], tf.float32), (8,))
        numbers = tf.data.Dataset.range(64).map(load, num_parallel_calls=8, deterministic=False)
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(numbers.map(lambda x: (x, x[:1])).batch(8), verbose=0)
        """,
    )
    done = project.run("train.py", "--runs", "5", "--fail-fast")
    assert done.code == 1, done.out
    (group,) = done.json["groups"]
    found = group["first_difference"]
    assert (found["stage"], found["explanation"]) == (
        "batch",
        {"matching": ["rng"], "likely": ["data-pipeline"], "gap": None},
    )
    assert found["step"] <= 8


DIGEST = """
import numpy as np, tensorflow as tf
from detaudit.recorder.frameworks.tensorflow.graphs import GraphDigest
of = GraphDigest(tf).of
graph, compiled = tf.function(lambda *t: of(t)), tf.function(lambda *t: of(t), jit_compile=True)
random = np.random.default_rng(0)
kinds = ["float16", "bfloat16", "float32", "float64", "complex64", "int8", "int32", "int64", "uint16", "uint64", "bool"]
values = set()
for kind in kinds:
    for shape in ((), (0,), (5,), (256,), (3, 1000)):
        tensor = tf.cast(tf.constant(random.normal(size=shape) * 9), kind)
        one = {int(of([tensor])), int(graph(tensor)), int(compiled(tensor))}
        assert len(one) == 1, (kind, shape, one)
        values |= one
assert len(values) == len(kinds) * 5

base = random.normal(size=5000).astype("f4")
digest = tf.function(lambda t: of([t]), input_signature=[tf.TensorSpec([None], tf.float32)])
values = [int(digest(base))]
for _ in range(200):
    changed = [base.copy() for _ in range(3)]
    i, j = random.choice(5000, 2, replace=False)
    changed[0].view("u4")[i] ^= np.uint32(1 << random.integers(32))
    changed[1][[i, j]] = base[[j, i]]
    changed[2][[i, j]] *= -1
    values += [int(digest(array)) for array in changed]
assert len(set(values)) == len(values)
a, b = tf.ones((2, 3)), tf.ones((3, 2))
assert len({int(graph(*pair)) for pair in ((a, b), (b, a), (a, a), (tf.ones((6,)), b))}) == 4
assert int(graph(tf.constant(["a", "b"]))) != int(graph(tf.constant(["b", "a"])))
"""


def test_the_digest_inside_graphs(project: Project) -> None:
    """The same eagerly, in a graph and under XLA; every bit, every place and the sign of every zero count."""
    project.write("check.py", DIGEST)
    done = subprocess.run([sys.executable, "check.py"], cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


READING = """
import keras, numpy as np, tensorflow as tf
from detaudit.recorder.frameworks.tensorflow.graphs import RING, Rings
from detaudit.recorder.frameworks.tensorflow.reader import TensorFlowReader
reader = TensorFlowReader()
kinds = ["float32", "bfloat16", "int64", "bool", "string"]
variables = [tf.Variable(["a", "bc"] if kind == "string" else tf.cast([0, 1, 2], kind)) for kind in kinds]
variables += [keras.Variable(np.ones((2, 3))), tf.Variable(0.5)]
others = [tf.constant([1.5]), np.float64(2), np.arange(3)]
for tensors in (variables, [*variables, *others], others, variables[:1], [variables[0], variables[0]], []):
    assert reader.parts(tensors) == [reader.part(str(i), tensor) for i, tensor in enumerate(tensors)]
with tf.GradientTape() as tape:
    before = reader.parts(variables)
assert tape.watched_variables() == ()
variables[-1].assign(0.25)
assert [a == b for a, b in zip(before, reader.parts(variables))] == [True] * (len(variables) - 1) + [False]

rings = Rings(tf, reader.array)
@tf.function
def losses(first, steps):
    for i in tf.range(steps):
        rings.write([first + i], [])
total = 0
for steps in (1, 1, 0, 5, RING - 1, RING, RING + 1, 1, 2 * RING, 3, 0):
    losses(total, steps)
    added, rows = rings.new()
    assert added == steps, (added, steps)
    assert [row.loss for row in rows] == list(range(total, total + steps))[-RING:]
    total += steps
"""


def test_variables_are_read_together_as_alone_and_rings_from_where_they_were_read(project: Project) -> None:
    project.write("check.py", READING)
    done = subprocess.run([sys.executable, "check.py"], cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_keras_on_torch(project: Project) -> None:
    project.write("train.py", KERAS_FIT)
    done = project.run("train.py", "--runs", "2", "--recipe", "seeds", env={"KERAS_BACKEND": "torch"})
    assert done.code == 0, done.out
    (rank,) = done.json["groups"][0]["runs"][0]["ranks"]
    assert (rank["framework"], rank["steps"]) == ("torch", 8)


def test_keras_on_torch_without_fit(project: Project) -> None:
    project.write(
        "train.py",
        """
        import keras, torch, numpy as np
        keras.utils.set_random_seed(0)
        x, y = np.random.normal(size=(2, 64, 8)).astype("f4")
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(8)])
        model.compile("adam", "mse")
        for _ in range(4):
            model.train_on_batch(x, y)
        optimizer, mse = keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError()
        for _ in range(3):
            loss = mse(torch.tensor(y), model(torch.tensor(x)))
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                optimizer.apply([w.value.grad for w in model.trainable_weights], model.trainable_weights)
        print(f"{sum(w.astype('f8').sum() for w in model.get_weights()):.17g} {loss.item():.17g}")
        """,
    )
    done = project.run("train.py", "--runs", "1", "--out", "results", env={"KERAS_BACKEND": "torch"})
    (run,) = done.json["groups"][0]["runs"]
    assert (run["status"], run["steps"], run["warnings"]) == ("ok", 4 + 3, [])
    printed = (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text().split()
    (rank,) = run["ranks"]
    assert float(printed[0]) == pytest.approx(rank["sum_of_weights"], rel=1e-12)
    assert float(printed[1]) == rank["final_loss"]
