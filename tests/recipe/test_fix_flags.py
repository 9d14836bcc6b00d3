"""The flags that are named for a culprit: what holds the line still first, then what its cause calls for."""

from typing import Any

import pytest

from detaudit.recipe.fix_flags import _SWITCHES, cures
from detaudit.recipe.flags import Cause, load_catalogue

CATALOGUE = load_catalogue()
TORCH = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
TENSORFLOW = {"tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.6"}
BOTH = {**TORCH, **TENSORFLOW}


def named(cause: Cause, frameworks: dict[str, str], device: str = "cpu", **more: Any) -> list[str]:
    found = cures(CATALOGUE, cause, frameworks, [device], **more)
    assert len(found) <= 3
    assert all(flag.in_script and flag.where for flag in found)
    assert all(flag.action in ("auto", "fallback") for flag in found)
    return [flag.id for flag in found]


@pytest.mark.parametrize(
    ("cause", "frameworks", "first"),
    [
        ("kernel", TORCH, ["torch-deterministic-algorithms", "torch-deterministic-warn", "openmp-one-thread"]),
        ("kernel", TENSORFLOW, ["tensorflow-op-determinism", "tensorflow-one-thread"]),
        ("threads", TORCH, ["torch-one-thread", "openmp-one-thread"]),
        ("seed", TORCH, ["torch-seed"]),
        ("hash", TORCH, ["python-hash-seed"]),
        ("memory", TORCH, ["torch-deterministic-algorithms"]),
    ],
)
def test_what_a_cause_calls_for(cause: Cause, frameworks: dict[str, str], first: list[str]) -> None:
    assert named(cause, frameworks)[: len(first)] == first


def test_what_does_something_on_a_gpu_alone_is_named_there_alone() -> None:
    assert "torch-cudnn-benchmark-off" in named("kernel", TORCH, "cuda:0")
    assert "torch-cudnn-benchmark-off" not in named("kernel", TORCH, "cpu")


@pytest.mark.parametrize(
    ("cause", "words", "flags"),
    [
        ("hash", "calls hash(), which changes with PYTHONHASHSEED for strings", ["python-hash-seed"]),
        ("order", "computes with id(), an address, which changes", ["system-aslr-off", "python-hash-seed"]),
        ("order", "os.listdir() in an order that differs between runs", ["python-sorted-listings"]),
        ("order", "as_completed() gives what finishes first", []),
        ("seed", "numpy.random.default_rng() without a seed", ["numpy-default-rng"]),
        ("seed", "torch.manual_seed() with a seed that follows the clock", []),
        ("seed", "random.Random() with the process id as its seed", []),
        ("memory", "calls numpy.empty(), which holds what was in memory", ["numpy-fresh-memory"]),
    ],
)
def test_what_holds_a_line_still_is_named_alone(cause: Cause, words: str, flags: list[str]) -> None:
    assert named(cause, TORCH, words=words) == flags


@pytest.mark.parametrize(
    ("op", "frameworks", "device", "flags"),
    [
        ("aten.index_put_.default", TORCH, "cpu", ["torch-deterministic-algorithms"]),
        ("aten.put_.default", TORCH, "cpu", ["torch-one-thread", "openmp-one-thread"]),
        ("aten::index_put", BOTH, "cuda:0", ["torch-deterministic-algorithms"]),
        ("aten.cumsum.default", TORCH, "cuda:0", []),
        ("sgd/ResourceScatterSub", TENSORFLOW, "CPU:0", ["tensorflow-op-determinism"]),
        ("DenseBincount", BOTH, "CPU:0", ["tensorflow-one-thread"]),
    ],
)
def test_an_operation_that_is_known_to_race(op: str, frameworks: dict[str, str], device: str, flags: list[str]) -> None:
    assert named("kernel", frameworks, device, op=op) == flags


def test_an_operation_that_is_not_known_goes_by_the_cause() -> None:
    assert named("kernel", BOTH, op="aten.mm.default")[0] == "torch-deterministic-algorithms"
    assert named("kernel", BOTH, op="MatMul")[0] == "tensorflow-op-determinism"


def test_the_switches_are_flags() -> None:
    for flags in _SWITCHES.values():
        CATALOGUE.select(flags)
