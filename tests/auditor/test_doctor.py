import pytest

from detaudit.auditor import doctor
from detaudit.model import Threat
from detaudit.recipe.flags import Device, load_catalogue

TOLD = {"packages": {"torch": "2.13.0"}, "cpus": 8}


def threats(base: dict[str, str], *devices: Device) -> list[Threat]:
    return list(doctor.threats(TOLD, load_catalogue(), {"cpu", *devices}, base))


def flags(base: dict[str, str], *devices: Device) -> set[str]:
    return {threat.flag for threat in threats(base, *devices)}


def test_what_is_loose_is_told_with_the_flag_that_holds_it() -> None:
    assert {"python-hash-seed", "system-aslr-off"} <= flags({})
    assert "python-hash-seed" not in flags({"PYTHONHASHSEED": "0"})


def test_a_gpu_brings_threats_of_its_own() -> None:
    assert "cuda-cublas-workspace" not in flags({})
    assert "cuda-cublas-workspace" in flags({}, "gpu")
    assert "jax-xla-deterministic-ops" not in flags({}, "gpu"), "JAX is not installed"


def test_a_setting_that_does_nothing_any_more_is_told() -> None:
    found = [one for one in threats({"TF_CUDNN_USE_FRONTEND": "1"}) if "TF_CUDNN_USE_FRONTEND" in one.what]
    known = [one for one in threats({"PATH": "/bin", "HOME": "/"}) if "PATH" in one.what or "HOME" in one.what]
    assert (len(found), known) == (1, [])


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_threads_follow_the_machine_until_they_are_fixed(variable: str) -> None:
    assert any("8 here" in threat.what for threat in threats({}))
    assert not any("8 here" in threat.what for threat in threats({variable: "2"}))
