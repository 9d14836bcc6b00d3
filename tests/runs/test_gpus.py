import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from detaudit.runs import environment

A100, H100 = "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"
ONE, TWO = "GPU-5d5ba0d6-2222-2222-2222-222222222222", "GPU-5e5ba0d6-2222-2222-2222-222222222222"
MIG_ONE, MIG_TWO = "MIG-c7384736-a75d-5afc-978f-d2f1294409fd", "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d"
QUERY = f"00000000:3B:00.0, {ONE}, {A100}, Enabled, Disabled, 1410\n00000001:00:00.0, {TWO}, {A100}, [N/A], N/A, 1410\n"
LIST = f"""GPU 0: {A100} (UUID: {ONE})
  MIG 3g.20gb     Device  0: (UUID: {MIG_ONE})
  MIG 1c.2g.10gb  Device  1: (UUID: {MIG_TWO})
GPU 1: {A100} (UUID: {TWO})
"""
PLAIN = [{"uuid": ONE, "model": A100, "mig": "Disabled"}, {"uuid": TWO, "model": A100}]
MIXED = [{"uuid": ONE, "model": A100}, {"uuid": TWO, "model": H100}]
DIVIDED = [
    {
        "uuid": ONE,
        "model": A100,
        "mig": "Enabled",
        "instances": [{"profile": "3g.20gb", "uuid": MIG_ONE}, {"profile": "1c.2g.10gb", "uuid": MIG_TWO}],
    }
]


def smi(folder: Path, query: str, listed: str = "", status: int = 0) -> str:
    """Write an nvidia-smi that prints these texts, and return its folder."""
    folder.mkdir()
    (folder / "query").write_text(query)
    (folder / "list").write_text(listed)
    program = folder / "nvidia-smi"
    choice = f'if [ "$1" = -L ]; then cat "{folder}/list"; else cat "{folder}/query"; fi'
    program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{choice}\nexit {status}\n")
    program.chmod(0o755)
    return str(folder)


def listed(root: Path, *texts: str) -> None:
    for number, text in enumerate(texts):
        folder = root / "proc/driver/nvidia/gpus" / str(number)
        folder.mkdir(parents=True)
        (folder / "information").write_text(text)


def test_what_the_driver_does_not_know_is_left_out(tmp_path: Path) -> None:
    unused = "GPU UUID: \t GPU-????????-????-????-????-????????????\nVideo BIOS: \t ??.??.??.??.??\n"
    listed(tmp_path, f"Model: \t\t {H100}\n{unused}Bus Location: \t 0000:3B:00.0\n", "IRQ: 5\n")
    assert environment.describe_gpus(tmp_path, "") == [{"model": H100, "bus": "0000:3b:00.0"}]


@pytest.mark.launches
def test_nvidia_smi_adds_what_the_driver_does_not_list(tmp_path: Path) -> None:
    bios = "Video BIOS: \t 92.00\nBus Location: \t "
    listed(tmp_path, f"{bios}0000:3b:00.0\n", f"{bios}0001:00:00.0\n", f"Model: {H100}\nBus Location: 0002:00:00.0\n")
    found = environment.describe_gpus(tmp_path, smi(tmp_path / "bin", QUERY))
    assert found == [
        {
            "bus": "0000:3b:00.0",
            "uuid": ONE,
            "model": A100,
            "vbios": "92.00",
            "ecc": "Enabled",
            "mig": "Disabled",
            "max_clock": "1410",
        },
        {"bus": "0001:00:00.0", "uuid": TWO, "model": A100, "vbios": "92.00", "max_clock": "1410"},
    ]


@pytest.mark.launches
def test_the_instances_of_a_divided_gpu(tmp_path: Path) -> None:
    path = smi(tmp_path / "bin", QUERY.replace("Disabled", "Enabled"), LIST)
    facts = environment.describe_machine(tmp_path, {"PATH": path})
    first, second = facts["gpu_devices"]
    assert first["instances"] == DIVIDED[0]["instances"]
    assert "instances" not in second
    slot = environment.relevant_of_machine({**facts, "variables": {"CUDA_VISIBLE_DEVICES": MIG_TWO}})
    assert (slot["gpus"], slot["mig"], slot["ecc"]) == (f"{A100} MIG 1c.2g.10gb", "Enabled", "Enabled")
    assert environment.relevant_of_machine(facts)["gpus"] == f"{A100} MIG 3g.20gb 1c.2g.10gb, {A100}"


@pytest.mark.launches
@pytest.mark.parametrize(("query", "status"), [(QUERY, 9), ("No devices were found\n", 0), ("", 0)])
def test_an_nvidia_smi_that_does_not_answer_adds_nothing(tmp_path: Path, query: str, status: int) -> None:
    listed(tmp_path, f"Model: {H100}\n")
    assert environment.describe_gpus(tmp_path, smi(tmp_path / "bin", query, status=status)) == [{"model": H100}]


@pytest.mark.launches
def test_an_nvidia_smi_that_hangs_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_ANSWERS_WITHIN", 0.2)
    listed(tmp_path, f"Model: {H100}\n")
    path = smi(tmp_path / "bin", QUERY)
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    assert environment.describe_gpus(tmp_path, path) == [{"model": H100}]


def test_an_nvidia_smi_that_cannot_be_killed_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(environment, "_ANSWERS_WITHIN", -0.9)
    monkeypatch.setattr(environment, "_run", lambda command, printed: ended.wait())
    listed(tmp_path, f"Model: {H100}\n")
    assert environment.describe_gpus(tmp_path, smi(tmp_path / "bin", QUERY)) == [{"model": H100}]
    ended.set()


@pytest.mark.parametrize(
    ("described", "named", "expected"),
    [
        (PLAIN, None, [A100, A100]),
        (PLAIN, "", []),
        (PLAIN, "1", [A100]),
        (PLAIN, " 1 , 0 ", [A100, A100]),
        (PLAIN, "0,-1,1", [A100]),
        (PLAIN, "0,7,1", [A100]),
        (PLAIN, "0,,1", [A100]),
        (PLAIN, "9" * 5000, []),
        (PLAIN, "GPU-5e", [A100]),
        (PLAIN, "GPU-5", None),
        (PLAIN, "GPU-6", None),
        (PLAIN, "NoDevFiles", None),
        (MIXED, "1", None),
        (MIXED, "-1", []),
        (MIXED, f"{TWO},{ONE}", [H100, A100]),
        (DIVIDED, None, [f"{A100} MIG 3g.20gb 1c.2g.10gb"]),
        (DIVIDED, "0", None),
        (DIVIDED, MIG_ONE, [f"{A100} MIG 3g.20gb"]),
        (DIVIDED, f"MIG-{ONE}/1/0", None),
    ],
)
def test_the_gpus_that_a_process_may_use(
    described: Sequence[dict[str, Any]], named: str | None, expected: list[str] | None
) -> None:
    found = environment.visible(described, named)
    assert (found if found is None else [environment.label(gpu) for gpu in found]) == expected
