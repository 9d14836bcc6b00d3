import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.runs import environment

BOOT_ID = "b5236fe7-4bd2-43a5-9a48-b0845ea5763f"
INFORMATION = """Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 42
GPU UUID: \t GPU-82523fd8-3897-f599-d088-ccd04ae45ec1
Video BIOS: \t 96.00.74.00.01
Bus Location: \t 0000:3b:00.0
"""
AMD = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
stepping\t: 1
microcode\t: 0x1000065
flags\t\t: fpu avx2 fma
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1
"""
CPU = "sys/devices/system/cpu"
GPUS = "proc/driver/nvidia/gpus"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def two_sockets() -> dict[str, str]:
    """Four cores with two hardware threads each: CPUs 0 and 4 are of one core."""
    files = {}
    for cpu in range(8):
        core = cpu % 4
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = f"{core // 2}\n"
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = f"{core},{core + 4}\n"
    caches = [("1", "Data", "48K", "0,4"), ("1", "Instruction", "32K", "0,4"), ("2", "Unified", "2048K", "0,4")]
    for index, rows in enumerate([*caches, ("3", "Unified", "32768K", "0-1,4-5")]):
        for name, text in zip(("level", "type", "size", "shared_cpu_list"), rows, strict=True):
            files[f"{CPU}/cpu0/cache/index{index}/{name}"] = f"{text}\n"
    return files


def test_a_machine_is_identified_by_its_boot(tmp_path: Path) -> None:
    assert environment.identity(tmp_path) == ""
    tree(tmp_path, {"proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n"})
    assert environment.identity(tmp_path) == BOOT_ID
    tree(tmp_path, {"proc/sys/kernel/random/boot_id": f"{BOOT_ID}\x1b[2J\n"})
    assert environment.identity(tmp_path) == ""


def test_a_machine_is_described(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            **two_sockets(),
            "proc/cpuinfo": AMD,
            "proc/self/status": "Name:\tx\nSeccomp:\t2\nMems_allowed_list:\t0-1\n",
            "proc/sys/kernel/hostname": "node-\x1b[31m017" + "x" * 99,
            "proc/sys/kernel/randomize_va_space": "2\n",
            "sys/devices/system/node/online": "0-1\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
            f"{CPU}/intel_pstate/no_turbo": "1\n",
        },
    )
    found = environment.describe_machine(tmp_path, {"LANG": "de_DE.UTF-8", "LC_ALL": ""})
    assert found["host"] == "node-[31m017" + "x" * 28
    assert (found["processor"], found["microcode"]) == ("vendor_id AuthenticAMD", "0x1000065")
    assert (found["cpu"], found["instructions"]) == ("AMD EPYC (cpu family 25, model 17, stepping 1)", ["avx2", "fma"])
    assert (found["sockets"], found["cores"], found["hardware_threads"]) == (2, 4, 8)
    assert found["caches"] == ["L1d 48K for 2 CPUs", "L2 2048K for 2 CPUs", "L3 32768K for 4 CPUs"]
    assert (found["numa_nodes"], found["memory_nodes"], found["seccomp"]) == ("0-1", "0-1", "2")
    assert (found["thp"], found["aslr"], found["locale"]) == ("madvise", "2", "de_DE.UTF-8")
    assert (found["governor"], found["boost"]) == ("performance", False)
    assert found["stack"] == "unlimited" or found["stack"] > 0
    assert not {"quota", "gpus", "gpu_devices", "driver"} & set(found)


def test_arm_names_its_processors_by_numbers(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": ARM, f"{CPU}/cpu0/topology/thread_siblings_list": "0\n"}
    found = environment.describe_machine(tree(tmp_path, files), {})
    assert not {"cpu", "sockets"} & set(found)
    assert found["processor"].endswith("cpu variant 0x1, cpu part 0xd40, cpu revision 1")
    assert (found["instructions"], found["cores"]) == (["asimd", "sve"], 1)
    other = {**found, "processor": found["processor"].replace("0xd40", "0xd0c")}
    assert environment.relevant_of_machine(other) != environment.relevant_of_machine(found)


def test_what_a_machine_does_not_show_is_left_out(tmp_path: Path) -> None:
    found = environment.describe_machine(tmp_path, {})
    assert set(found) <= {"system", "machine", "cpus", "libc", "stack"}
    assert {"system", "cpus", "stack"} <= set(found)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "400000 100000\n", "a/cpu.max": "50000 100000\n", "a/b/cpu.max": "max 100000\n"}, 0.5),
        ({"c/cpu.max": "50000 100000\n"}, None),
        ({"../c/cpu.max": "50000 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
        ({"cpu/d/cpu.cfs_quota_us": "250000\n", "cpu/d/cpu.cfs_period_us": "100000\n"}, 2.5),
        ({"cpu/d/cpu.cfs_quota_us": "-1\n", "cpu/d/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": f"{10**400} 1\n"}, None),
    ],
)
def test_the_lowest_quota_of_a_process(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    tree(tmp_path, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    tree(tmp_path, {"proc/self/cgroup": "9:name=systemd:/c\n4:cpuacct,cpu:/d\n1:memory:/c\n0::/a/b\n0::/../c\n"})
    assert environment.describe_machine(tmp_path, {}).get("quota") == quota


@pytest.mark.parametrize(("boost", "no_turbo", "expected"), [("1", "1", True), ("0", "", False), ("", "0", True)])
def test_whether_cpus_may_be_faster(tmp_path: Path, boost: str, no_turbo: str, expected: bool) -> None:
    tree(tmp_path, {f"{CPU}/cpufreq/boost": boost, f"{CPU}/intel_pstate/no_turbo": no_turbo})
    assert environment.describe_machine(tmp_path, {})["boost"] is expected


@pytest.mark.launches
def test_this_machine_is_described() -> None:
    found = environment.describe_machine()
    assert found["cpus"] == len(os.sched_getaffinity(0))
    assert msgspec.json.decode(msgspec.json.encode(found)) == found
    assert environment.identity() == environment.identity()
    merged = {**environment.describe(), **found}
    relevant = environment.relevant_of_machine(merged)
    assert {"cpus", "libc", "machine", "stack", "system"} <= set(relevant)
    assert list(relevant) == sorted(relevant)
    assert "host" not in relevant
    assert environment.relevant(merged) == environment.relevant(environment.describe())


def test_only_what_may_change_bits_is_relevant() -> None:
    facts: dict[str, Any] = {
        "host": "a",
        "governor": "powersave",
        "numa_nodes": "0-1",
        "thp": "never",
        "seccomp": "2",
        "boost": True,
        "microcode": "0x1",
        "quota": 1.5,
        "caches": ["L1d 32K", "L2 1024K"],
        "cpus": 8,
        "cores": 4,
        "packages": {"torch": "2.13.0"},
        "variables": {"OMP_NUM_THREADS": "2"},
    }
    expected = ["caches", "cores", "cpus", "microcode", "quota", "OMP_NUM_THREADS", "torch"]
    found = environment.relevant_of_machine(facts)
    assert list(found) == sorted(expected)
    assert (found["caches"], found["quota"]) == ("L1d 32K, L2 1024K", "1.5")


def test_two_slots_of_a_machine_are_the_same(tmp_path: Path) -> None:
    second = INFORMATION.replace("3b", "5e").replace("GPU-8", "GPU-9")
    tree(tmp_path, {f"{GPUS}/0000:3b:00.0/information": INFORMATION, f"{GPUS}/0000:5e:00.0/information": second})
    facts = environment.describe_machine(tmp_path, {})
    assert [gpu["uuid"][:5] for gpu in facts["gpu_devices"]] == ["GPU-8", "GPU-9"]
    slots = [
        environment.relevant_of_machine({**facts, "variables": {"CUDA_VISIBLE_DEVICES": name}})
        for name in ("0", "1", "GPU-9")
    ]
    assert slots[0] == slots[1] == slots[2]
    assert slots[0]["gpus"] == "NVIDIA H100 80GB HBM3"
    assert "CUDA_VISIBLE_DEVICES" not in slots[0]
    both = environment.relevant_of_machine(facts)
    assert both["gpus"] == "NVIDIA H100 80GB HBM3, NVIDIA H100 80GB HBM3"
    assert both == environment.relevant_of_machine({**facts, "variables": {"CUDA_VISIBLE_DEVICES": "0,1"}})
    assert "gpus" not in environment.relevant_of_machine({**facts, "variables": {"CUDA_VISIBLE_DEVICES": ""}})
    unknown = environment.relevant_of_machine({**facts, "variables": {"CUDA_VISIBLE_DEVICES": "GPU-7"}})
    assert (unknown["CUDA_VISIBLE_DEVICES"], unknown["gpus"]) == ("GPU-7", both["gpus"])


def test_without_described_gpus_the_variable_stays() -> None:
    assert environment.relevant_of_machine({"variables": {"CUDA_VISIBLE_DEVICES": "1"}}) == {
        "CUDA_VISIBLE_DEVICES": "1"
    }


FILES = [
    *("proc/cpuinfo", "proc/self/status", "proc/self/cgroup", "proc/sys/kernel/hostname"),
    *("proc/sys/kernel/random/boot_id", "proc/sys/kernel/randomize_va_space", f"{GPUS}/0/information"),
    *(f"{CPU}/cpu0/topology/core_cpus_list", f"{CPU}/cpu0/topology/physical_package_id", f"{CPU}/cpufreq/boost"),
    *(f"{CPU}/cpu0/cache/index0/{name}" for name in ("level", "type", "size", "shared_cpu_list")),
    *("sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    *("sys/module/nvidia/version", "sys/kernel/mm/transparent_hugepage/enabled", "sys/devices/system/node/online"),
]
KEYS = [b"Model: ", b"GPU UUID: ", b"microcode: ", b"vendor_id: ", b"Seccomp:", b"0::/", b"1:cpu:/", b"[", b"]", b"0-"]
GARBAGE = st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([*KEYS, b"1", b"Data", b"\n", b"9" * 5000]))).map(
    b"".join
)


@given(st.dictionaries(st.sampled_from(FILES), GARBAGE), st.text(st.characters(), max_size=9))
def test_no_garbage_stops_a_description(files: dict[str, bytes], locale: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        found = environment.describe_machine(root, {"LANG": locale})
        assert msgspec.json.decode(msgspec.json.encode(found)) == found
        assert all(environment.relevant_of_machine({**found, "variables": {"CUDA_VISIBLE_DEVICES": locale}}).values())
        assert environment.identity(root) == ""


@given(st.text(), st.text())
def test_no_answer_of_nvidia_smi_stops_a_description(listed: str, queried: str) -> None:
    msgspec.json.encode([environment.instances(listed), list(environment.answers(queried))])
