"""Which changes are harmful, how far runs with a change go, and what is tried in which order."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detaudit.config.flags import load_catalogue
from detaudit.config.options import Until
from detaudit.fix.candidates import Candidate, Training, candidates
from detaudit.fix.changes import AFTER_IMPORTS, Change
from detaudit.fix.fixer import MOST_PROOF, Chosen, Fixer, _differing, _horizon, _main, needed_runs
from detaudit.fix.tree import Tree
from detaudit.fix.trials import AGAIN, repeats_more
from detaudit.launch.target import Target
from detaudit.model import (
    Difference,
    Divergence,
    Edit,
    Explanation,
    FlagFix,
    Group,
    Refusal,
    Run,
    RunRecord,
    Source,
    SourceKind,
    Stage,
    Status,
    Trace,
)
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
    assert repeats_more([record(*before)], record(*after)) is harmful


@pytest.mark.parametrize(
    ("again", "change", "refused", "asked"),
    [
        (["abca", "abcd"], Change("train.py", 3, (), ("seed",)), False, 1),  # a search tries by chance what it tried
        (["abcd"] * 9, Change("train.py", 3, (), ("seed",)), True, len(AGAIN)),
        (["abcd"] * 9, Change("train.py", AFTER_IMPORTS, (), ("seed",)), False, 0),  # runs once
    ],
)
def test_batches_that_repeat_by_chance_refuse_no_change(
    again: list[str], change: Change, refused: bool, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, runs = Difference(rank=0, step=1, stage=Stage.BATCH), list(again)
    fixer = Fixer.__new__(Fixer)
    fixer._chosen, fixer._base = [], record(*"abcd")
    monkeypatch.setattr(fixer, "_one_run", lambda *_: record(*runs.pop(0)))
    trial = SimpleNamespace(
        failed=False, loaded=set(), group=SimpleNamespace(first_difference=None), record=record(*"wxyw")
    )
    why = fixer._why_not(trial, Candidate((change,)), first, None)  # type: ignore[arg-type]
    assert (why is Refusal.REPEATS_BATCHES, len(again) - len(runs)) == (refused, asked)


@pytest.mark.parametrize(
    ("last", "left_out"), [("abab", ["numbered"]), ("wxyz", [])]
)  # in its second epoch, a seed that has the number of the item repeats the first
def test_a_seed_with_which_later_batches_repeat_is_refused(
    last: str, left_out: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Difference(rank=0, step=1, stage=Stage.BATCH)
    names = {"numbered": "unseeded-generator", "constant": "unseeded-generator", "sorted": "set-order"}
    chosen = [
        Chosen(Candidate((Change(name, 1, ("x",), ("y",), rule=rule),)), first, None) for name, rule in names.items()
    ]
    fixer = Fixer.__new__(Fixer)
    fixer._chosen, fixer._refused, fixer._last = chosen, [], record(*last)
    fixer._request = SimpleNamespace(settings=SimpleNamespace(runs=5))  # type: ignore[assignment]
    monkeypatch.setattr(fixer, "_matches", lambda: True)
    monkeypatch.setattr(fixer, "_one_run", lambda some: record(*(last if chosen[0] in some else "abcd")))
    monkeypatch.setattr(fixer, "_settle", lambda some, runs: setattr(fixer, "_chosen", some))
    fixer._refuse_what_repeats()
    assert [one.candidate.changes[0].file for one, _ in fixer._refused] == left_out
    assert [one.candidate.changes[0].file for one in fixer._chosen] == [n for n in names if n not in left_out]


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
    ("differing", "compared", "runs"),
    [
        (4, 4, 4),  # C(7, 4) = 35: by chance in 3% of cases
        (1, 1, 20),
        (2, 4, 13),
        (4, 11, 12),
        (1, 11, MOST_PROOF + 1),
        (0, 4, MOST_PROOF + 1),
        (0, 0, MOST_PROOF + 1),
    ],
)
def test_how_many_runs_prove_a_change(differing: int, compared: int, runs: int) -> None:
    assert needed_runs(differing, compared) == runs


@given(st.integers(1, 11), st.integers(1, 11))
def test_so_many_runs_match_by_chance_in_one_case_of_twenty(a: int, b: int) -> None:
    differing, compared = sorted((a, b))
    runs = needed_runs(differing, compared)

    def chance(n: int) -> float:
        return math.comb(compared, differing) / math.comb(compared + n, differing)

    assert runs > MOST_PROOF or chance(runs - 1) <= 0.05 < chance(max(0, runs - 2))


def group_of(*results: int, first: dict[int, Difference] | None = None) -> Group:
    runs = tuple(
        Run(id=number, status=Status.OK, exit_code=0, wall_s=1.0, steps=3, result=result,
            first_difference=(first or {}).get(number))
        for number, result in enumerate(results, 1)
    )  # fmt: skip
    return replace(NOTHING.groups[0], runs=runs)


@pytest.mark.parametrize(
    ("stage", "without", "again", "moves"),
    [
        (Stage.UPDATE, [1, 1, 1, 1], [1, 1], False),
        (Stage.UPDATE, [25, 25, 25, 25], [40, 31], True),  # the first run was the one that ended early
        (Stage.UPDATE, [1, 1, 1, 1], [1, None], True),
        (Stage.BATCH, [3, 5, 2, 9], [], False),  # something else is left
    ],
)
def test_a_difference_that_moves_by_itself_was_moved_by_nothing(
    stage: Stage, without: list[int], again: list[int | None], moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def group(steps: Sequence[int | None]) -> Group:
        first = {
            number: Difference(rank=0, step=step, stage=Stage.UPDATE) for number, step in enumerate(steps, 2) if step
        }
        found = group_of(*range(len(steps) + 1), first=first)
        if not steps:
            return replace(found, first_difference=None)
        first_difference = Divergence(
            rank=0, step=steps[0] or 0, stage=Stage.UPDATE, runs=(1, 2), explanation=Explanation(matching=(), likely=())
        )
        return replace(found, first_difference=first_difference)

    fixer = Fixer.__new__(Fixer)
    monkeypatch.setattr(fixer, "_tried", lambda *_, **__: SimpleNamespace(group=group(again)))
    left = Difference(rank=0, step=49, stage=stage)
    assert fixer._moves(group(without), [], Chosen(Candidate(), left, None), left) is moves


@pytest.mark.parametrize(
    ("flag", "why", "left"),
    [
        ("numpy-seed", Refusal.NO_EFFECT, False),
        ("python-random-seed", Refusal.NO_EFFECT, True),
        ("numpy-seed", Refusal.FAILS, True),
    ],
)
def test_a_draw_is_not_why_if_its_seed_moves_nothing(flag: str, why: Refusal, left: bool) -> None:
    draw = Source(file="t.py", line=3, kind=SourceKind.UNSEEDED, call="GridSearchCV.fit", generators=("numpy.random",))
    culprit = next(one.culprit for one in TRACES.values() if one.culprit is not None)
    trace = next(one for one in TRACES.values() if one.groups[0].first_difference is not None)
    first = trace.groups[0].first_difference
    fixer = Fixer.__new__(Fixer)
    fixer._request = SimpleNamespace(catalogue=load_catalogue())  # type: ignore[assignment]
    fixer._trace = trace
    change = Change("t.py", 0, (), ("np.random.seed(0)",), flag=flag)
    assert first is not None
    fixer._refused = [(Chosen(Candidate((change,)), first.difference, None), why)]
    found = fixer._left(replace(culprit, source=draw, flags=(FlagFix(flag="numpy-seed", title="Seed"),)))
    assert found is not None
    assert (found.source is not None, bool(found.flags)) == (left, left)


def test_a_change_that_shows_only_further_on_is_weighed_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together two changes ended a difference; without the second one, runs differ after those with a change end."""
    left = Difference(rank=0, step=1, stage=Stage.UPDATE)
    early, late = (Chosen(Candidate(flag=flag), left, Until(step=4)) for flag in ("early", "late"))
    fixer = Fixer.__new__(Fixer)
    fixer._chosen, fixer._refused, fixer._trace = [early, late], [], replace(NOTHING, groups=(group_of(1, 1),))
    fixer._request = SimpleNamespace(settings=SimpleNamespace(runs=5))  # type: ignore[assignment]

    def flags(chosen: Sequence[Chosen]) -> set[str]:
        return {one.candidate.flag for one in chosen}

    def tried(others: Sequence[Chosen], _: int, until: Until | None, **__: Any) -> Any:
        differs = "early" not in flags(others) or ("late" not in flags(others) and until is None)
        return SimpleNamespace(group=replace(group_of(*range(5) if differs else [1] * 5), first_difference=None))

    def settle(chosen: list[Chosen], _: int | None = None) -> None:
        fixer._chosen = chosen

    monkeypatch.setattr(fixer, "_make", lambda _: True)
    monkeypatch.setattr(fixer, "_tried", tried)
    monkeypatch.setattr(fixer, "_settle", settle)
    monkeypatch.setattr(fixer, "_matches", lambda: len(fixer._chosen) == 2)
    fixer._weigh()
    assert flags(fixer._chosen) == {"early", "late"}
    assert fixer._refused == []


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((1, 2, 3, 4, 5), (4, 4)),
        ((1, 1, 2, 1, 1), (1, 4)),
        ((1, 2, 2, 2, 2), (1, 4)),
        ((1, 1, 1), (0, 2)),
        ((), (0, 0)),
    ],
    ids=["all", "one", "first", "none", "no runs"],
)
def test_how_many_runs_differ(results: tuple[int, ...], expected: tuple[int, int]) -> None:
    assert _differing(group_of(*results)) == expected


