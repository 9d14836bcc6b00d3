"""Evaluation and generation get a verdict: what outermost calls of models return is a result."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from detaudit import wire
from detaudit.model import Difference, Stage
from detaudit.runs.log import Process, read_run
from tests.process.conftest import Project

BOOTSTRAP = Path(wire.__file__).parent / "recorder" / "bootstrap"

EVALUATED = """
    import os, torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)).eval()
    entropy = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
    x = torch.ones(3, 4)
"""

TRAINED = (
    EVALUATED
    + """
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def look():
        with torch.no_grad():
            model(torch.rand(3, 4, generator=entropy))

    for step in range(3):
        look()
        model(torch.ones(3, 4) * step).pow(2).mean().backward()
        optimizer.step()
"""
)

CALLS = (
    EVALUATED
    + """
    class Answer(torch.nn.Module):
        def forward(self, x):
            return {"logits": model(x), "more": (x + 1, 3)}

    class Sampler(torch.nn.Module):
        def forward(self, x):
            return x * 2

        @torch.no_grad()
        def generate(self, x, length):
            for _ in range(length):
                x = self(x)
            return x

    class Greedy(Sampler):
        pass

    Answer()(x)                                                     # 1
    Greedy().generate(x, 5)                                         # 2
    with torch.inference_mode():
        model(x)                                                    # 3
    torch.func.functional_call(model, dict(model.named_parameters()), (x,))   # repeats 3
    model(2 * x)                                                    # 4
    torch.vmap(model)(x)                                            # repeats 3
    torch.nn.CrossEntropyLoss()(x, x)                               # 5
    torch.nn.Identity()(None)                                       # returns no values
    torch.jit.trace(model, x, check_trace=False)                    # is traced
    torch.fx.symbolic_trace(model)                                  # is traced
    model.to("meta")(x.to("meta"))                                  # has no values
"""
)


def recorded(folder: Path, text: str) -> list[Process]:
    """Run a script with the recorder alone, and return what it recorded."""
    script = folder / "script.py"
    script.write_text(dedent(text))
    (folder / wire.LOGS).mkdir()
    env = {**os.environ, wire.ENV_LOGS: str(folder / wire.LOGS), "PYTHONPATH": str(BOOTSTRAP)}
    subprocess.run([sys.executable, str(script)], env=env, cwd=folder, check=True, timeout=300)
    return read_run(folder)


@pytest.mark.slow
def test_the_outermost_calls_of_torch_are_results(tmp_path: Path) -> None:
    (process,) = recorded(tmp_path, CALLS)
    assert process.troubles == []
    (calls,) = process.trained
    assert (calls.framework, calls.steps) == ("torch inference", 5)
    assert [*calls.digests[Stage.OUTPUT]] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_an_evaluation_is_deterministic(project: Project) -> None:
    project.write("evaluate.py", EVALUATED + "    print(model(x))\n")
    done = project.run("evaluate.py", "--runs", "2", "--full")
    assert done.code == 0, done.out
    group = done.json["groups"][0]
    assert group["stages"] == ["init", "rng", "batch", "output"]
    assert group["runs"][0]["ranks"][0]["steps"] == 1


BENCHMARKS = {
    "for a time": """
    import time
    began = time.perf_counter()
    while time.perf_counter() - began < 0.05:
        model(x)
    """,
    "timeit": """
    import timeit
    timeit.Timer(lambda: model(x)).autorange()
    """,
    "two models in turn": """
    import os
    other = torch.nn.Linear(4, 2)
    for _ in range(1 + os.urandom(1)[0]):
        model(x)
        other(x)
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize(("last", "code"), [("", 0), ("torch.seed(); model(torch.randn_like(x))", 1)])
def test_how_often_a_benchmark_repeats_a_call_is_no_difference(
    project: Project, name: str, last: str, code: int
) -> None:
    benchmark = BENCHMARKS[name].replace("torch.nn.Linear(4, 2)", "torch.nn.Sequential(model)")
    project.write("evaluate.py", EVALUATED + benchmark + "\n    " + last + "\n")
    done = project.run("evaluate.py", "--runs", "2", "--full")
    assert done.code == code, done.out


@pytest.mark.slow
@pytest.mark.parametrize(("last", "code"), [("", 0), ("torch.seed(); model(torch.randn_like(x))", 1)])
def test_nor_is_it_after_a_training(project: Project, last: str, code: int) -> None:
    project.write("train.py", TRAINED + BENCHMARKS["for a time"].replace("model(x)", "model(x[:2])") + f"    {last}\n")
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == code, done.out


