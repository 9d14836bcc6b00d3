"""Real training in each framework, unmodified, started in every way, gets the right verdict."""

import os
import sys
import venv
from pathlib import Path

import pytest

from detaudit.config import choice
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from tests.process.conftest import Project
from tests.words import different, same

TORCH_OPTIMIZER = """
    import hashlib, torch
    def main():
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(4):
            x = torch.randn(32, 8)
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total = sum(p.double().sum().item() for p in model.parameters())
        weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        print(f"{total:.17g} {loss.item():.17g} {hashlib.sha256(weights).hexdigest()}")
    main()
"""

KERAS_FIT = """
    import hashlib, keras, numpy as np
    def main():
        x, y = np.random.normal(size=(256, 8)).astype("f4"), np.random.randint(0, 4, 256)
        layers = keras.layers
        model = keras.Sequential([keras.Input((8,)), layers.Dense(16), layers.Dropout(0.2), layers.Dense(4)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(x, y, epochs=2, batch_size=64, verbose=0)
        weights = b"".join(w.tobytes() for w in model.get_weights())
        print(f"{sum(w.astype('f8').sum() for w in model.get_weights()):.17g} {hashlib.sha256(weights).hexdigest()}")
    main()
"""

TAPE = """
    import hashlib, tensorflow as tf
    x = tf.random.normal((64, 8))
    w = tf.Variable(tf.random.normal((8, 1)))
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - tf.random.normal((64, 1))) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        noise = tf.random.normal(())  # after the gradient: its seed must not move
        return loss + 0.0 * noise
    for _ in range(2):
        step()
    compiled = tf.function(step)
    for _ in range(3):
        loss = compiled()
    print(f"{w.numpy().astype('f8').sum():.17g} {float(loss):.17g} {hashlib.sha256(w.numpy().tobytes()).hexdigest()}")
"""


@pytest.mark.parametrize(
    ("text", "framework", "steps"),
    [
        (TORCH_OPTIMIZER, "torch", 4),
        pytest.param(KERAS_FIT, "tensorflow", 8, marks=pytest.mark.slow),
        pytest.param(TAPE, "tensorflow", 5, marks=pytest.mark.slow),
    ],
    ids=["torch", "keras-fit", "gradient-tape"],
)
def test_without_flags_and_with_seeds(project: Project, text: str, framework: str, steps: int) -> None:
    project.write("train.py", text)
    done = project.run("train.py", "--runs", "2", "--recipe", "none", "--recipe", "seeds", "--out", "results")
    assert done.code == 1, done.err
    bare, seeded = done.json["groups"]
    assert (bare["verdict"], bare["distinct_results"]) == ("nondeterministic", 2)
    assert (seeded["verdict"], seeded["distinct_results"]) == ("deterministic", 1)
    first, second = seeded["runs"]
    assert first["ranks"] == second["ranks"]
    assert first["steps"] == steps
    assert first["ranks"][0]["framework"] == framework
    assert (bare["first_difference"]["step"], bare["first_difference"]["stage"]) == (0, "init")
    printed = (project.folder / "results" / "runs" / "seeds" / "1" / "stdout.log").read_text().split()[0]
    assert float(printed) == pytest.approx(first["ranks"][0]["sum_of_weights"], rel=1e-12)


