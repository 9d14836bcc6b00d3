"""Weights are recorded one by one at steps 1, 2, 4, 8, …, and an HTML report shows which of them differ first."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.process.conftest import Project
from tests.words import same

TORCH = """
    import torch
    {seed}
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
        def forward(self, x):
            return self.second(self.first(x).relu())
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(9):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
"""

KERAS = """
    import keras
    import numpy as np
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(3, name="first"), keras.layers.Dense(1, name="second")])
    model.compile("sgd", "mse")
    model.fit(np.ones((36, 4), "f4"), np.ones((36, 1), "f4"), batch_size=4, epochs=1, verbose=0)
"""


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for log in folder.rglob("*.jsonl") for line in log.read_text().splitlines()]
    return [line for line in found if line["k"] == kind]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "dtype", "names"),
    [
        (TORCH, "torch.float32", ["first.weight", "first.bias", "second.weight", "second.bias"]),
        (KERAS, "float32", ["first.kernel", "first.bias", "second.kernel", "second.bias"]),
    ],
)
def test_nine_steps_list_the_weights_at_four_of_them(
    project: Project, script: str, dtype: str, names: list[str]
) -> None:
    project.write("train.py", script.format(seed="torch.manual_seed(0)"))
    done = project.run("train.py", "--runs", "1", "--out", "out")
    (run,) = done.json["groups"][0]["runs"]
    assert (run["steps"], run["warnings"], run["ranks"][0]["loss_dtype"]) == (9, [], "float32")
    listed = lines(project.folder / "out", "weights")
    assert [(line["step"], line["set"], line["count"]) for line in listed] == [
        (1, 0, 4),
        (2, 0, 4),
        (4, 0, 4),
        (8, 0, 4),
    ]
    assert [name.partition(".")[2] for name in listed[0]["names"]] == names
    (final,) = lines(project.folder / "out", "final")
    layout = [(kind, shape) for kind, shape, _, _ in final["weights"]]
    assert {kind for kind, _ in layout} == {dtype}
    for line in listed:
        assert [(kind, shape) for kind, shape, _, _ in line["tensors"]] == layout
    assert len({json.dumps(line["tensors"]) for line in (*listed, {"tensors": final["weights"]})}) == 5


def test_fits_of_estimators_list_no_weights(project: Project) -> None:
    project.write("train.py", "from sklearn.linear_model import Ridge\nRidge().fit([[0.0], [1.0]], [0.0, 1.0])\n")
    project.run("train.py", "--runs", "1", "--out", "out")
    assert len(lines(project.folder / "out", "final")) == 1
    assert lines(project.folder / "out", "weights") == []


@pytest.mark.slow
def test_a_report_of_an_unseeded_training_shows_which_weights_differ(project: Project) -> None:
    project.write("train.py", TORCH.format(seed=""))
    done = project.detaudit("run", "train.py", "--runs", "3", "--format", "html", "--out", "out")
    assert done.code == 1
    assert (
        "4 of 4 weights differ, first at step 1: Net.first.weight, Net.first.bias, Net.second.weight, Net.second.bias"
        in done.out
    )
    (table,) = re.findall(r'(?s)<table class="lad wts">.*?</table>', done.out)
    assert re.findall(r'<th scope="col">([^<]*)</th>', table) == ["step", "1", "2", "4", "8", "end"]
    assert re.findall(r'scope="row"><code>([^<]*)</code> <span class="t">([^<]*)<', table) == [
        ("Net.first.weight", "float32 [3, 4]"), ("Net.first.bias", "float32 [3]"),
        ("Net.second.weight", "float32 [1, 3]"), ("Net.second.bias", "float32 [1]"),
    ]  # fmt: skip
    assert table.count("3 different digests, sums differ by up to") == 2 * 4 * 5  # as a tooltip, and in words
    assert "The losses are of type float32" in done.out


@pytest.mark.slow
def test_a_report_of_a_seeded_training_asks_for_no_weights_that_differ(project: Project) -> None:
    project.write("train.py", TORCH.format(seed="torch.manual_seed(0)"))
    done = project.detaudit("run", "train.py", "--runs", "2", "--format", "html", "--out", "out")
    assert (done.code, f"Deterministic: {same()}" in done.out) == (0, True)
    assert 'class="lad wts"' not in done.out