def test_only_what_differs_before_the_difference_that_is_left_counts() -> None:
    early, late = (Difference(rank=0, step=step, stage=Stage.UPDATE) for step in (1, 4))
    group = group_of(1, 2, 3, first={2: early, 3: late})
    assert _differing(group, late) == (1, 2)


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
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "train.py").write_text(CODE)
    (project / "data" / "large.bin").write_bytes(b"x" * (2 * 2**20))
    (project / "data" / "small.txt").write_text("small")
    (project / "images").mkdir()
    for number in range(11):
        (project / "images" / f"{number}.png").touch()
    monkeypatch.setattr("detaudit.launch.tree.MANY", 10)
    monkeypatch.setattr("detaudit.launch.tree.BUDGET", 2**20)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from random import *\nx = 1\n", "random_module.seed(0)"),
        ("import random\nx = 1\n", "random.seed(0)"),
        ("from random import random\nx = 1\n", "random_module.seed(0)"),
        ("import random\nx = get_context('spawn').Pool(2)\n", None),
        ("import random\nx = get_context('fork').Pool(2)\n", "random.seed(0)"),
    ],
)
def test_a_seed_of_a_module_whose_name_is_another_one(tree: Tree, text: str, expected: str | None) -> None:
    """And none where each worker imports the file, and would draw the same numbers."""
    (tree.cwd / "train.py").write_text(text)
    found = tried(tree, replace(NOTHING, culprit=None, narrowed_to=None))
    assert [one[0] for one in found if isinstance(one, tuple) and one[0].startswith("random")] == [
        *([expected] if expected else [])
    ]


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
    return tuple(FlagFix(flag=name, title="") for name in names)


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