def test_a_loop_without_an_optimizer_records_its_last_update(project: Project) -> None:
    project.write("train.py", "import torch_training as t\nprint(f'{t.train(seed=0).double().sum().item():.17g}')\n")
    done = project.run("train.py", "--runs", "1", "--out", "results")
    printed = (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text()
    assert float(printed) == pytest.approx(done.json["groups"][0]["runs"][0]["ranks"][0]["sum_of_weights"], rel=1e-12)


def test_module_with_arguments(project: Project) -> None:
    project.write("pkg/__init__.py", "")
    project.write("pkg/fit.py", "import sys, training\ntraining.train(steps=int(sys.argv[2]), seed=0)\n")
    done = project.run("-m", "pkg.fit", "--runs", "2", "--", "--steps", "5")
    assert done.code == 0
    assert {run["steps"] for run in done.json["groups"][0]["runs"]} == {5}


def test_options_may_follow_the_script_and_its_arguments_follow_the_dashes(project: Project) -> None:
    project.write("train.py", "import sys, training\ntraining.train(steps=int(sys.argv[1]), seed=0)\n")
    done = project.detaudit("run", "train.py", "--runs", "2", "--format", "json", "--", "6")
    assert done.code == 0
    assert done.json["groups"][0]["runs"][0]["steps"] == 6


def test_a_command_through_a_shell_script(project: Project, seeded: str) -> None:
    project.write("run.sh", f'#!/bin/sh\ncd "$(dirname "$0")"\n{sys.executable} {seeded} | cat\n').chmod(0o755)
    done = project.run("--runs", "2", "--", "./run.sh")
    assert done.code == 0
    assert done.json["groups"][0]["runs"][0]["steps"] == 3


@pytest.mark.slow
def test_a_python_that_does_not_have_detaudit(project: Project, seeded: str, tmp_path: Path) -> None:
    import torch

    packages = Path(torch.__file__).parent.parent
    theirs = tmp_path / "site"
    theirs.mkdir()
    for entry in packages.iterdir():
        if not any(word in entry.name.lower() for word in ("detaudit", "msgspec", "psutil", "click", "editable")):
            (theirs / entry.name).symlink_to(entry)
    venv.create(tmp_path / "venv", with_pip=False)
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "theirs.pth").write_text(f"{theirs}\n")
    project.write(
        "train.py",
        """
        import importlib.util, torch_training
        assert importlib.util.find_spec("detaudit") is None
        assert importlib.util.find_spec("msgspec") is None
        torch_training.train(seed=0)
        """,
    )
    done = project.run("train.py", "--runs", "2", "--python", str(tmp_path / "venv" / "bin" / "python"))
    assert done.code == 0, done.out
    assert done.json["groups"][0]["runs"][0]["steps"] == 3


