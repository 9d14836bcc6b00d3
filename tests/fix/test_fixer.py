"""Which changes are harmful, how far runs with a change go, and what is tried in which order."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from detaudit.config.flags import load_catalogue
from detaudit.config.options import Until
from detaudit.fix.candidates import Training, candidates
from detaudit.fix.fixer import _horizon, _main, repeats_more
from detaudit.fix.tree import Tree
from detaudit.launch.target import Target
from detaudit.model import Difference, Edit, FlagFix, RunRecord, Source, SourceKind, Stage, Trace
from detaudit.model import Training as Recorded
from tests.report.traces import KERNEL, ORDER, TRACES

CODE = """import numpy as np
import torch

names = {"a", "b"}
order = list(names)
rng = np.random.default_rng()
model = torch.nn.Linear(2, 2)
"""
NOTHING: Trace = TRACES["traced-nothing"] if "traced-nothing" in TRACES else TRACES["traced-hidden"]


def record(*batches: str) -> RunRecord:
    by_step = {step: (digest,) for step, digest in enumerate(batches, 1)}
    return RunRecord(trainings=(Recorded(framework="torch", steps=len(batches), digests={Stage.BATCH: by_step}),))


@pytest.mark.parametrize(
    ("before", "after", "harmful"),
    [
        ("abcd", "wxyz", False),
        ("abcd", "wxwx", True),  # each epoch now has the order of the first
        ("abab", "wxwx", False),
        ("aaaa", "wwww", False),  # the same batch at all steps, as before
        ("abcd", "wx", False),
        ("ab", "wxwx", False),  # what differs lies beyond what is known
    ],
)
def test_batches_that_repeat_and_did_not_are_harm(before: str, after: str, harmful: bool) -> None:
    assert repeats_more(record(*before), record(*after)) is harmful


@pytest.mark.parametrize(
    ("first", "through", "expected"),
    [
        (Difference(rank=0, step=3, stage=Stage.UPDATE), None, None),
        (Difference(rank=0, step=3, stage=Stage.UPDATE), 8, Until(step=16)),
        (Difference(rank=0, step=3, stage=Stage.UPDATE), 100, Until(step=128)),
        (Difference(rank=0, step=3, stage=Stage.UPDATE, at_end=True), 8, None),
        (Difference(rank=0, step=1, stage=Stage.SAVED), 8, None),
    ],
)
def test_how_far_runs_with_a_change_go(first: Difference, through: int | None, expected: Until | None) -> None:
    assert _horizon(first, through) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target(("--lr", "1"), script="train.py"), "train.py"),
        (Target((), module="pkg.train"), "pkg/train.py"),
        (Target((), module="pkg"), "pkg/__main__.py"),
        (Target(("torchrun", "--nproc-per-node", "2", "train.py")), "train.py"),
        (Target(("./train.sh",)), ""),
        (Target((), script="missing.py"), ""),
    ],
)
def test_which_file_runs_first(tmp_path: Path, target: Target, expected: str) -> None:
    (tmp_path / "pkg").mkdir()
    for name in ("train.py", "pkg/train.py", "pkg/__main__.py", "train.sh"):
        (tmp_path / name).touch()
    assert _main(target, tmp_path) == expected


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "train.py").write_text(CODE)
    (project / "data" / "large.bin").write_bytes(b"x" * (2 * 2**20))
    (project / "data" / "small.txt").write_text("small")
    (project / "images").mkdir()
    for number in range(1001):
        (project / "images" / f"{number}.png").touch()
    (project / "outside").symlink_to(tmp_path / "elsewhere")
    (project / "inside").symlink_to("data")
    made = Tree(project, project, tmp_path / "results")
    made.make()
    return made


def tried(tree: Tree, trace: Trace, only: tuple[str, ...] = (), devices: tuple[str, ...] = ("cpu",)) -> list[Any]:
    training = Training("train.py", ("train.py",), {"python": "3.11", "numpy": "2.0", "torch": "2.13"}, devices)
    found = candidates(trace, load_catalogue(), tree, training, only)
    return [one.changes[0].new if one.changes else dict(one.variables) for one in found]


def test_what_is_tried_first(tree: Tree) -> None:
    edit = Edit(file="train.py", line=5, old=("order = list(names)",), new=("order = sorted(names)",))
    culprit = replace(ORDER, file="train.py", line=5, suggested_edit=edit, flags=_flags("python-hash-seed"))
    found = tried(tree, replace(NOTHING, culprit=culprit, narrowed_to=None))
    assert found[0] == ("order = sorted(names)",)
    assert found[1] == ("rng = np.random.default_rng(0)",)  # read in the code
    assert ("torch.manual_seed(0)",) in found
    assert found[-1] == {"PYTHONHASHSEED": "0"}  # what no line can do comes last
    assert len(found) == len({str(one) for one in found})


def test_a_flag_of_the_culprit_is_tried_as_code(tree: Tree) -> None:
    culprit = replace(KERNEL, flags=_flags("torch-deterministic-algorithms"))
    trace = replace(NOTHING, culprit=culprit, narrowed_to=None)
    assert tried(tree, trace)[0] == ("torch.use_deterministic_algorithms(True)",)
    variable = 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"'
    assert tried(tree, trace, devices=("cuda:0",))[0] == (variable, "torch.use_deterministic_algorithms(True)")


def test_names_are_those_of_the_imports_of_the_file(tree: Tree) -> None:
    assert ("np.random.seed(0)",) in tried(tree, replace(NOTHING, culprit=None, narrowed_to=None))


def test_files_that_are_not_named_are_left_alone(tree: Tree) -> None:
    culprit = replace(ORDER, flags=_flags("python-hash-seed"))
    assert tried(tree, replace(NOTHING, culprit=culprit, narrowed_to=None), only=("data",)) == [{"PYTHONHASHSEED": "0"}]


def test_a_line_outside_of_the_project_is_no_candidate(tree: Tree, tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text("import random\nrng = random.Random()\n")
    source = Source(file=str(library), line=2, kind=SourceKind.UNSEEDED, call="random.Random")
    culprit = replace(ORDER, file=str(library), line=2, source=source, suggested_edit=None, flags=())
    assert ("rng = random.Random(0)",) not in tried(tree, replace(NOTHING, culprit=culprit, narrowed_to=None))


def _flags(*names: str) -> tuple[FlagFix, ...]:
    return tuple(FlagFix(flag=name, title="", by_hand="", by_hand_when="") for name in names)


def test_source_is_copied_and_data_linked(tree: Tree) -> None:
    assert not (tree.root / "train.py").is_symlink()
    assert not (tree.root / "data" / "small.txt").is_symlink()
    assert (tree.root / "data" / "large.bin").readlink() == tree.user_root / "data" / "large.bin"
    assert (tree.root / "images").readlink() == tree.user_root / "images"
    assert (tree.root / ".git").readlink() == tree.user_root / ".git"
    assert (tree.root / "inside").readlink() == tree.root / "data"
    assert (tree.root / "outside").readlink() == tree.user_root.parent / "elsewhere"


def test_the_users_files_stay_and_changes_are_taken_back(tree: Tree) -> None:
    (one,) = (one for one in [*candidates_of(tree)] if one.changes and "default_rng" in one.changes[0].new[0])
    assert tree.change(one.changes)
    assert "default_rng(0)" in (tree.root / "train.py").read_text()
    assert (tree.user_root / "train.py").read_text() == CODE
    assert tree.change([])
    assert (tree.root / "train.py").read_text() == CODE


def candidates_of(tree: Tree) -> Any:
    training = Training("train.py", ("train.py",), {"torch": "2.13"}, ("cpu",))
    return candidates(replace(NOTHING, culprit=None, narrowed_to=None), load_catalogue(), tree, training, ())
