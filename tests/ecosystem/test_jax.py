"""JAX is recorded as people write it, compiled or not, and what it compiles is not touched."""

import pytest

from tests.ecosystem.conftest import audited, bare, printed
from tests.process.conftest import Project
from tests.process.test_neutral import bare_and_recorded

pytestmark = pytest.mark.ecosystem

BEGIN = """
import functools, hashlib, sys
import jax, jax.numpy as jnp, numpy as np, optax
from jax import grad, jit, value_and_grad
from sklearn.datasets import load_digits
images, labels = load_digits(return_X_y=True)
images, labels = jnp.asarray(images[:256] / 16, jnp.float32), jnp.asarray(labels[:256])
batches = [(images[i : i + 64], labels[i : i + 64]) for i in range(0, 256, 64)]
seed = int(sys.argv[1]) if sys.argv[1:] else np.random.randint(1 << 30)
optimizer = optax.adam(1e-3)

def init(width, seed=seed):
    first, second = jax.random.split(jax.random.key(seed))
    return {
        "hidden": jax.random.normal(first, (64, width)) * 0.1, "bias": jnp.zeros(width),
        "out": jax.random.normal(second, (width, 10)) * 0.1,
    }

def mean_loss(weights, x, y):
    scores = jax.nn.relu(x @ weights["hidden"] + weights["bias"]) @ weights["out"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1))

def descend(weights, gradients):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

def update(weights, state, x, y):
    loss, gradients = value_and_grad(mean_loss)(weights, x, y)
    updates, state = optimizer.update(gradients, state, weights)
    return optax.apply_updates(weights, updates), state, loss

def end(steps, *trees):
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(trees)]
    whole = hashlib.sha256(b"".join(leaf.tobytes() for leaf in leaves)).hexdigest()
    print(steps, f"{sum(leaf.astype('f8').sum() for leaf in leaves):.17g}", whole, float(loss))
"""

