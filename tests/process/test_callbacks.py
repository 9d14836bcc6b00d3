"""The callback for Keras: all that the model holds and the validation, once an epoch, and nothing outside an audit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Project

DOCS = Path(__file__).parents[2] / "docs" / "pytest.md"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}

DIFFER = """
import os
class Differ(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1 and os.path.exists("first"):
            model.layers[1].moving_mean.assign_add([1.0, 0, 0, 0])
        if epoch == 1:
            open("first", "w").close()
"""
"""What no optimizer updates differs in the second run; the weights that are trained do not."""

END = 'print(f"{sum(float(w.numpy().sum(dtype=float)) for w in model.weights):.17g}")\n'


@pytest.mark.slow
def test_keras(project: Project) -> None:
    (example,) = re.findall(r"```python\n(# train_keras.py.*?)```", DOCS.read_text(), re.DOTALL)
    with_callbacks = "callbacks=[Differ(), Determinism()]"
    script = example.replace("model.fit(", DIFFER + "model.fit(").replace("callbacks=[Determinism()]", with_callbacks)
    bare = project.write("bare/train.py", script.replace(with_callbacks, "callbacks=[Differ()]") + END)
    project.write("train.py", script + END)
    done = project.run("train.py", "--runs", "2", "--out", "results", env=QUIET)
    assert done.code == 1, done.out + done.err
    group = done.json["groups"][0]
    trained, recorded = group["runs"][0]["ranks"]
    assert (trained["framework"], recorded["framework"], recorded["steps"]) == ("tensorflow", "script", 2)
    printed = (project.folder / "results" / "runs" / "none" / "1" / "stdout.log").read_text()
    assert abs(float(printed) - recorded["sum_of_weights"]) < 1e-5
    assert recorded["final_loss"] > 0
    again = group["runs"][1]["ranks"][0]
    assert again.pop("state_digest") != trained.pop("state_digest")
    assert again == trained
    found = group["first_difference"]
    assert (found["rank"], found["step"], found["stage"]) == (recorded["rank"], 2, "update")
    assert group["probe_count"] == 2  # loss and val_loss
    environment = {name: value for name, value in {**os.environ, **QUIET}.items() if name != "PYTHONPATH"}
    alone = subprocess.run(
        [sys.executable, bare], cwd=bare.parent, env=environment, capture_output=True, text=True, check=True
    )
    assert alone.stdout == printed  # the callback, and the audit, change no bit
