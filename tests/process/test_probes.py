"""Probes in real frameworks record values and gradients, find the first that differs, and change no bit."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from detaudit.runs.log_text import entries
from tests.process.conftest import Project
from tests.process.test_neutral import bare_and_recorded

TORCH = """
    import copy, hashlib, io, random, detaudit, torch
    torch.manual_seed(0)
    conv1 = torch.nn.Linear(8, 16)
    conv2 = detaudit.monitor_layer(torch.nn.Linear(16, 1, dtype=torch.float64), "conv2")
    optimizer = torch.optim.SGD([*conv1.parameters(), *conv2.parameters()], lr=0.1)
    for step in range(2):
        x = torch.randn(4, 8)
        h = detaudit.monitor({"h": [conv1(x)]}, "conv1")["h"][0]
        detaudit.monitor(conv1.weight, "conv1 weight")
        if step == 1:
            PLANTED
        loss = conv2(h.relu_().double()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        detaudit.monitor_gradients(conv2.named_parameters())
        optimizer.step()
    torch.save([conv2, detaudit.monitor(torch.ones(1, requires_grad=True), "saved")], io.BytesIO())
    weights = [*conv1.parameters(), *copy.deepcopy(conv2).parameters()]
    print(hashlib.sha256(b"".join(w.detach().numpy().tobytes() for w in weights)).hexdigest(), torch.rand(1).item())
"""

TENSORFLOW = """
    import hashlib, detaudit, tensorflow as tf
    tf.random.set_seed(3)
    table = tf.Variable(tf.random.normal((5, 3)), name="table")
    w = tf.Variable(tf.random.normal((3, 2)), name="w")
    def train(where):
        with tf.GradientTape() as tape:
            y = detaudit.monitor((tf.gather(table, [0, 1, 1]) @ w, 3), f"{where} y")[0]
            loss = tf.reduce_mean(detaudit.monitor(y, "same name") ** 2) * tf.random.uniform(())
        pairs = zip(tape.gradient(loss, [w, table]), [w, table])
        for gradient, variable in detaudit.monitor_gradients(pairs):
            variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
        detaudit.record_weights({"w": w})
    for _ in range(2):
        train("eager")
    graph, compiled = tf.function(train), tf.function(train, jit_compile=True)
    for _ in range(2):
        graph("graph")
    @tf.function
    def loop():
        for _ in tf.range(2):
            train("loop")
    loop()
    compiled("xla")
    print(hashlib.sha256(w.numpy().tobytes() + table.numpy().tobytes()).hexdigest(), float(tf.random.uniform(())))
"""

KERAS = """
    import hashlib, detaudit, keras, numpy as np
    keras.utils.set_random_seed(1)
    x, y = np.random.randint(0, 9, size=(64, 6)), np.random.randint(0, 4, 64)
    layers = keras.layers
    embedding = detaudit.monitor_layer(layers.Embedding(9, 8, mask_zero=True, name="table"))
    lstm = detaudit.monitor_layer(layers.LSTM(5, name="lstm"))
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.table, self.lstm, self.drop, self.head = embedding, lstm, layers.Dropout(0.2), layers.Dense(4)
        def call(self, x):
            return self.head(self.drop(self.lstm(detaudit.monitor(self.table(x), "masked"))))
    model = Net()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, epochs=1, batch_size=32, verbose=0)
    detaudit.record_weights(model)
    model.save("saved.keras")
    print(hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
"""


def recorded(project: Project, text: str) -> list[dict[str, Any]]:
    """Return the event log of a script, after a check that it prints the same without an audit."""
    project.write("train.py", text)
    bare, audited = bare_and_recorded(project, "train.py")
    assert (bare.returncode, audited.returncode) == (0, 0), audited.stderr
    assert (bare.stdout, bare.stderr) == (audited.stdout, audited.stderr)
    (path,) = (project.folder / "logs").glob("*.jsonl")
    return [dict(entry) for entry in entries(path)]


def seen(lines: Sequence[dict[str, Any]], kind: str = "value") -> list[tuple[str, int, int]]:
    return [(line["name"], line["n"], line["step"]) for line in lines if line["k"] == "probe" and line["kind"] == kind]


def troubles(lines: Sequence[dict[str, Any]]) -> list[str]:
    return [line["error"] for line in lines if line["k"] == "trouble"]


@pytest.mark.slow
def test_torch(project: Project) -> None:
    lines = recorded(project, TORCH.replace("PLANTED", "pass") + "    detaudit.record_weights(conv2.bfloat16())\n")
    assert seen(lines) == [
        (name, step, step)
        for step in (1, 2)
        for name in ("conv1['h'][0]", "conv1 weight", "conv2 input[0]", "conv2 output")
    ] + [("saved", 1, 3)]
    gradients = ["conv2 output", "conv2 input[0]", "conv1['h'][0]", "conv1 weight", "weight", "bias"]
    assert seen(lines, "gradient") == [(name, step, step) for step in (1, 2) for name in gradients]
    assert [line["params"] for line in lines if line["k"] == "final" and line["fw"] == "script"] == [2]
    assert not troubles(lines)


@pytest.mark.slow
def test_the_first_probe_that_differs_is_named(project: Project) -> None:
    project.write("train.py", TORCH.replace("PLANTED", "h.data[0, 0] += random.SystemRandom().random()"))
    done = project.detaudit("run", "train.py", "--runs", "2", "--out", "results")
    assert done.code == 1
    group = json.loads((project.folder / "results" / "audit.json").read_text())["groups"][0]
    found = group["first_probe_difference"]
    assert (found["name"], found["occurrence"], found["step"], found["gradient"]) == ("conv2 input[0]", 2, 2, False)
    assert (found["last_match"]["name"], found["last_match"]["occurrence"]) == ("conv1 weight", 2)
    assert (
        "first probe to differ: 'conv2 input[0]' (value 2, step 2), runs 1 and 2; "
        "last to match: 'conv1 weight' (value 2, step 2)\n"
    ) in done.out


@pytest.mark.slow
def test_tensorflow_eager_in_graphs_and_in_loops(project: Project) -> None:
    lines = recorded(project, TENSORFLOW)
    places = [("eager y[0]", 1), ("eager y[0]", 2), ("graph y[0]", 1), ("graph y[0]", 2), ("loop y[0]", 1)]
    places.append(("loop y[0]", 2))
    tensors = [(name, n, step) for step, (name, n) in enumerate(places, 1)]
    assert [line for line in seen(lines) if line[0].endswith("y[0]")] == tensors
    assert [line for line in seen(lines, "gradient") if line[0].endswith("y[0]")] == tensors
    assert [line[1] for line in seen(lines, "gradient") if line[0] == "table:0"] == [1, 2, 3, 4, 5, 6]
    digests = {line["digest"] for line in lines if line["k"] == "probe" and line["name"] == "w:0"}
    assert len(digests) == 6
    weights = [line["step"] for line in lines if line.get("fw") == "script" and line.get("stage") == "update"]
    assert weights == [1, 2, 3, 4, 5, 6]
    (xla,) = troubles(lines)
    assert "XLA" in xla


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend",
    [pytest.param("tensorflow", marks=pytest.mark.full), pytest.param("torch", marks=pytest.mark.slow)],
)
def test_keras_layers(project: Project, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", backend)
    lines = recorded(project, KERAS)
    names = ["table input[0]", "table output", "masked", "lstm input[0]", "lstm input['mask']", "lstm output"]
    assert [(name, n) for name, n, _ in seen(lines)] == [(name, n) for n in (1, 2) for name in names]
    gradients = [(name, n) for name, n, _ in seen(lines, "gradient")]
    back = ("lstm output", "lstm input[0]", "masked", "table output")
    assert sorted(gradients) == sorted((name, n) for n in (1, 2) for name in back)
    weights = [line for line in lines if line["k"] == "final"]
    assert {line["fw"] for line in weights} == {backend, "script"}
    assert len({line["sum"] for line in weights}) == 1
    assert not troubles(lines)


@pytest.mark.slow
def test_torch_compile_breaks_its_graph_there_or_leaves_it_out(project: Project) -> None:
    text = """
        import detaudit, torch
        torch.manual_seed(0)
        layer = detaudit.monitor_layer(torch.nn.Linear(3, 3), "layer")
        def loss(x): return detaudit.monitor(layer(x).sin(), "sin").cos().sum()
        def whole(x): return detaudit.monitor(x.sin(), "whole").cos().sum()
        for function, full in ((loss, False), (whole, True)):
            compiled = torch.compile(function, fullgraph=full, backend="eager")
            x = torch.ones(2, 3, requires_grad=True)
            for _ in range(2):
                compiled(x).backward()
            print(torch.equal(compiled(x), function(x)))
    """
    lines = recorded(project, text)
    assert [line for line in seen(lines, "gradient") if line[0] == "sin"] == [("sin", 1, 1), ("sin", 2, 2)]
    assert [name for name, _, _ in seen(lines) if name == "whole"] == ["whole"]  # the one call that is not compiled
    (error,) = troubles(lines)
    assert "fullgraph=True" in error


def test_probes_alone_are_never_a_match(project: Project) -> None:
    project.write("train.py", "import detaudit\ndetaudit.monitor([1, 'a'], 'x')\n")
    same = project.run("train.py", "--runs", "2")
    assert (same.code, same.json["groups"][0]["probe_count"]) == (125, 2)
    project.write("train.py", "import detaudit, uuid\ndetaudit.monitor([1, str(uuid.uuid4())], 'x')\n")
    other = project.detaudit("run", "train.py", "--runs", "2")
    assert other.code == 1
    text = "'[0-9a-f-]{36}'"
    assert re.search(rf"first probe to differ: 'x\[1\]' \(value 1\): {text} in run 1, {text} in run 2", other.out)


def test_a_killed_process_keeps_what_it_wrote(project: Project) -> None:
    project.write("train.py", "import detaudit, os\ndetaudit.monitor(1, 'x')\nos.kill(os.getpid(), 9)\n")
    environment = {**os.environ, "PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: str(project.folder)}
    subprocess.run([sys.executable, "train.py"], cwd=project.folder, env=environment, check=False)
    (path,) = project.folder.glob("*.jsonl")
    assert json.loads(path.read_text().splitlines()[-1])["name"] == "x"