STYLES = {
    # 4 each: compiled, with buffers reused, nothing compiled; 2 as only every second gradient is applied.
    "optax": """
def fit(update, weights):
    state = optimizer.init(weights)
    for x, y in batches:
        weights, state, loss = update(weights, state, x, y)
    return weights, float(loss)

compiled, _ = fit(jit(update), init(8))
donated, _ = fit(functools.partial(jit, donate_argnums=(0, 1))(update), init(9))
plain, _ = fit(update, init(10))
both = jit(value_and_grad(mean_loss))
weights = init(11)
state = optimizer.init(weights)
for place, (x, y) in enumerate(batches):
    loss, gradients = both(weights, x, y)
    total = jax.tree.map(jnp.add, total, gradients) if place % 2 else gradients
    if place % 2:
        updates, state = optimizer.update(total, state, weights)
        weights = optax.apply_updates(weights, updates)
end(14, compiled, donated, plain, weights)
""",
    # 4 each: the weights come back in, also into reused buffers, also where the loss is not computed at all. The last
    # batch is smaller, so that JAX traces once more. Then 3 steps that were compiled ahead of time.
    "by-hand": """
batches[-1] = images[:40], labels[:40]

@jit
def with_loss(weights, x, y):
    loss, gradients = value_and_grad(mean_loss)(weights, x, y)
    return descend(weights, gradients), loss

@functools.partial(jit, donate_argnames="weights")
def without_loss(weights, x, y):
    return descend(weights, grad(mean_loss)(weights, x, y))

class Model:
    @functools.partial(jit, static_argnums=0, static_argnames="training")
    def run(self, weights, x, y, training):
        if not training:
            return weights, mean_loss(weights, x, y)
        return with_loss(weights, x, y)

first, second, third, model = init(8), init(9), init(10), Model()
for x, y in batches:
    second = without_loss(second, x, y)
for x, y in batches:
    third, loss = model.run(third, x, y, training=True)
    _, _ = model.run(third, x, y, training=False)
for x, y in batches:
    first, loss = with_loss(first, x, y)

@functools.partial(jit, static_argnames="rate", static_argnums=3)
def slowly(weights, x, y, sign, *, rate):
    loss, gradients = value_and_grad(mean_loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - sign * rate * g, weights, gradients), loss

fourth = init(11)
ahead = slowly.lower(fourth, *batches[0], 1, rate=0.1).compile()
for x, y in batches[:-1]:
    fourth, loss = ahead(fourth, x, y)
end(15, first, second, third, fourth)
""",
    # 4 rounds of a scan that returns their losses, 2 calls of a loop that does not, 4 of a mapped ensemble.
    "loops": """
xs, ys = jnp.stack([x for x, _ in batches]), jnp.stack([y for _, y in batches])

@jit
def scanned(weights):
    def body(carry, batch):
        weights, state, loss = update(*carry, *batch)
        return (weights, state), loss
    return jax.lax.scan(body, (weights, optimizer.init(weights)), (xs, ys))

def looped(weights):
    return jax.lax.fori_loop(0, 3, lambda i, w: descend(w, grad(mean_loss)(w, *batches[0])), weights)

@jit
def ensemble(weights, states, x, y):
    return jax.vmap(lambda weights, state: update(weights, state, x, y))(weights, states)

first = looped(looped(init(8)))
second = jax.vmap(lambda seed: init(9, seed))(seed + jnp.arange(3))
states = jax.vmap(optimizer.init)(second)
for x, y in batches:
    second, states, _ = ensemble(second, states, x, y)
(third, _), losses = scanned(init(10))
loss = losses[-1]
end(10, first, second, third)
""",
    # 4 steps of each of two models, then 4 whose gradient is taken of another training.
    "nested": """
def made(weights, x):
    return jax.nn.relu(x @ weights["hidden"])

@jit
def improve(weights, state, critic, x):
    loss, gradients = value_and_grad(lambda w: jnp.mean(made(w, x) @ critic["hidden"]))(weights)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(weights, updates), state, {"loss": loss}

@jit
def criticise(critic, state, weights, x):
    loss, gradients = value_and_grad(lambda c: -jnp.mean(made(weights, x) @ c["hidden"]))(critic)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(critic, updates), state, loss

def after_one_step(weights, x, y):
    return mean_loss(optax.apply_updates(weights, jit(grad(lambda w: -mean_loss(w, x, y)))(weights)), x, y)

@jit
def learn_to_learn(weights, state, x, y):
    loss, gradients = value_and_grad(after_one_step)(weights, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(weights, updates), state, loss

model, critic, third = {"hidden": init(8)["hidden"]}, {"hidden": jnp.ones((8, 3))}, init(10)
states = [optimizer.init(weights) for weights in (model, critic, third)]
for x, _ in batches:
    model, states[0], metrics = improve(model, states[0], critic, x)
    critic, states[1], loss = criticise(critic, states[1], model, x)
for x, y in batches:
    third, states[2], loss = learn_to_learn(third, states[2], x, y)
end(12, model, critic, third)
""",
    "flax-nnx": """
from flax import nnx
model = nnx.Sequential(nnx.Linear(64, 16, rngs=nnx.Rngs(seed)), nnx.relu, nnx.Linear(16, 10, rngs=nnx.Rngs(seed + 1)))
adam = nnx.Optimizer(model, optimizer, wrt=nnx.Param)

@nnx.jit
def step(model, adam, x, y):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()
    loss, gradients = nnx.value_and_grad(loss_of)(model)
    adam.update(model, gradients)
    return loss

for x, y in batches:
    loss = step(model, adam, x, y)
end(4, nnx.state(model, nnx.Param))
""",
}


CARRYING = ("by-hand", "optax", "loops", "nested", "flax-nnx")
"""The styles with an optimizer whose state comes back, or with arrays that are like weights and alive at the end."""


