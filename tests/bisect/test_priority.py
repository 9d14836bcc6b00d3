"""Which flag is tried first, by what a first difference shows."""

import pytest

from detaudit.bisect.flags import Clues, matching, order
from detaudit.config.flags import load_catalogue
from detaudit.model import Source, SourceKind, SourceMatch, Stage

CATALOGUE = load_catalogue()
CANDIDATES = [flag for flag in CATALOGUE if flag.action in ("standard", "fallback")]


def first(clues: Clues) -> str:
    return order(CANDIDATES, clues)[0][0].id


def source(kind: SourceKind, call: str = "", *generators: str) -> Source:
    return Source(file="train.py", line=3, kind=kind, call=call, generators=generators)


def test_generators_that_began_differently_are_seeded_together() -> None:
    ordered, together = order(CANDIDATES, Clues(Stage.RNG, generators=("random", "torch")))
    assert together == 2
    assert {flag.id for flag in ordered[:2]} == {"python-random-seed", "torch-seed"}


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        (source(SourceKind.UNSEEDED, "numpy.random.default_rng"), "numpy-default-rng"),
        (source(SourceKind.UNSEEDED, "PCG64DXSM"), "numpy-default-rng"),
        (source(SourceKind.UNSEEDED, "numpy.random.normal", "numpy.random"), "numpy-seed"),
        (source(SourceKind.UNSEEDED, "random.shuffle", "random"), "python-random-seed"),
        (source(SourceKind.UNSEEDED, "numpy.random.seed"), "numpy-seed"),
        (source(SourceKind.UNSEEDED, "random.seed"), "python-random-seed"),
        (source(SourceKind.UNSEEDED, "random.Random"), "python-seed-generators"),
        (source(SourceKind.UNSEEDED, "Generator.seed"), "torch-seed-generators"),
        (source(SourceKind.LISTING_ORDER, "os.listdir"), "python-sorted-listings"),
        (source(SourceKind.COMPLETION_ORDER_OPTION, "DataLoader(in_order=False)"), "torch-loader-in-order"),
        (source(SourceKind.SET_ORDER), "python-hash-seed"),
        (source(SourceKind.ADDRESS), "system-aslr-off"),
    ],
)
def test_what_fixes_a_line_of_the_script_comes_first(line: Source, flag: str) -> None:
    assert first(Clues(Stage.BATCH, (line,))) == flag


def test_a_flag_matches_if_any_line_is_one_that_it_fixes() -> None:
    match = SourceMatch(calls=("random.seed",))
    lines = [source(SourceKind.UNSEEDED, call) for call in ("numpy.random.seed", "random.seed")]
    assert matching(match, lines)
    assert not matching(match, lines[:1])
    assert not matching(match, [])


@pytest.mark.parametrize("stage", [Stage.FORWARD, Stage.BACKWARD, Stage.UPDATE])
def test_late_differences_point_to_kernels(stage: Stage) -> None:
    ordered, together = order(CANDIDATES, Clues(stage))
    assert "kernel" in ordered[0].causes
    assert together == 1


def test_batches_that_differ_without_a_known_line_point_to_a_kernel_rather_than_a_listing() -> None:
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
