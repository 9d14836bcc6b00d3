"""Of the processes of a run, those with a framework are found, also outside of its session and of other parents."""

from pathlib import Path

import pytest

from detaudit import wire
from detaudit.launch import descendants
from detaudit.launch.descendants import Descendants
from detaudit.launch.plan import BOOTSTRAP


class Proc:
    """A folder like /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, pid: int, parent: int, session: int, program: int, library: str = "", env: str = "") -> None:
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        fields = ["S", str(parent), "0", str(session), *["0"] * 41, *[str(program)] * 4, "0"]
        (folder / "stat").write_text(f"{pid} (a) name) {' '.join(fields)}")
        (folder / "maps").write_text(f"7f00-7f01 r--p 00000000 08:01 1 /site-packages{library}\n")
        (folder / "cmdline").write_bytes(b"python\0train.py\0")
        (folder / "environ").write_text(env)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    monkeypatch.setattr(descendants, "_PROC", tmp_path)
    monkeypatch.setattr(descendants, "INTERVAL_S", 0.0)
    return Proc(tmp_path)


def test_programs_with_a_framework_are_found_wherever_they_are_in_the_tree(proc: Proc) -> None:
    proc.add(10, 1, 10, 100)
    proc.add(11, 10, 10, 111, "/torch/lib/libtorch_cpu.so")
    proc.add(12, 11, 12, 112, "/sklearn/tree/_tree.so")  # in a session of its own
    proc.add(13, 1, 10, 113, "/jaxlib/xla.so")  # its parent is gone
    proc.add(14, 1, 14, 114, "/torch/lib/libtorch_cpu.so")  # of someone else
    tree = Descendants(10)
    tree.look()
    assert {(one.pid, one.framework) for one in tree.programs} == {(11, "torch"), (12, "scikit-learn"), (13, "jax")}


def test_a_program_is_found_once_it_loads_a_framework_and_again_after_exec(proc: Proc) -> None:
    tree = Descendants(10)
    for program, library in (
        (1, ""),
        (1, "/torch/lib/libtorch.so"),
        (1, "/torch/lib/libtorch.so"),
        (2, "/libxgboost.so"),
    ):
        proc.add(10, 1, 10, program, library)
        tree.look()
    assert [(one.addresses[0], one.framework) for one in tree.programs] == [(1, "torch"), (2, "xgboost")]


def test_what_a_program_was_started_with_is_known(proc: Proc) -> None:
    proc.add(10, 1, 10, 1, "/libxgboost.so", f"A=1\0{wire.ENV_LOGS}=/logs\0PYTHONPATH=.\0")
    proc.add(11, 10, 10, 2, "/libxgboost.so", f"PYTHONPATH={BOOTSTRAP}:lib\0")
    tree = Descendants(10)
    tree.look()
    found = {one.pid: (one.command, one.has_variables, one.has_path) for one in tree.programs}
    assert found == {10: (("python", "train.py"), True, False), 11: (("python", "train.py"), False, True)}


def test_the_number_of_another_process_that_ended_may_be_given_to_one_of_the_run(proc: Proc) -> None:
    proc.add(10, 1, 10, 100)
    proc.add(14, 1, 14, 114, "/torch/lib/libtorch_cpu.so")
    tree = Descendants(10)
    tree.look()
    proc.add(14, 10, 10, 200, "/torch/lib/libtorch_cpu.so")
    for _ in range(descendants._REREAD):
        tree.look()
    assert [(one.pid, one.addresses[0]) for one in tree.programs] == [(14, 200)]


def test_other_processes_are_not_read_at_each_look(proc: Proc) -> None:
    proc.add(10, 1, 10, 100)
    proc.add(14, 1, 14, 114)
    tree = Descendants(10)
    tree.look()
    (proc.folder / "14" / "stat").unlink()
    assert set(tree._stats()) == {10}