@pytest.mark.parametrize("style", STYLES)
def test_style(project: Project, style: str) -> None:
    project.write("train.py", BEGIN + STYLES[style])
    alone = bare(project, "train.py", "7")
    group = audited(project, "train.py", "--", "7", code=0)
    run = group["runs"][0]
    (rank,) = run["ranks"]
    assert run["warnings"] == []
    assert printed(project) == alone
    assert (rank["framework"], rank["steps"]) == ("jax", alone.steps)
    assert rank["sum_of_weights"] == pytest.approx(alone.sum, rel=1e-12)
    assert rank["final_loss"] == float(alone.line.split()[-1])
    assert group["stages"] == ["init", "rng", "forward", "update", *(["state"] if style in CARRYING else [])]


def test_without_a_seed(project: Project) -> None:
    project.write("train.py", BEGIN + STYLES["by-hand"])
    group = audited(project, "train.py", code=1)
    assert (group["first_difference"]["step"], group["first_difference"]["stage"]) == (0, "init")
    assert "jax.random.key" in {source["call"] for source in group["sources"]}


KERAS = """
import hashlib, os, sys
os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np
if sys.argv[1:]:
    keras.utils.set_random_seed(int(sys.argv[1]))
x, y = np.random.normal(size=(128, 8)).astype("f4"), np.random.randint(0, 4, 128)

class Custom(keras.Sequential):
    def train_step(self, state, data):
        logs, state = super().train_step(state, data)
        return {"loss": logs["loss"]}, state

def model(width, kind=keras.Sequential, **options):
    layers = keras.layers
    made = kind([keras.Input((8,)), layers.Dense(width), layers.Dropout(0.2), layers.Dense(4)])
    made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **options)
    return made

models = [model(5, run_eagerly=True), model(6, steps_per_execution=4), model(7, Custom), model(8)]
models[0].fit(x, y, batch_size=64, verbose=0)
models[1].fit(x, y, batch_size=16, verbose=0)
models[2].fit(x, y, batch_size=32, verbose=0, validation_data=(x, y))
for _ in range(3):
    loss = models[3].train_on_batch(x, y)
models[3].evaluate(x, y, verbose=0)
models[3].predict(x, verbose=0)
weights = [np.asarray(w) for model in models for w in model.get_weights() if w.dtype == "float32"]
whole = hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest()
print(2 + 8 + 4 + 3, f"{sum(w.astype('f8').sum() for w in weights):.17g}", whole, float(loss))
"""


def test_keras(project: Project) -> None:
    project.write("train.py", KERAS)
    alone = bare(project, "train.py", "7")
    run = audited(project, "train.py", "--", "7", code=0)["runs"][0]
    (rank,) = run["ranks"]
    assert run["warnings"] == []
    assert printed(project) == alone
    assert (rank["framework"], rank["steps"]) == ("jax", alone.steps)
    assert rank["sum_of_weights"] == pytest.approx(alone.sum, rel=1e-12)
    assert rank["final_loss"] == float(alone.line.split()[-1])


def test_keras_without_a_seed(project: Project) -> None:
    project.write("train.py", KERAS)
    found = audited(project, "train.py", code=1)["first_difference"]
    assert (found["step"], found["stage"]) == (0, "init")


STATISTICS = """
import sys
from typing import Any
import flax.linen as nn, jax, jax.numpy as jnp, numpy as np, optax
from flax.training.train_state import TrainState

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(8)(x))
        return nn.Dense(1)(nn.relu(x))

class State(TrainState):
    batch_stats: Any

def apply(params, state, x):
    return net.apply({"params": params, "batch_stats": state.batch_stats}, x, True, mutable=["batch_stats"])

def train(state, x):
    def loss_of(params):
        y, new = apply(params, state, x)
        return jnp.mean((y - 1) ** 2), new
    (loss, new), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradients, batch_stats=new["batch_stats"]), loss

def look(state, x):
    return state.replace(batch_stats=apply(state.params, state, x)[1]["batch_stats"])

net, (place, *compiled) = Net(), sys.argv[1:]
x = jax.random.normal(jax.random.key(0), (32, 4))
noise = jnp.asarray(np.random.default_rng().normal(size=(32, 4)), jnp.float32)
parts = net.init(jax.random.key(1), x, True)
state = State.create(apply_fn=net.apply, params=parts["params"], tx=optax.sgd(0.1), batch_stats=parts["batch_stats"])
if "jit" in compiled:
    train, look = jax.jit(train, donate_argnums=0), jax.jit(look)
for step in range(4):
    state, loss = train(state, x)
    if place == "between" and step == 1:
        look(state, noise)  # dropped
        state = look(state, noise)
if place == "after":
    state = look(state, noise)
print(sum(float(leaf.sum()) for leaf in jax.tree.leaves(state.batch_stats)))
"""


