import pytest

from detaudit import doctor
from detaudit.config.flags import Device, load_catalogue
from detaudit.config.yamlfile import retired
from detaudit.model import Risk
from detaudit.model.audit import RandomAddresses, RetiredSetting, ThreadsFollowMachine, VariablesUnset

MACHINE = {"packages": {"torch": "2.13.0"}, "cpus": 8}
CATALOGUE = load_catalogue()


def risks(base: dict[str, str], *devices: Device) -> list[Risk]:
    return list(doctor.risks(MACHINE, CATALOGUE, {"cpu", *devices}, base))


def flags(base: dict[str, str], *devices: Device) -> set[str]:
    return {risk.flag for risk in risks(base, *devices) if isinstance(risk, VariablesUnset | RandomAddresses)}


def test_what_is_not_pinned_is_reported_with_the_flag_that_pins_it() -> None:
    hash_seed, aslr = CATALOGUE.get("python-hash-seed"), CATALOGUE.get("system-aslr-off")
    fix = {"flag": hash_seed.id, "title": hash_seed.title, "by_hand": hash_seed.by_hand}
    unset = VariablesUnset(variables=("PYTHONHASHSEED",), **fix)
    found = risks({})
    assert unset in found
    line = "PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 setarch -R python train.py"
    assert RandomAddresses(flag=aslr.id, title=aslr.title, by_hand=line) in found
    assert unset not in risks({"PYTHONHASHSEED": "0"})
    assert "python-hash-seed" not in flags({"PYTHONHASHSEED": "0"})


def test_a_gpu_has_risks_of_its_own() -> None:
    assert "cuda-cublas-workspace" not in flags({})
    assert "cuda-cublas-workspace" in flags({}, "gpu")
    assert "jax-xla-deterministic-ops" not in flags({}, "gpu"), "JAX is not installed"


def test_a_setting_that_no_longer_does_anything_is_reported() -> None:
    row = retired("TF_CUDNN_USE_FRONTEND")
    assert row is not None
    expected = RetiredSetting(variable="TF_CUDNN_USE_FRONTEND", value="1", why=row.why, replacement=row.replacement)
    found = risks({"TF_CUDNN_USE_FRONTEND": "1", "PATH": "/bin", "HOME": "/"})
    assert [risk for risk in found if isinstance(risk, RetiredSetting)] == [expected]


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_threads_follow_the_machine_until_their_number_is_set(variable: str) -> None:
    assert ThreadsFollowMachine(cpus=8) in risks({})
    assert not any(isinstance(risk, ThreadsFollowMachine) for risk in risks({variable: "2"}))
