"""What the scan of a script's step makes of the log of its calls. No process is started."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detaudit.errors import UnknownNameError
from detaudit.model.operations import OpScan, ScriptStep
from detaudit.ops import scan
from detaudit.ops.scan import Request, Scanner
from tests.ops.test_scan import Fake

STEP = ScriptStep(
    command=("train.py", "--lr", "1"), step=2, steps=2, frameworks=("torch",), processes=1, log_dir="/r", calls=4
)
PUT, NEG = "aten.index_put_.default", "aten.neg.default"


def noted(op: str, **changed: Any) -> dict[str, Any]:
    storages = [{"device": "cpu", "file": "1.memory0.bin"}, {"device": "cpu", "file": ""}]
    return {"k": "noted", "op": op, "dtype": "float32", "count": 3, "backward": False, "storages": storages, **changed}


def end(**changed: Any) -> dict[str, Any]:
    left = [["view", "aten.t.default", 2], ["custom", "a.b.c", 1], ["view", "aten.view.default", 3]]
    return {"k": "step", "step": 2, "complete": True, "left_out": left, "compiled": 0, "settings": {}, **changed}


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "1.ops"
    path.write_text("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines))
    return path


def scanner(out: Path, fake: Fake, log: str, *patterns: str) -> Scanner:
    request = Request(
        python="python", framework="torch", device="cpu", patterns=patterns or ("*",), dtypes=(), repeats=10,
        script=STEP, log=log,
    )  # fmt: skip
    return Scanner(request, out, "mark", fake, {}, 2)


def test_a_step_that_did_not_end_is_not_used(tmp_path: Path) -> None:
    assert scan.read(write(tmp_path, noted(PUT), end(complete=False)))[1] is None
    calls, ended = scan.read(write(tmp_path, noted(PUT), noted(NEG), end()))
    assert [one.op for one in calls] == [PUT, NEG]
    assert ended is not None


def test_what_was_left_out_is_grouped_by_reason(tmp_path: Path) -> None:
    _, ended = scan.read(write(tmp_path, end()))
    assert ended is not None
    found = [(one.reason.value, one.calls, one.operations) for one in scan.left_out(ended)]
    assert found == [("view", 5, ("aten.t.default", "aten.view.default")), ("custom", 1, ("a.b.c",))]


def test_the_device_is_that_of_the_inputs(tmp_path: Path) -> None:
    on_gpu = noted(NEG, storages=[{"device": "cuda:1", "file": ""}])
    calls, _ = scan.read(write(tmp_path, noted(PUT), on_gpu))
    assert (scan.device(calls[:1]), scan.device(calls)) == ("cpu", "cuda")


def test_a_log_names_no_file_elsewhere(tmp_path: Path) -> None:
    elsewhere = noted(PUT, storages=[{"device": "cpu", "file": "../important"}])
    assert scan.read(write(tmp_path, elsewhere))[0] == ()


def test_results_have_the_line_and_the_number_of_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = write(tmp_path, noted(PUT, file=f"{tmp_path}/train.py", line=7), noted(NEG), end())
    fake = Fake([PUT, NEG], differs=PUT)
    found = scanner(tmp_path / "out", fake, str(log)).run()
    assert [(one.op, one.calls, one.file, one.line) for one in found.differing] == [(PUT, 3, "train.py", 7)]
    assert (found.script, found.dtypes) == (STEP, ("float32",))
    assert {job["log"] for job in fake.jobs} == {str(log)}
    assert msgspec.json.decode(msgspec.json.encode(found), type=OpScan) == found


def test_saved_inputs_are_removed_once_all_is_repeated(tmp_path: Path) -> None:
    log = write(tmp_path, noted(PUT), end())
    (tmp_path / "1.memory0.bin").touch()
    fake = Fake([PUT])
    fake.interrupted_at = PUT
    with pytest.raises(KeyboardInterrupt):
        scanner(tmp_path / "out", fake, str(log)).run()
    assert (tmp_path / "1.memory0.bin").exists()
    scanner(tmp_path / "out", fake, str(log)).run()
    assert not (tmp_path / "1.memory0.bin").exists()


def test_patterns_may_leave_out_the_namespace_and_the_overload(tmp_path: Path) -> None:
    log = write(tmp_path, noted(PUT), noted(NEG), end())
    for number, pattern in enumerate((PUT, "index_put_", "torch.Tensor.index_*", "aten.index*")):
        fake = Fake([PUT, NEG])
        scanner(tmp_path / str(number), fake, str(log), pattern).run()
        assert [op for op, _ in fake.jobs[1]["items"]] == [PUT]
    with pytest.raises(UnknownNameError, match="no operation of step 2 of train"):
        scanner(tmp_path / "none", Fake([PUT]), str(log), "nothing").run()


def test_a_script_without_calls_is_inconclusive(tmp_path: Path) -> None:
    fake = Fake([PUT])
    found = scanner(tmp_path, fake, "").run()
    assert (found.exit_code, found.script, fake.jobs) == (125, STEP, [])
