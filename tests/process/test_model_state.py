"""What models hold beside the weights that an optimizer updates is compared too: buffers, copies, frozen weights."""

from collections.abc import Iterable
from textwrap import dedent

import pytest

from tests.process.conftest import Project

NETWORK = """
    import copy, gc, os, torch
    nn = torch.nn
    torch.manual_seed(0)
    entropy = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))

    def network():
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    def noise(*shape):
        return torch.rand(*shape, generator=entropy)

    def train(model, order=list, steps=4, between=lambda step: None):
        optimizer = torch.optim.SGD(order(model.parameters()), 0.1)
        for step in range(steps):
            optimizer.zero_grad()
            model(torch.randn(16, 4)).pow(2).mean().backward()
            optimizer.step()
            between(step)

    def look(model):
        with torch.no_grad():
            model(noise(16, 4))
"""

DIFFERENT = {
    "statistics refreshed after the training": ("""
        model = network()
        train(model)
        look(model)
    """, 4, "Sequential.1.running_mean and 1 more"),
    "statistics refreshed during the training": ("""
        model = network()
        train(model, between=lambda step: look(model) if step == 1 else None)
    """, 3, "Sequential.1.running_mean and 1 more"),
    "in a function that returns": ("""
        def main():
            model = network()
            train(model)
            look(model)
        main()
    """, 4, "Sequential.1.running_mean and 1 more"),
    "in a cycle that the garbage collector frees": ("""
        def main():
            model = network()
            model.itself = [model]
            train(model)
            look(model)
        main()
        gc.collect()
    """, 4, "Sequential.1.running_mean and 1 more"),
    "an average that is never called": ("""
        model = network()
        train(model)
        average = copy.deepcopy(model)
        average[0].weight.data += noise(8, 4)
    """, 4, "Sequential.0.weight"),
    "weights edited after their optimizer is gone": ("""
        model = network()
        train(model)
        train(network())
        model[2].bias.data += noise(1)
    """, 8, "Sequential.2.bias"),
    "a model that ran before the training and after it": ("""
        model = network()
        model(torch.ones(16, 4))
        train(network())
        model[2].bias.data += noise(1)
        model(torch.ones(16, 4))
        del model
    """, 4, "Sequential.2.bias"),
    "statistics of a compiled function, and its model freed": ("""
        def main():
            model, other = network(), nn.BatchNorm1d(4)
            model(other(torch.ones(16, 4)))
            call = torch.compile(lambda x: model(other(x)), backend="eager")
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            call(torch.randn(16, 4)).mean().backward()
            optimizer.step()
            with torch.no_grad():
                call(noise(16, 4))
        main()
    """, 1, "BatchNorm1d.running_mean and 3 more"),
}  # fmt: skip

SAME = """
    summed_up = network()
    summed_up[2].bias.data = noise(1)
    summed_up(torch.ones(16, 4))
    summed_up.itself = [summed_up]  # the garbage collector frees it some time later
    del summed_up
    model = network()
    train(model, order=lambda parameters: list(set(parameters)))  # sets of tensors are ordered by address

    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)
            self.register_buffer("cache", noise(8), persistent=False)

        def forward(self, x):
            return self.layer(x)

    cached = Cached()
    train(cached)

    pretrained = network()
    pretrained[2] = nn.Linear(8, 1)
    pretrained[2].weight.data = noise(1, 8)
    pretrained[2] = nn.Linear(8, 1)  # a layer that was replaced before it ran
    train(pretrained)

    for size in (64, 32):  # a search for the batch size: copies that are trained and dropped
        probe = copy.deepcopy(model)
        probe(torch.ones(size, 4)).mean().backward()
    lazy = nn.LazyLinear(3)
    meta = nn.Linear(3, 3, device="meta")
    half = nn.Linear(3, 3).bfloat16()
"""


def scripts(names: Iterable[str]) -> list[object]:
    first, *rest = names
    return [first, *[pytest.param(name, marks=pytest.mark.slow) for name in rest]]


