"""Of several ranks that differ at once, a trace follows one that differs before its collectives do."""

import json
from pathlib import Path
from typing import Any

import pytest

from detaudit import wire
from detaudit.model import Difference, Run, RunRecord, Stage, Status
from detaudit.runner import Result
from detaudit.runs.log import read_run
from detaudit.trace.instrumented import RunPair
from tests.fakes import hello, training
from tests.logs import write_log

ALLREDUCE, MULTIPLY = "c10d.allreduce_.default", "aten.mul.Tensor"


def operation(name: str, digest: str) -> dict[str, Any]:
    place = {"n": 0, "thread": wire.MAIN_THREAD, "step": 1, "file": "train.py", "line": 3}
    return {"k": "op", "op": name, "ins": [["f[2]:same", 1]], "outs": [[f"f[2]:{digest}", 2, True]], **place}


def result(folder: Path, names: tuple[str, str], digest: str) -> Result:
    (folder / "logs").mkdir(parents=True)
    for rank, name in enumerate(names):
        lines = [hello(pid=rank, rank=rank, world=2), *training()[1:]]
        log = folder / "logs" / f"{rank}.0{wire.LOG_SUFFIX}"
        write_log(log, lines)
        log.with_suffix(wire.OPS_SUFFIX).write_text(json.dumps(operation(name, digest)) + "\n")
    run = Run(id=1, status=Status.OK, exit_code=0, wall_s=1.0, steps=2)
    return Result(run, read_run(folder), RunRecord())


@pytest.mark.parametrize(
    ("names", "also", "expected"),
    [
        ((ALLREDUCE, MULTIPLY), (1,), (1, (0,))),
        ((MULTIPLY, ALLREDUCE), (1,), (0, (1,))),
        ((ALLREDUCE, ALLREDUCE), (1,), (0, (1,))),
        ((ALLREDUCE, MULTIPLY), (), (0, ())),
    ],
)
def test_the_rank_to_follow(
    tmp_path: Path, names: tuple[str, str], also: tuple[int, ...], expected: tuple[int, tuple[int, ...]]
) -> None:
    a, b = (result(tmp_path / digest, names, digest) for digest in ("a", "b"))
    differs = Difference(rank=0, step=1, stage=Stage.UPDATE, also=also)
    found = RunPair(a, b, (tmp_path / "a", tmp_path / "b"), differs).where_it_began().differs
    assert (found.rank, found.also) == expected
