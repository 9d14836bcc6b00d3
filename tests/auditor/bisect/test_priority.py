"""Which flag is tried first, from what a first difference tells."""

import pytest

from detaudit.auditor.bisect.priority import Clues, order
from detaudit.model import Source, Stage
from detaudit.recipe.flags import load_catalogue

CATALOGUE = load_catalogue()
CANDIDATES = [flag for flag in CATALOGUE if flag.action in ("auto", "fallback")]


def first(clues: Clues) -> str:
    return order(CANDIDATES, clues)[0][0].id


def test_generators_that_began_unlike_are_seeded_together() -> None:
    ordered, together = order(CANDIDATES, Clues(Stage.RNG, generators=("random", "torch")))
    assert together == 2
    assert {flag.id for flag in ordered[:2]} == {"python-random-seed", "torch-seed"}


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("numpy.random.default_rng() without a seed", "numpy-default-rng"),
        ("numpy.random.normal() without a seed: nobody seeded numpy.random", "numpy-seed"),
        ("random.shuffle() without a seed: nobody seeded random", "python-random-seed"),
        ("DataLoader(in_order=False) hands out batches as workers finish them", "torch-loader-in-order"),
        ("iterates over a set, whose order changes with PYTHONHASHSEED if it holds strings", "python-hash-seed"),
        ("computes with id(), an address, which changes from run to run", "system-aslr-off"),
    ],
)
def test_what_holds_a_line_of_the_script_still_comes_first(words: str, flag: str) -> None:
    assert first(Clues(Stage.BATCH, (Source(file="train.py", line=3, what=words),))) == flag


@pytest.mark.parametrize("stage", [Stage.FORWARD, Stage.BACKWARD, Stage.UPDATE])
def test_late_differences_point_to_kernels(stage: Stage) -> None:
    ordered, together = order(CANDIDATES, Clues(stage))
    assert "kernel" in ordered[0].causes
    assert together == 1


def test_batches_that_differ_with_no_line_to_blame_are_a_kernel_rather_than_a_listing() -> None:
    ids = [flag.id for flag in order(CANDIDATES, Clues(Stage.BATCH))[0]]
    assert ids.index("torch-deterministic-algorithms") < ids.index("python-sorted-listings")
    assert ids.index("torch-deterministic-algorithms") < ids.index("numpy-default-rng")


def test_what_costs_little_comes_first() -> None:
    ordered, _ = order(CANDIDATES, Clues(Stage.UPDATE))
    ids = [flag.id for flag in ordered]
    assert ids.index("torch-deterministic-algorithms") < ids.index("openmp-one-thread")
    assert ids.index("openmp-one-thread") < ids.index("python-hash-seed")


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_has_an_order_of_all_candidates(stage: Stage) -> None:
    assert {flag.id for flag in order(CANDIDATES, Clues(stage))[0]} == {flag.id for flag in CANDIDATES}