@pytest.mark.full
@pytest.mark.parametrize("name", scripts(DIFFERENT))
def test_a_state_that_differs_is_named(project: Project, name: str) -> None:
    text, step, site = DIFFERENT[name]
    project.write("train.py", dedent(NETWORK) + dedent(text))
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 1, done.out
    found = done.json["groups"][0]["first_difference"]
    assert (found["step"], found["stage"], found["site"]) == (step, "state", site)
    first, second = (run["ranks"][0] for run in done.json["groups"][0]["runs"])
    assert (first["digest"] == second["digest"]) == ("weights edited" not in name)
    assert first["state_digest"] != second["state_digest"]


@pytest.mark.slow
def test_what_is_not_part_of_a_model_does_not_count(project: Project) -> None:
    project.write("train.py", dedent(NETWORK) + dedent(SAME))
    done = project.run("train.py", "--runs", "3")
    assert done.code == 0, done.out
    assert done.json["groups"][0]["runs"][0]["warnings"] == []
    assert "state" in done.json["groups"][0]["stages"]


QUANTIZED = """
    import warnings
    warnings.simplefilter("ignore")
    from torch.ao import quantization
    model = nn.Sequential(quantization.QuantStub(), nn.Linear(4, 8), nn.ReLU(), quantization.DeQuantStub())
    train(model)
    model.eval()
    model.qconfig = quantization.get_default_qconfig("x86")
    prepared = quantization.prepare(model)
    prepared(CALIBRATION)
    quantized = quantization.convert(prepared)
    del model, prepared
    quantized(torch.ones(1, 4))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("data", "code"), [("noise(16, 4)", 1), ("torch.ones(16, 4)", 0)])
def test_a_quantized_model_is_compared_by_its_scales(project: Project, data: str, code: int) -> None:
    project.write("train.py", dedent(NETWORK) + dedent(QUANTIZED.replace("CALIBRATION", data)))
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == code, done.out
    assert done.json["groups"][0]["runs"][0]["warnings"] == []


KERAS = """
    import keras, numpy as np
    keras.utils.set_random_seed(0)
    x, y = np.random.normal(size=(64, 8)).astype("f4"), np.random.normal(size=(64, 1)).astype("f4")
    noise = np.random.default_rng().normal(size=(16, 8)).astype("f4")

    def main(look):
        layers = [keras.layers.Dense(4), keras.layers.BatchNormalization(name="norm"), keras.layers.Dropout(0.1)]
        model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(1)], name="net")
        model.compile("sgd", "mse", metrics=["mae"])
        for step in range(4):
            model.train_on_batch(x, y)
            if step == look:
                model(noise, training=True)
        model.predict(x, verbose=0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("look", "step"), [(3, 4), (1, 3), (None, None)], ids=["at the end", "between", "never"])
def test_the_state_of_a_keras_model(project: Project, look: int | None, step: int | None) -> None:
    project.write("train.py", dedent(KERAS) + f"main({look})\n")
    done = project.run("train.py", "--runs", "2", "--full")
    (group,) = done.json["groups"]
    assert group["runs"][0]["warnings"] == []
    if look is None:
        assert done.code == 0, done.out
        return
    found = group["first_difference"]
    assert (found["step"], found["stage"]) == (step, "state")
    assert found["site"] == "Sequential.norm.moving_mean and 1 more"


MODULE = """
    import tensorflow as tf
    class Inner(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones((8, 1)))
            self.average = tf.Variable(tf.ones((8, 1)), trainable=False)

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.blocks = [Inner(), Inner()]
            self.layer = keras.layers.Dense(1)

    net = Net()
    net.blocks[1].average.assign(tf.random.normal((8, 1)) if SEEDED else noise[:8, :1])
    main(None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
def test_a_module_of_tensorflow_that_no_optimizer_updates(project: Project, seeded: bool) -> None:
    project.write("train.py", dedent(KERAS) + dedent(MODULE).replace("SEEDED", str(seeded)))
    done = project.run("train.py", "--runs", "2", "--full")
    (group,) = done.json["groups"]
    assert group["runs"][0]["warnings"] == []
    assert done.code == (0 if seeded else 1), done.out
    if not seeded:
        assert group["first_difference"]["site"] == "Net.blocks.1.average"
