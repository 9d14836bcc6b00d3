"""Which flags a training has a use for, by what it imports and where its weights live."""

import pytest

from detaudit.recipe.applies import applicable, too_old
from detaudit.recipe.flags import Catalogue, load_catalogue
from tests.recipe.test_catalogue import flag

TORCH = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def fits(catalogue: Catalogue, frameworks: dict[str, str], *devices: str) -> set[str]:
    found, reasons = applicable(catalogue, frameworks, devices)
    ids = {flag.id for flag in found}
    assert ids | set(reasons) == set(catalogue.ids)
    assert not ids & set(reasons)
    assert all(reasons.values())
    return ids


def test_on_a_cpu(catalogue: Catalogue) -> None:
    ids = fits(catalogue, TORCH, "cpu")
    assert {"python-hash-seed", "system-aslr-off", "numpy-seed", "torch-seed", "openmp-one-thread"} < ids
    assert {"mkl-one-thread", "openblas-one-thread", "onednn-instructions"} < ids
    assert not {i for i in ids if i.startswith(("tensorflow", "keras", "jax", "cuda", "nccl", "horovod"))}
    assert not {"torch-cudnn-benchmark-off", "torch-sdp-math"} & ids


def test_on_one_gpu_and_on_several(catalogue: Catalogue) -> None:
    one = fits(catalogue, TORCH, "cuda:0")
    assert {"cuda-cublas-workspace", "torch-cudnn-benchmark-off", "torch-seed", "openmp-one-thread"} < one
    assert not {i for i in one if i.startswith(("nccl", "horovod"))}
    two = fits(catalogue, TORCH, "cuda:0", "cuda:0")  # two ranks, on two hosts
    assert "nccl-algo-ring" in two
    assert "nccl-algo-ring" in fits(catalogue, TORCH, "cuda:0,cuda:1")
    assert "torch-cudnn-benchmark-off" not in fits(catalogue, TORCH, "cpu", "cpu")


def test_with_horovod_on_whatever_device(catalogue: Catalogue) -> None:
    ids = fits(catalogue, {**TORCH, "horovod": "0.28.1"}, "cpu")
    assert {"horovod-fusion-off", "nccl-algo-ring"} < ids


def test_tensorflow_has_no_openmp(catalogue: Catalogue) -> None:
    ids = fits(catalogue, {"tensorflow": "2.21.0"}, "CPU:0")
    assert {"tensorflow-one-thread", "onednn-instructions"} < ids
    assert not {"openmp-one-thread", "mkl-one-thread", "keras-seed", "jax-xla-deterministic-ops"} & ids
    assert "jax-xla-deterministic-ops" in fits(catalogue, {"tensorflow": "2.21.0"}, "GPU:0")
    assert "keras-seed" in fits(catalogue, {"keras": "3.15.1"}, "CPU:0")


def test_where_no_device_was_seen_none_is_a_reason(catalogue: Catalogue) -> None:
    assert {"cuda-cublas-workspace", "nccl-algo-ring"} < fits(catalogue, TORCH)


def test_what_must_stand_in_the_script_never_applies(catalogue: Catalogue) -> None:
    _, reasons = applicable(catalogue, TORCH, ["cpu"])
    assert "in the script" in reasons["torch-loader-generator"]
    assert reasons["tensorflow-seed"] == "tensorflow was not imported"
    assert reasons["jax-xla-deterministic-ops"] == "jax and tensorflow were not imported"
    assert reasons["cuda-cublas-workspace"] == "no weights were on a GPU"


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("2.9.1", "torch 2.9.1 does not know it: it came with 2.10"),
        ("2.9.1+cu128", "torch 2.9.1+cu128 does not know it: it came with 2.10"),
        ("2.10.0", ""),
        ("2.10.0a0+git1", ""),
        ("2.10", ""),
        ("3.0", ""),
        ("nightly", ""),
    ],
)
def test_a_version_that_does_not_know_a_flag(catalogue: Catalogue, version: str, reason: str) -> None:
    row = catalogue.get("torch-inductor-deterministic")
    assert too_old(row, {"torch": version}) == reason
    assert applicable([row], {"torch": version}, ["cpu"])[1] == ({row.id: reason} if reason else {})
    assert too_old(row, {}) == ""


def test_a_version_that_needs_a_flag_no_more() -> None:
    row = flag("old", framework="torch", env={"A": "1"}, until="2.9")
    for version in ("2.9", "2.9.1", "2.8.0", "1.13"):
        assert applicable([row], {"torch": version}, ["cpu"])[0] == (row,)
    for version in ("2.10.0", "3.0"):
        reason = f"torch {version} does not need it: 2.9 was the last that did"
        assert applicable([row], {"torch": version}, ["cpu"])[1] == {"old": reason}
