"""The edits that may restore what a resumed training lost."""

import ast
from pathlib import Path

import pytest

from detaudit import restore
from detaudit.model.resume import Checkpoint, Lost, LostKind
from tests.resume.scripts import SCRIPTS, Script

NAMES = {
    "torch-generator": "torch",
    "torch-generator-saved": "torch",
    "python-generator": "random",
    "numpy-generator": "numpy.random",
    "own-numpy-generator": "rng",
    "own-torch-generator": "order",
    "adam": "optimizer: exp_avg of 0.weight",
    "scheduler": "scheduler.last_epoch",
    "scaler": "scaler.scale",
    "average": "average.module.0.weight",
    "weights": "model.0.weight",
    "buffers": "model.1.running_mean",
    "momentum": "optimizer: momentum_buffer of weight",
}
"""What is named of scripts that can be cured."""


def proposed(folder: Path, code: str, *lost: tuple[LostKind, str], file: str = "train.py") -> restore.Proposal | None:
    (folder / file).write_text(code)
    line = 1 + next(n for n, text in enumerate(code.splitlines()) if "torch.load" in text)
    read = Checkpoint(path="checkpoint.pt", by="torch", file=file, line=line)
    return restore.proposal([Lost(what=what, step=5, names=(name,), total=1) for what, name in lost], [read], folder)


def added(proposal: restore.Proposal | None) -> list[str]:
    assert proposal is not None
    lines = proposal.diff().splitlines()
    assert not [line for line in lines if line.startswith("-") and not line.startswith("---")]
    return [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]


@pytest.mark.parametrize("script", [one for one in SCRIPTS if one.name in NAMES], ids=lambda script: script.name)
def test_the_code_of_a_complete_script_is_proposed(tmp_path: Path, script: Script) -> None:
    (what,) = script.lost
    proposal = proposed(tmp_path, script.code, (what, NAMES[script.name]))
    restored = added(proposal)[0]
    key = restored.partition('saved["')[2].partition('"')[0]
    assert f'saved["{key}"]' in restored
    code = "".join(proposal.after.lines) if proposal is not None else ""
    ast.parse(code)
    assert f'"{key}": ' in code or f'saved["{key}"] = ' in code


MAIN = """\
import torch
from torch import nn


def main():
    model = nn.Linear(1, 1)
    opt = torch.optim.Adam(model.parameters())

    def load():
        checkpoint = torch.load("c.pt")
        model.load_state_dict(checkpoint["model"])
        return checkpoint["epoch"]

    for epoch in range(load(), 3):
        torch.save({"model": model.state_dict(), "epoch": epoch}, "c.pt")
"""


def test_a_variable_of_a_function_is_known_by_its_class_and_imports_are_added(tmp_path: Path) -> None:
    lost = ((LostKind.OPTIMIZER, "Adam: step of 0"), (LostKind.GENERATOR, "numpy.random"))
    proposal = proposed(tmp_path, MAIN, *lost)
    assert proposal is not None
    lines = [line[1:].strip() for line in proposal.diff().splitlines() if line.startswith("+")]
    assert lines[1:4] == [
        "import numpy as np",
        'opt.load_state_dict(checkpoint["opt"])',
        'np.random.set_state(checkpoint["numpy_rng"])',
    ]


def test_a_key_that_has_something_else_is_not_overwritten(tmp_path: Path) -> None:
    code = MAIN.replace('"epoch": epoch', '"epoch": epoch, "opt": "adam"')
    proposal = proposed(tmp_path, code, (LostKind.OPTIMIZER, "Adam: step of 0"))
    assert proposal is not None
    assert 'opt.load_state_dict(checkpoint["opt_state"])' in proposal.diff()


def test_a_state_of_numpy_is_saved_as_weights_only_loads_it(tmp_path: Path) -> None:
    lost = (LostKind.GENERATOR, "numpy.random")
    proposal = proposed(tmp_path, MAIN, lost)
    assert proposal is not None
    assert "tolist" in proposal.diff()
    proposal = proposed(tmp_path, MAIN.replace('load("c.pt")', 'load("c.pt", weights_only=False)'), lost)
    assert proposal is not None
    assert "tolist" not in proposal.diff()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('checkpoint = torch.load("c.pt")', 'checkpoint = read(torch.load("c.pt"))'),
        ("torch.save({", "write({"),
        ('checkpoint["model"]', "checkpoint"),
    ],
    ids=["loaded by a function", "saved by a function", "no dict"],
)
def test_nothing_is_proposed_for_what_is_no_dict_of_torch(tmp_path: Path, old: str, new: str) -> None:
    code = MAIN.replace(old, new).replace('return checkpoint["epoch"]', "return 0")
    assert proposed(tmp_path, code, (LostKind.OPTIMIZER, "Adam: step of 0")) is None


def test_nothing_is_proposed_for_what_has_no_state_of_its_own(tmp_path: Path) -> None:
    assert proposed(tmp_path, MAIN, (LostKind.DATA_ORDER, ""), (LostKind.COUNTER, "")) is None
    assert proposed(tmp_path, MAIN, (LostKind.GENERATOR, "unknown"), (LostKind.SCHEDULER, "StepLR.last_epoch")) is None


def test_a_file_of_a_package_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    assert proposed(tmp_path, MAIN, (LostKind.OPTIMIZER, "Adam: step of 0"), file="site-packages/train.py") is None
