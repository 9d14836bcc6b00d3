from pathlib import Path

import pytest

from detaudit.runs import environment

CPUINFO = """processor : 0
model name : A Processor 9000
cpu family : 25
model : 17
stepping : 1
flags : fpu avx avx2 avx512f sgx

processor : 1
cpu family : 6
model name : Another
flags : none
"""


def test_a_machine_is_described_by_what_its_kernels_are_chosen_by(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(CPUINFO)
    for place in "ab":
        gpu = tmp_path / "proc/driver/nvidia/gpus" / place
        gpu.mkdir(parents=True)
        (gpu / "information").write_text("Model: \t\t NVIDIA H100\nIRQ: 5\n")
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("550.54\n")
    found = environment.describe({"OMP_NUM_THREADS": "2", "API_TOKEN": "a secret"}, tmp_path)
    model, instructions = found["cpu"], found["instructions"]
    assert (model, instructions) == (
        "A Processor 9000 (cpu family 25, model 17, stepping 1)",
        ["avx", "avx2", "avx512f"],
    )
    assert (found["gpus"], found["driver"]) == (["NVIDIA H100", "NVIDIA H100"], "550.54")
    assert found["variables"] == {"OMP_NUM_THREADS": "2"}
    relevant = environment.relevant(found)
    assert relevant["gpus"] == "NVIDIA H100, NVIDIA H100"
    assert "secret" not in repr(found)
    assert not {"system", "detaudit"} & set(relevant)


@pytest.mark.parametrize("text", ["", "no colon\n", "model name\n"])
def test_a_machine_that_describes_nothing_is_no_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(text)
    relevant = environment.relevant(environment.describe({}, tmp_path))
    assert not {"cpu", "gpus", "driver", "instructions"} & set(relevant)


def test_only_what_differs_is_a_change() -> None:
    found = environment.changes({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "3", "d": "4"})
    assert [(change.name, change.a, change.b) for change in found] == [
        ("b", "2", "3"),
        ("c", "3", None),
        ("d", None, "4"),
    ]


@pytest.mark.parametrize("device", ["proc/driver/nvidia/gpus/0/information", "dev/nvidiactl", "dev/kfd", "dev/dxg"])
def test_a_machine_that_may_have_a_gpu(tmp_path: Path, device: str) -> None:
    assert not environment.has_gpu(tmp_path)
    (tmp_path / device).parent.mkdir(parents=True)
    (tmp_path / device).write_text("Model: \t\t NVIDIA H100\n")
    assert environment.has_gpu(tmp_path)