@pytest.mark.slow
def test_only_the_framework_that_trains_is_compared(project: Project) -> None:
    project.write("train.py", "import tensorflow, torch_training\ntorch_training.train(seed=0)\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    assert [rank["framework"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == ["torch"]
    assert {"torch", "tensorflow"} <= set(done.json["environment"]["frameworks"])  # Keras may import scikit-learn


@pytest.mark.full
def test_every_trained_model_counts(project: Project) -> None:
    """Two models in turn, each dropped after its training, of which only the first is unseeded."""
    project.write(
        "train.py",
        """
        import torch
        def fit(seed):
            torch.manual_seed(seed) if seed is not None else torch.seed()
            model = torch.nn.Linear(8, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(2):
                loss = model(torch.ones(4, 8)).pow(2).mean()
                optimizer.zero_grad(); loss.backward(); optimizer.step()
        fit(None)
        fit(0)
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1
    runs = done.json["groups"][0]["runs"]
    assert runs[0]["steps"] == 4
    assert runs[0]["ranks"][0]["sum_of_weights"] != runs[1]["ranks"][0]["sum_of_weights"]


def test_two_recipes_are_one_table(project: Project) -> None:
    project.write("train.py", "import training\ntraining.train()\n")
    done = project.detaudit("run", "train.py", "--runs", "2", "--recipe", "none", "--recipe", "all")
    assert done.code == 1
    assert "none: no flags\n" in done.out
    flags = load_recipe("all", load_catalogue(), devices=choice.devices()).flags
    assert f"all: {len(flags)} flags, seed 0" in done.out
    assert f"nondeterministic: {different()}\n" in done.out
    assert f"deterministic: {same()}\n" in done.out
    comment = "# use in CI: exits 0 as long as it stays deterministic"
    assert f"  {comment}\n  detaudit run train.py --runs 2 --recipe all\n" in done.out


@pytest.mark.parametrize("module", ["training", pytest.param("torch_training", marks=pytest.mark.full)])
def test_a_recipe_uses_the_requested_seed(project: Project, module: str) -> None:
    project.write("train.py", f"import {module}\n{module}.train()\n")
    project.write("theirs.py", f"import {module}\n{module}.train(seed=7)\n")
    ours = project.run("train.py", "--runs", "1", "--recipe", "seeds", "--seed", "7")
    theirs = project.run("theirs.py", "--runs", "1")
    digests = [done.json["groups"][0]["runs"][0]["ranks"][0]["digest"] for done in (ours, theirs)]
    assert digests[0] == digests[1]


def test_a_user_recipe(project: Project) -> None:
    project.write("train.py", "import training\ntraining.train()\n")
    project.write("mine.yaml", "name: mine\nextends: [none]\nflags: [python-random-seed]\nseed: 3\n")
    done = project.run("train.py", "--runs", "2", "--recipe", "mine.yaml")
    assert done.code == 0
    assert done.json["groups"][0]["recipe"] == {"name": "mine", "seed": 3, "flags": ["python-random-seed"]}


def test_fail_fast_stops_at_the_first_difference(project: Project, unseeded: str) -> None:
    done = project.run(unseeded, "--runs", "5", "--fail-fast")
    assert done.code == 1
    assert len(done.json["groups"][0]["runs"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("library", ["json", pytest.param("torch", marks=pytest.mark.full)])
def test_fixed_addresses_order_sets_of_objects(project: Project, library: str) -> None:
    project.write(
        "train.py",
        f"""
        import detaudit, {library}
        class Item:
            def __init__(self, value): self.value = value
        items = set(map(Item, range(2000)))
        for item in list(items)[:3]:
            detaudit.record(loss=item.value, weights=[item.value])
        """,
    )
    flags = ("--flag", "system-aslr-off")
    assert project.run("train.py", "--runs", "8", "--fail-fast").code == 1
    fixed = project.run("train.py", "--runs", "3", *flags)
    states = {flag["id"]: flag["state"] for flag in fixed.json["groups"][0]["flags"]}
    if states["system-aslr-off"] == "unavailable":  # a container that forbids it: then it must be said
        unavailable = [one for one in fixed.json["warnings"] if one["kind"] == "flag-not-applied"]
        assert [one["flag"] for one in unavailable] == ["system-aslr-off"]
    else:
        assert fixed.code == 0


def test_the_first_run_writes_no_bytecode_that_moves_fixed_addresses(project: Project) -> None:
    project.write(
        "parts.py", "\n".join(f"def f{number}(x=({number}, 'text {number}')): return x" for number in range(300))
    )
    project.write(
        "train.py",
        """
        import parts, detaudit
        class Item:
            def __init__(self, value): self.value = value
        for item in list(set(map(Item, range(2000))))[:3]:
            detaudit.record(loss=item.value, weights=[item.value])
        """,
    )
    done = project.run("train.py", "--flag", "system-aslr-off", "--runs", "3", env={"PYTHONDONTWRITEBYTECODE": ""})
    states = {flag["id"]: flag["state"] for flag in done.json["groups"][0]["flags"]}
    assert done.code == 0 or states["system-aslr-off"] == "unavailable"
    assert not (project.folder / "__pycache__").exists()


def test_a_flag_that_fails_is_a_warning(project: Project) -> None:
    project.write("torch.py", "__version__ = '0'\n")  # something else of that name: it has no manual_seed
    project.write("train.py", "import torch\n")
    done = project.run("train.py", "--runs", "2", "--recipe", "seeds", env={"PYTHONPATH": os.fspath(project.folder)})
    assert done.code == 125
    about = {"kind": "flag-not-applied", "audit": "", "recipe": "seeds", "run": 0, "recording": ""}
    reason = {"kind": "refused-in-process", "detail": "torch 0 has no torch.manual_seed"}
    assert {**about, "flag": "torch-seed", "reason": reason} in done.json["warnings"]


STAGED = """
    import numpy as np, os, torch
    torch.manual_seed(0)
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        def forward(self, *, features):
            return self.layers(features)
    model, error = Model(), torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = float.fromhex(os.urandom(4).hex()) * 1e-6
    for step in range(1, 4):
        features, targets = torch.randn(16, 8), torch.randn(16, 1)
        late = noise if step == 2 else 0.0
        INPUT
        loss = error(model(features=features), targets)
        LOSS
        optimizer.zero_grad()
        loss.backward()
        GRADIENT
        optimizer.step()
        WEIGHTS
"""


@pytest.mark.parametrize(
    ("place", "code", "stage"),
    [
        pytest.param("INPUT", "features = features + late", "batch", marks=pytest.mark.full),
        ("GRADIENT", "model.layers[0].bias.grad += late", "backward"),
        pytest.param("INPUT", "targets = targets + late", "batch", marks=pytest.mark.slow),
        pytest.param(
            "INPUT", "targets, error = targets + late, torch.nn.functional.mse_loss", "batch", marks=pytest.mark.slow
        ),
        pytest.param("INPUT", "np.random.seed(int(1 + late * 1e6))", "rng", marks=pytest.mark.full),
        pytest.param("LOSS", "loss = loss * (1 + late)", "forward", marks=pytest.mark.slow),
        pytest.param("WEIGHTS", "with torch.no_grad(): model.layers[0].bias += late", None, marks=pytest.mark.full),
    ],
    ids=["inputs", "gradients", "targets", "targets of a function", "generator", "loss", "weights"],
)
def test_the_first_stage_that_differs_is_named(project: Project, place: str, code: str, stage: str | None) -> None:
    text = STAGED
    for name in ("INPUT", "LOSS", "GRADIENT", "WEIGHTS"):
        text = text.replace(name, code if name == place else "pass")
    project.write("train.py", text)
    done = project.run("train.py", "--runs", "2", "--stages", "all")
    group = done.json["groups"][0]
    assert group["stages"] == ["init", "rng", "batch", "forward", "backward", "update", "state"]
    if place == "INPUT" and stage == "rng":  # an unused generator does not change the result
        assert done.code == 0
        return
    found = group["first_difference"]
    # Weights that are changed behind the optimizer's back show in the next forward pass.
    assert (found["step"], found["stage"]) == ((2, stage) if stage else (3, "forward"))


def test_stages_that_were_not_requested_are_reported_as_not_recorded(project: Project) -> None:
    project.write("train.py", "import torch_training\ntorch_training.train(seed=0)\n")
    done = project.detaudit("run", "train.py", "--runs", "2", "--stages", "update")
    assert done.code == 0
    assert "compared: update; printed text; the exit status;" in done.out
    assert "not recorded: init, rng, batch, forward, backward, state" in done.out
    assert project.detaudit("run", "train.py", "--stages", "updat").code == 2


IN_PLACE = """
            loss_of(w).backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
"""
THROUGH_DATA = IN_PLACE.replace("w -= 0.1 * w.grad", "w.data -= 0.1 * w.grad")
THROUGH_THE_MODEL = (
    IN_PLACE.replace("loss_of(w)", "model((w * torch.randn(4, 1)).T).sum()")
    + """
            optimizer.zero_grad()
"""
)
FUNCTIONAL = """
            w = w - 0.1 * torch.func.grad(loss_of)(w)
"""


@pytest.mark.slow
@pytest.mark.parametrize("update", [IN_PLACE, THROUGH_DATA, THROUGH_THE_MODEL, FUNCTIONAL])
@pytest.mark.parametrize(("seed", "code"), [("torch.manual_seed(1)", 0), ("torch.seed()", 1)])
def test_a_training_by_hand_after_one_with_an_optimizer(project: Project, update: str, seed: str, code: int) -> None:
    project.write(
        "train.py",
        f"""
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        for _ in range(5):
            for _ in range(3):  # gradients are accumulated
                model(torch.randn(16, 4)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        {seed}
        def loss_of(w):
            return (torch.randn(8, 4) @ w - 1).pow(2).mean()
        w = torch.zeros(4, 1, requires_grad={update != FUNCTIONAL})
        for _ in range(6):{update}
        del w
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == code, done.out
    assert done.json["groups"][0]["runs"][0]["steps"] == 5 + 6