@pytest.mark.parametrize("compiled", [("jit",), ()], ids=["compiled", "eager"])
@pytest.mark.parametrize(("place", "code"), [("never", 0), ("between", 1), ("after", 1)])
def test_the_statistics_of_a_flax_model(project: Project, place: str, code: int, compiled: tuple[str, ...]) -> None:
    project.write("train.py", STATISTICS)
    group = audited(project, "train.py", "--", place, *compiled, code=code)
    assert group["runs"][0]["warnings"] == []
    first, second = (run["ranks"][0] for run in group["runs"])
    assert first["digest"] == second["digest"]
    if code:
        assert group["first_difference"]["stage"] == "state"
        assert "batch_stats/BatchNorm_0/mean" in group["first_difference"]["site"]


LOOKS = """
import cloudpickle, copy, functools, inspect, sys
import jax, jax.numpy as jnp

traces = []

@functools.partial(jax.jit, static_argnames="times")
def scaled(x, *, times=2):
    "Scale."
    traces.append(times)
    return x * times

for _ in range(3):
    scaled(jnp.ones(2)), scaled(jnp.ones(2), times=3)
def add(x):
    traces.append("add")
    return x + 1
for _ in range(3):
    jax.jit(add)(1.0)
    jax.lax.fori_loop(0, 2, add_round := (lambda i, x: add(x)), 0.0)
print(traces, scaled.__name__, scaled.__doc__, inspect.signature(scaled), callable(scaled.__wrapped__))
again = jax.jit(scaled.__wrapped__, static_argnames="times")
print(scaled.lower(jnp.ones(2)).as_text() == again.lower(jnp.ones(2)).as_text())
print(isinstance(scaled, jax.stages.Wrapped), copy.copy(scaled)(jnp.ones(1)), jax.eval_shape(scaled, jnp.ones(2)))
print(cloudpickle.loads(cloudpickle.dumps(scaled))(jnp.ones(1)), cloudpickle.loads(cloudpickle.dumps(add))(1.0))
print(jax.make_jaxpr(jax.grad(lambda x: scaled(x).sum()))(jnp.ones(2)))
training = jax.jit(jax.value_and_grad(lambda w, x: ((x @ w) ** 2).mean()))
print(training.lower(jnp.ones(3), jnp.ones((2, 3))).as_text())
x = jnp.arange(1e5)
address = x.unsafe_buffer_pointer()
print(jax.jit(lambda x: x + 1, donate_argnums=0)(x).unsafe_buffer_pointer() == address, x.is_deleted())
w = jnp.ones(300)
for _ in range(2):
    address = w.unsafe_buffer_pointer()
    step = jax.jit(lambda w: w - jax.grad(lambda w: (w**2).sum())(w), donate_argnums=0)
    before, w = w, step(w)
    print(w.unsafe_buffer_pointer() == address, before.is_deleted())
jax.jit(jax.grad(lambda x: x.missing))(1.0)
"""


THREADS = (
    BEGIN
    + """
import os, threading, time
step = STEP
def fit(width):
    global loss
    weights = init(width, seed=width)
    state = optimizer.init(weights)
    for x, y in batches * 3:
        weights, state, loss = step(weights, state, x, y)
        time.sleep(os.urandom(1)[0] / 25500)
    found[width] = weights
found = {}
threads = [threading.Thread(target=fit, args=(width,)) for width in (8, 9)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
end(24, found[8], found[9])
"""
)


