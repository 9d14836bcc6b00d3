"""The flags that apply to a training, given what it imports and where its weights are."""

import pytest

from detaudit.config.choice import applicable, too_old
from detaudit.config.flags import Catalogue, load_catalogue
from detaudit.model.sources import ByHandOnly, NoGpu, NoLongerNeeded, NotImported, TooOld
from tests.config.test_catalogue import flag

TORCH = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def fits(catalogue: Catalogue, frameworks: dict[str, str], *devices: str) -> set[str]:
    found, reasons = applicable(catalogue, frameworks, devices)
    ids = {flag.id for flag in found}
    assert ids | set(reasons) == set(catalogue.ids)
    assert not ids & set(reasons)
    return ids


def test_flags_on_a_cpu(catalogue: Catalogue) -> None:
    ids = fits(catalogue, TORCH, "cpu")
    assert {"python-hash-seed", "system-aslr-off", "numpy-seed", "torch-seed", "openmp-one-thread"} < ids
    assert {"mkl-one-thread", "openblas-one-thread", "onednn-instructions"} < ids
    assert not {i for i in ids if i.startswith(("tensorflow", "keras", "jax", "cuda", "nccl", "horovod"))}
    assert not {"torch-cudnn-benchmark-off", "torch-sdp-math"} & ids


def test_flags_on_one_gpu_and_on_several(catalogue: Catalogue) -> None:
    one = fits(catalogue, TORCH, "cuda:0")
    assert {"cuda-cublas-workspace", "torch-cudnn-benchmark-off", "torch-seed", "openmp-one-thread"} < one
    assert not {i for i in one if i.startswith(("nccl", "horovod"))}
    two = fits(catalogue, TORCH, "cuda:0", "cuda:0")  # two ranks, on two hosts
    assert "nccl-algo-ring" in two
    assert "nccl-algo-ring" in fits(catalogue, TORCH, "cuda:0,cuda:1")
    assert "torch-cudnn-benchmark-off" not in fits(catalogue, TORCH, "cpu", "cpu")


def test_horovod_flags_apply_on_every_device(catalogue: Catalogue) -> None:
    ids = fits(catalogue, {**TORCH, "horovod": "0.28.1"}, "cpu")
    assert {"horovod-fusion-off", "nccl-algo-ring"} < ids


def test_openmp_flags_do_not_apply_to_tensorflow(catalogue: Catalogue) -> None:
    ids = fits(catalogue, {"tensorflow": "2.21.0"}, "CPU:0")
    assert {"tensorflow-one-thread", "onednn-instructions"} < ids
    assert not {"openmp-one-thread", "mkl-one-thread", "keras-seed", "jax-xla-deterministic-ops"} & ids
    assert "jax-xla-deterministic-ops" in fits(catalogue, {"tensorflow": "2.21.0"}, "GPU:0")
    assert "keras-seed" in fits(catalogue, {"keras": "3.15.1"}, "CPU:0")


def test_unknown_devices_exclude_no_flag(catalogue: Catalogue) -> None:
    assert {"cuda-cublas-workspace", "nccl-algo-ring"} < fits(catalogue, TORCH)


def test_each_flag_that_does_not_apply_has_a_reason(catalogue: Catalogue) -> None:
    _, reasons = applicable(catalogue, TORCH, ["cpu"])
    assert reasons["torch-loader-generator"] == ByHandOnly()
    assert reasons["tensorflow-seed"] == NotImported(modules=("tensorflow",))
    assert reasons["jax-xla-deterministic-ops"] == NotImported(modules=("jax", "tensorflow"))
    assert reasons["cuda-cublas-workspace"] == NoGpu()


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("2.9.1", True),
        ("2.9.1+cu128", True),
        ("2.10.0", False),
        ("2.10.0a0+git1", False),
        ("2.10", False),
        ("3.0", False),
        ("nightly", False),
    ],
)
def test_a_version_that_is_too_old_for_a_flag(catalogue: Catalogue, version: str, old: bool) -> None:
    row = catalogue.get("torch-inductor-deterministic")
    reason = TooOld(framework="torch", since="2.10", found=version) if old else None
    assert too_old(row, {"torch": version}) == reason
    assert applicable([row], {"torch": version}, ["cpu"])[1] == ({row.id: reason} if reason else {})
    assert too_old(row, {}) is None


def test_a_version_that_no_longer_needs_a_flag() -> None:
    row = flag("old", framework="torch", env={"A": "1"}, until="2.9")
    for version in ("2.9", "2.9.1", "2.8.0", "1.13"):
        assert applicable([row], {"torch": version}, ["cpu"])[0] == (row,)
    for version in ("2.10.0", "3.0"):
        reason = NoLongerNeeded(framework="torch", until="2.9", found=version)
        assert applicable([row], {"torch": version}, ["cpu"])[1] == {"old": reason}