@pytest.mark.slow
@pytest.mark.parametrize("script", [EVALUATED, TRAINED], ids=["evaluation", "training"])
def test_what_a_model_returns_to_be_summed_up_is_no_result(project: Project, script: str) -> None:
    project.write("thop.py", "def profile(model, x):\n    model(x)\n")
    summary = "import thop; thop.profile(model, torch.rand(x.shape, generator=entropy))"
    project.write("train.py", f"{script}    model(x)\n    {summary}\n")
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 0, done.out
    (rank,) = done.json["groups"][0]["runs"][0]["ranks"]
    assert rank["steps"] == (1 if script is EVALUATED else 3)


@pytest.mark.full
def test_an_evaluation_in_training_mode_is_not(project: Project) -> None:
    project.write("evaluate.py", EVALUATED + "    torch.seed()\n    model.train()\n    model(x)\n    model(x)\n")
    done = project.detaudit("run", "evaluate.py", "--runs", "2", "--full")
    assert done.code == 1, done.out
    assert "CALLS" in done.out
    assert "SUM OF WEIGHTS" not in done.out
    assert "call 1, rng" in done.out


@pytest.mark.slow
def test_an_evaluation_between_the_steps_is_no_result(project: Project) -> None:
    project.write("train.py", TRAINED + "    model(x)\n")
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 0, done.out
    assert done.json["groups"][0]["runs"][0]["ranks"][0]["output_digest"]


@pytest.mark.slow
def test_an_evaluation_after_the_last_update_is_a_result(project: Project) -> None:
    project.write("train.py", TRAINED + "    look()\n")
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 1, done.out
    first, second = (run["ranks"][0] for run in done.json["groups"][0]["runs"])
    assert (first["digest"], first["state_digest"]) == (second["digest"], second["state_digest"])
    found = done.json["groups"][0]["first_difference"]
    assert (found["step"], found["stage"], found["at_end"]) == (3, "output", True)
    difference = Difference(rank=0, step=3, stage=Stage.OUTPUT, at_end=found["at_end"])
    assert difference.cell() == "after step 3, output"


WORKERS = """
    import os, torch
    from torch.utils.data import DataLoader

    class Noise(torch.nn.Module):
        def forward(self, x):
            return x + torch.rand(4, generator=torch.Generator().manual_seed(os.getpid()))

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return Noise()(torch.full((4,), float(index)))

    if __name__ == "__main__":
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        for batch in DataLoader(Data(), batch_size=4, num_workers=1):
            model(batch)
"""


@pytest.mark.slow
def test_a_transform_in_a_worker_of_a_loader_is_no_result(tmp_path: Path) -> None:
    trained = [process for process in recorded(tmp_path, WORKERS) if process.trained]
    assert [one.trained[0].steps for one in trained] == [2]


KERAS = """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras, numpy as np, tensorflow as tf
    keras.utils.set_random_seed(0)

    class Scale(tf.Module):
        def __init__(self):
            self.factor = tf.Variable([1.0, 2.0])

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def __call__(self, x):
            return {"scaled": x * self.factor}

    tf.saved_model.save(Scale(), "saved")
    loaded = tf.saved_model.load("saved")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile("sgd", "mse", metrics=["mae"])
    x, y = np.ones((8, 3), "f4"), np.ones((8, 2), "f4")
    loaded(tf.constant([1.0, 3.0]))                                 # 1
    loaded.signatures["serving_default"](x=tf.constant([2.0, 3.0]))  # 2
    model(x)                                                        # 3
    model.predict(x, verbose=0)                                     # 4
    model.evaluate(x, y, verbose=0)                                 # 5
    keras.layers.Rescaling(2.0)(x)                                  # 6
"""


def events(processes: list[Process]) -> list[Any]:
    return [(one.framework, one.steps) for process in processes for one in process.trained]


@pytest.mark.slow
def test_the_outermost_calls_of_tensorflow_are_results(tmp_path: Path) -> None:
    processes = recorded(tmp_path, KERAS)
    assert events(processes) == [("tensorflow inference", 6)]
    assert processes[0].troubles == []


@pytest.mark.slow
@pytest.mark.parametrize(("after", "evaluated"), [("", False), ("    model.predict(x, verbose=0)\n", True)])
def test_what_keras_predicts_after_a_fit_is_a_result(tmp_path: Path, after: str, evaluated: bool) -> None:
    processes = recorded(tmp_path, KERAS + "    model.fit(x, y, epochs=2, verbose=0)\n" + after)
    assert events(processes) == [("tensorflow", 2)]
    final = processes[0].trained[0].final
    assert final is not None
    assert bool(final.outputs) == evaluated
