"""The callbacks of Lightning and transformers: once an epoch, all that the model holds, and the validation's loss."""

import re
from typing import Any

import pytest

from tests.ecosystem.conftest import audited, printed
from tests.ecosystem.test_trainers import END, TRAINERS
from tests.process.conftest import Project

pytestmark = pytest.mark.ecosystem

LIGHTNING = TRAINERS["lightning"].replace(
    "max_epochs=2,", "max_epochs=2, callbacks=[Determinism(loss=\"val\")],"
).replace("trainer = ", "from detaudit.callbacks.lightning import Determinism\ntrainer = ").replace(
    "torch.nn.Dropout(0.1)", "torch.nn.BatchNorm1d(32)"
)  # fmt: skip
TRANSFORMERS = TRAINERS["transformers"].replace(
    "train_dataset=Made()", "train_dataset=Made(), eval_dataset=Made(), callbacks=[Determinism()]"
).replace("max_steps=6,", 'num_train_epochs=2, eval_strategy="epoch", logging_steps=1,').replace(
    "trainer = ", "from detaudit.callbacks.transformers import Determinism\ntrainer = "
)  # fmt: skip


def script_rank(group: dict[str, Any]) -> dict[str, Any]:
    (rank,) = [rank for rank in group["runs"][0]["ranks"] if rank["framework"] == "script"]
    assert isinstance(rank, dict)
    return rank


def test_lightning(project: Project) -> None:
    whole = END.replace("p in weights]", "p in (*weights, *model.buffers())]")
    project.write("train.py", LIGHTNING + whole)
    group = audited(project, "train.py", "--", "7", code=0)
    rank = script_rank(group)
    assert rank["steps"] == 2
    assert rank["sum_of_weights"] == pytest.approx(printed(project).sum, rel=1e-9)
    assert rank["final_loss"] > 0
    assert group["probe_count"] == 1  # val
    assert group["runs"][0]["warnings"] == []


def test_transformers(project: Project) -> None:
    project.write("train.py", TRANSFORMERS + END)
    group = audited(project, "train.py", "--", "7", code=0)
    rank = script_rank(group)
    assert rank["steps"] == 4  # two epochs, an evaluation after each
    assert rank["final_loss"] > 0
    assert rank["digest"] is not None
    # The logged times are left out: they are different in every run.
    assert group["first_probe_difference"] is None
    assert group["probe_count"] >= 3
    assert group["runs"][0]["warnings"] == []


def test_lightning_under_its_old_name(project: Project) -> None:
    text = re.sub(r"(?<!callbacks\.)\blightning\b", "pytorch_lightning", LIGHTNING)
    project.write("train.py", text + "\nassert isinstance(trainer.callbacks[0], pytorch_lightning.Callback)\n" + END)
    assert script_rank(audited(project, "train.py", "--", "7", code=0))["steps"] == 2
