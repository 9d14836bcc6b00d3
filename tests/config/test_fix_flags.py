"""The flags that fix a culprit: those that match its line first, then those for its cause."""

from typing import Any

import pytest

from detaudit.config.choice import _SWITCHES, fix_flags
from detaudit.config.flags import load_catalogue
from detaudit.model import Cause, Source, SourceKind

CATALOGUE = load_catalogue()
TORCH = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
TENSORFLOW = {"tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.6"}
BOTH = {**TORCH, **TENSORFLOW}


def named(cause: Cause, frameworks: dict[str, str], device: str = "cpu", **more: Any) -> list[str]:
    found = fix_flags(CATALOGUE, cause, frameworks, [device], **more)
    assert len(found) <= 3
    assert all(flag.by_hand and flag.applied_when for flag in found)
    assert all(flag.action in ("standard", "fallback") for flag in found)
    return [flag.id for flag in found]


@pytest.mark.parametrize(
    ("cause", "frameworks", "first"),
    [
        (Cause.KERNEL, TORCH, ["torch-deterministic-algorithms", "torch-deterministic-warn", "openmp-one-thread"]),
        (Cause.KERNEL, TENSORFLOW, ["tensorflow-op-determinism", "tensorflow-one-thread"]),
        (Cause.THREADS, TORCH, ["torch-one-thread", "openmp-one-thread"]),
        (Cause.SEED, TORCH, ["torch-seed"]),
        (Cause.HASH, TORCH, ["python-hash-seed"]),
        (Cause.MEMORY, TORCH, ["torch-deterministic-algorithms"]),
    ],
)
def test_flags_for_a_cause(cause: Cause, frameworks: dict[str, str], first: list[str]) -> None:
    assert named(cause, frameworks)[: len(first)] == first


def test_a_flag_for_gpus_is_only_named_on_a_gpu() -> None:
    assert "torch-cudnn-benchmark-off" in named(Cause.KERNEL, TORCH, "cuda:0")
    assert "torch-cudnn-benchmark-off" not in named(Cause.KERNEL, TORCH, "cpu")


def source(kind: SourceKind, call: str = "", *generators: str) -> Source:
    return Source(file="train.py", line=3, kind=kind, call=call, generators=generators)


@pytest.mark.parametrize(
    ("cause", "line", "flags"),
    [
        (Cause.HASH, source(SourceKind.HASH), ["python-hash-seed"]),
        (Cause.HASH, source(SourceKind.SET_ORDER), ["python-hash-seed"]),
        (Cause.ORDER, source(SourceKind.OBJECT_SET_ORDER), ["system-aslr-off", "python-hash-seed"]),
        (Cause.ORDER, source(SourceKind.ADDRESS), ["system-aslr-off", "python-hash-seed"]),
        (Cause.ORDER, source(SourceKind.LISTING_ORDER, "os.listdir"), ["python-sorted-listings"]),
        (Cause.ORDER, source(SourceKind.LISTING_ORDER, "os.walk"), ["python-sorted-listings"]),
        (Cause.THREADS, source(SourceKind.COMPLETION_ORDER, "concurrent.futures.as_completed"), []),
        (Cause.THREADS, source(SourceKind.SHARED_GENERATOR, "numpy.random.normal"), []),
        (
            Cause.THREADS,
            source(SourceKind.COMPLETION_ORDER_OPTION, "DataLoader(in_order=False)"),
            ["torch-loader-in-order"],
        ),
        (Cause.SEED, source(SourceKind.UNSEEDED, "numpy.random.default_rng"), ["numpy-default-rng"]),
        (Cause.SEED, source(SourceKind.UNSEEDED, "numpy.random.normal", "numpy.random"), ["numpy-seed"]),
        (Cause.SEED, source(SourceKind.UNSEEDED, "random.shuffle", "random"), ["python-random-seed"]),
        (Cause.SEED, source(SourceKind.UNSEEDED, "numpy.random.seed"), ["numpy-seed"]),
        (Cause.SEED, source(SourceKind.UNSEEDED, "Generator.seed"), ["torch-seed-generators"]),
        (Cause.SEED, source(SourceKind.SEED, "torch.manual_seed"), []),
        (Cause.SEED, source(SourceKind.CLOCK, "torch.manual_seed"), []),
        (Cause.SEED, source(SourceKind.PROCESS_ID, "random.Random"), []),
        (Cause.MEMORY, source(SourceKind.UNINITIALIZED, "numpy.empty"), ["numpy-zero-empty"]),
    ],
)
def test_flags_that_match_a_line_are_returned_alone(cause: Cause, line: Source, flags: list[str]) -> None:
    assert named(cause, TORCH, source=line) == flags


def test_a_flag_for_different_lines_does_nothing_for_this_one() -> None:
    entropy = source(SourceKind.ENTROPY, "os.urandom")
    assert "numpy-default-rng" in named(Cause.DATA, TORCH)
    assert "numpy-default-rng" not in named(Cause.DATA, TORCH, source=entropy)


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
    assert named(Cause.KERNEL, frameworks, device, op=op) == flags


def test_an_operation_that_is_not_known_to_race_is_fixed_by_its_cause() -> None:
    assert named(Cause.KERNEL, BOTH, op="aten.mm.default")[0] == "torch-deterministic-algorithms"
    assert named(Cause.KERNEL, BOTH, op="MatMul")[0] == "tensorflow-op-determinism"


def test_the_switches_are_flags() -> None:
    for flags in _SWITCHES.values():
        CATALOGUE.select(flags)