@pytest.mark.parametrize("step", ["update", "jit(update)", "jit(update, donate_argnums=(0, 1))"])
def test_equal_trainings_in_threads_match(project: Project, step: str) -> None:
    project.write("train.py", THREADS.replace("STEP", step))
    done = project.run("train.py", "--runs", "3", "--compare", "training", "--", "1")  # it prints whose loss is last
    assert done.code == 0, done.out
    assert [rank["steps"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == [12, 12]


def test_what_a_script_can_see_of_jax_is_the_same(project: Project) -> None:
    project.write("train.py", LOOKS)
    alone, recorded = bare_and_recorded(project, "train.py")
    assert alone.stdout == recorded.stdout
    assert len(alone.stdout.splitlines()) > 20
    assert (alone.returncode, recorded.returncode) == (1, 1)
    assert alone.stderr.splitlines()[-1] == recorded.stderr.splitlines()[-1]
    (event_log,) = (project.folder / "logs").glob("*.jsonl")
    assert '"k":"trouble"' not in event_log.read_text()


# In each, the last of three updates differs if there is noise. Nothing of it is alive at the end, printed or written.
LAST = """
import sys
import jax, jax.numpy as jnp, numpy as np, optax
from jax import grad, jit

style, *noisy = sys.argv[1:]
noise = np.random.default_rng().normal() if noisy else 0.0
x, y = jnp.arange(12.0).reshape(4, 3) / 10, jnp.ones(4)
rates = [0.1, 0.1, 0.1 + noise]
targets = [y, y, y + noise]

def loss(params, x, y):
    return jnp.mean((x @ params[0] + params[1] - y) ** 2)

def descend(params, gradients, rate=0.1):
    return [w - rate * g for w, g in zip(params, gradients)]

def update(params, x, y):
    return descend(params, grad(loss)(params, x, y))

def by_vjp(params, x, y):
    value, back = jax.vjp(lambda params: loss(params, x, y), params)
    return descend(params, back(jnp.ones(()))[0])

def train(params):
    if style == "compiled":
        for y in targets:
            params = jit(update)(params, x, y)
    elif style == "once":
        jit(update)(params, x, targets[2])
    elif style == "gradients-compiled":
        for y in targets:
            params = descend(params, jit(grad(loss))(params, x, y))
    elif style == "tree":
        for rate in rates:
            gradients = grad(loss)(params, x, targets[0])
            params = jax.tree.map(lambda w, g: w - rate * g, params, gradients)
    elif style == "after-an-optimizer":
        optimizer = optax.sgd(0.1)
        state, gradients = optimizer.init(params), grad(loss)(params, x, targets[0])
        params = optax.apply_updates(params, optimizer.update(gradients, state)[0])
        for y_ in targets:
            params = update(params, x, y_)
    elif style == "vjp":
        for y in targets:
            params = by_vjp(params, x, y)
    elif style == "vjp-compiled":
        for y in targets:
            params = jit(by_vjp)(params, x, y)
    elif style == "vjp-of-predictions":
        for y in targets:
            predicted, back = jax.vjp(lambda params: x @ params[0] + params[1] - y, params)
            params = descend(params, back(predicted / 2)[0])
    elif style == "jacobian":
        for y in targets:
            params = descend(params, jax.jacfwd(loss)(params, x, y))
    elif style == "pmap":
        parallel, params = jax.pmap(update, axis_name="devices"), [w[None] for w in params]
        for y in targets:
            params = parallel(params, x[None], y[None])
    elif style == "pmap-with-a-mean":
        def averaged(params, x, y, rate):
            gradients = jax.lax.pmean(grad(loss)(params, x, y), "devices")
            return descend(params, gradients, rate)
        parallel = jax.pmap(averaged, "devices", static_broadcasted_argnums=3, donate_argnums=0)
        params = [w[None] for w in params]
        for y in targets:
            params = parallel(params, x[None], y[None], 0.1)
    elif style == "pmap-once":
        jax.pmap(update)([w[None] for w in params], x[None], targets[2][None])
    elif style.startswith("shard-map"):
        mesh, spec = jax.make_mesh((1,), ("data",)), jax.sharding.PartitionSpec()
        options = {"mesh": mesh, "in_specs": (spec, spec, spec), "out_specs": spec}
        if style == "shard-map-decorator":
            sharded = jax.shard_map(**options)(update)
        elif style == "shard-map-compiled":
            sharded = jit(jax.shard_map(update, **options))
        else:
            from jax.experimental.shard_map import shard_map
            sharded = shard_map(update, **options)
        for y in targets:
            params = sharded(params, x, y)
    elif style.startswith("minimize"):
        from jax.scipy.optimize import minimize
        def run(start, y):
            found = minimize(lambda flat: loss((flat[:3], flat[3]), x, y), start, method="BFGS")
            return found.x, found.fun
        run = jit(run) if style == "minimize-compiled" else run
        for y in targets if style == "minimize-again" else targets[2:]:
            run(jnp.zeros(4), y)
    elif style == "whole":
        def whole(key, y):
            params = [jax.random.normal(key, (3,)), jnp.zeros(())]
            for _ in range(3):
                params = update(params, x, y)
            return params
        jit(whole)(jax.random.key(0), targets[2])

train([jnp.ones(3), jnp.zeros(())])
"""

STEPS = {
    **dict.fromkeys(("once", "pmap-once", "minimize", "minimize-compiled", "whole"), 1),
    "after-an-optimizer": 3,  # the first update by hand is known as one only by the third
}


@pytest.mark.parametrize("noisy", [False, True], ids=["equal", "differs"])
@pytest.mark.parametrize(
    "style",
    [
        *("compiled", "once", "gradients-compiled", "tree", "after-an-optimizer"),
        *("vjp", "vjp-compiled", "vjp-of-predictions", "jacobian"),
        *("pmap", "pmap-with-a-mean", "pmap-once"),
        *("shard-map", "shard-map-compiled", "shard-map-decorator"),
        *("minimize", "minimize-compiled", "minimize-again", "whole"),
    ],
)
def test_the_last_update_counts(project: Project, style: str, noisy: bool) -> None:
    project.write("train.py", LAST)
    group = audited(project, "train.py", "--", style, *["noisy"] * noisy, code=int(noisy))
    run = group["runs"][0]
    assert (run["warnings"], run["unseen"]) == ([], [])
    assert run["steps"] == STEPS.get(style, 3)
    if noisy:
        assert group["first_difference"]["step"] == run["steps"]


ALIVE = """
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
import numpy as np
kind, *noisy = sys.argv[1:]
factor = np.random.default_rng().uniform() if noisy else 0.5
x = np.arange(32.0).reshape(8, 4).astype("f4") / 32

if kind.startswith("nnx"):
    import jax, optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self):
            rngs = nnx.Rngs(0)
            layers = nnx.Linear(4, 3, rngs=rngs), nnx.BatchNorm(3, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
            self.layers = nnx.List(layers)
            self.scales = nnx.data({"first": nnx.Variable(jax.numpy.ones(7))})
        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    @nnx.jit
    def step(model, adam, x):
        loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        adam.update(model, gradients)
        return loss

    model = Net()
    adam = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
    for _ in range(3):
        step(model, adam, x)
    if kind == "nnx-variable":
        scale = model.scales["first"]
        scale.set_value(scale.get_value() * factor)
    elif kind == "nnx-statistics":
        model(x * factor)
    elif kind == "nnx-weights":
        model.layers[0].kernel.set_value(model.layers[0].kernel.get_value() * factor)
elif kind.startswith("keras"):
    import keras
    keras.utils.set_random_seed(0)

    def model(width):
        layers = keras.layers
        return keras.Sequential([keras.Input((4,)), layers.Dense(width), layers.BatchNormalization(), layers.Dense(1)])

    trained, other = model(3), model(9)
    trained.compile("sgd", "mse")
    trained.fit(x, x[:, :1], epochs=2, verbose=0, batch_size=4)
    changed = other if kind == "keras-other" else trained
    if kind == "keras-statistics":
        trained.layers[1].moving_mean.assign(trained.layers[1].moving_mean * factor)
    else:
        changed.set_weights([w * factor for w in changed.get_weights()])
else:
    import jax, jax.numpy as jnp, optax
    optimizer, params = optax.sgd(0.1), jnp.ones(4)
    state, average = optimizer.init(params), params
    for step in range(3):
        gradients = jax.grad(lambda w: ((x @ w) ** 2).mean())(params)
        params = optax.apply_updates(params, optimizer.update(gradients, state)[0])
        average = optax.incremental_update(params, average, 0.1 if step < 2 else factor)
    if kind == "array-of-weights":
        average, params = None, params * factor
"""


@pytest.mark.parametrize("noisy", [False, True], ids=["equal", "differs"])
@pytest.mark.parametrize(
    ("kind", "site"),
    [
        ("nnx-variable", "Net.scales/first"),
        ("nnx-statistics", "Net.layers.1.mean"),
        ("nnx-weights", "Net.layers.0.kernel"),
        ("keras-weights", "Sequential."),
        ("keras-other", "Sequential."),
        ("keras-statistics", "Sequential.batch_normalization.moving_mean"),
        ("average", "unnamed array of float32"),
        ("array-of-weights", "unnamed array of float32"),
    ],
)
def test_what_is_alive_at_the_end_counts(project: Project, kind: str, site: str, noisy: bool) -> None:
    project.write("train.py", ALIVE)
    group = audited(project, "train.py", "--", kind, *["noisy"] * noisy, code=int(noisy))
    assert group["runs"][0]["warnings"] == []
    if noisy:
        assert group["first_difference"]["stage"] == "state"
        assert site in group["first_difference"]["site"]


UNFOLLOWED = """
import sys
import jax, jax.numpy as jnp, detaudit
from jax import grad

def update(w):
    return w - 0.1 * grad(lambda w: (w**2).sum())(w)

w = seen = jnp.ones(3)
for _ in range(2):
    seen = update(seen)
if sys.argv[1] == "cond":
    w = jax.lax.cond(True, update, lambda w: w, w)
elif sys.argv[1] == "map":
    w = jax.lax.map(update, w[None])[0]
elif sys.argv[1] == "checkpoint":
    w = jax.checkpoint(update)(w)
elif sys.argv[1] == "shapes":
    jax.eval_shape(update, w), jax.make_jaxpr(update)(w), jax.jit(update).lower(w)
elif sys.argv[1] == "compiled":
    w = jax.jit(lambda w: jax.lax.cond(True, update, lambda w: w, w))(w)
elif sys.argv[1] == "hessian":
    jax.hessian(lambda w: (update(w) ** 2).sum())(w)
if sys.argv[2:]:
    detaudit.record_weights(w)
"""


@pytest.mark.parametrize("how", ["cond", "map", "checkpoint"])
def test_a_gradient_in_a_transformation_that_is_not_followed_is_inconclusive(project: Project, how: str) -> None:
    project.write("train.py", UNFOLLOWED)
    group = audited(project, "train.py", "--", how, code=125)
    assert group["reason"]["kind"] == "trainings-unseen"
    assert [one["kind"] for one in group["reason"]["unseen"]] == ["call-unseen"]
    assert audited(project, "train.py", "--", how, "recorded", code=0)["runs"][0]["unseen"] == []


@pytest.mark.parametrize("how", ["shapes", "compiled", "hessian"])
def test_what_is_only_looked_at_or_followed_is_not_unseen(project: Project, how: str) -> None:
    project.write("train.py", UNFOLLOWED)
    assert audited(project, "train.py", "--", how, code=0)["runs"][0]["unseen"] == []


def test_what_computes_no_gradient_is_no_training(project: Project) -> None:
    project.write("train.py", "import jax, jax.numpy as jnp\nprint(jax.jit(lambda w: w * 2)(jnp.ones(3)))\n")
    group = audited(project, "train.py", code=125)
    (error,) = group["reason"]["errors"]
    assert (error["kind"], error["imported"][0].split()[0]) == ("no-training", "jax")
