"""Which processes a scan starts, and what it does when one of them dies. No process is started."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from detaudit.errors import ScanError, UnknownNameError
from detaudit.launch import EnoughError, RunOutcome, RunSpec
from detaudit.model.operations import OpScan
from detaudit.ops import scan
from detaudit.ops.scan import Request, Scanner
from detaudit.wire import ENV_MARK

Answer = Callable[[dict[str, Any], RunSpec], str]
"""Returns the digest of a repetition, or raises."""


class Fake:
    """A launcher whose processes do a job at once; ``differs`` names operations with a race."""

    def __init__(self, items: list[str], differs: str = "", dies: str = "", hangs: str = "") -> None:
        self.items, self.differs, self.dies, self.hangs = items, differs, dies, hangs
        self.jobs: list[dict[str, Any]] = []
        self.specs: list[RunSpec] = []
        self.interrupted_at = ""

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        job = json.loads(Path(spec.argv[-1]).read_text())
        self.jobs.append(job)
        self.specs.append(spec)
        with open(job["lines"], "a") as lines:

            def write(kind: str, value: object) -> None:
                lines.write(json.dumps({kind: value}) + "\n")
                lines.flush()
                tick()

            write("framework", {"version": "2.13", "threads": 2})
            for op in self.items if "lists" in job else ():
                write("item", [op, "float32"])
            for op, dtype in job.get("items", ()):
                write("begin", [op, dtype])
                if op == self.interrupted_at:
                    self.interrupted_at = ""
                    raise KeyboardInterrupt
                if op == self.dies:
                    lines.write('{"case":')  # on a full disk, a line is cut off
                    lines.flush()
                    return RunOutcome(-11, 1.0)
                if op == self.hangs:
                    return RunOutcome(None, 1.0, ended=True)
                write("case", self._case(op, dtype, job["phases"]))
                write("end", [op, dtype])
        return RunOutcome(0, 1.0)

    def _case(self, op: str, dtype: str, phases: list[dict[str, Any]]) -> dict[str, Any]:
        races = {"a": 1, "b": 1} if op == self.differs else {"a": 2}
        results = {one["name"]: {"results": races if one["name"] == "usual" else {"a": 2}} for one in phases}
        case = {"op": op, "dtype": dtype, "sample": 0, "direction": "forward", "size": [0, 4], "inputs": "i"}
        return {**case, "shapes": "5", "phases": results}


def scanner(out: Path, fake: Fake, patterns: tuple[str, ...] = ("*",), **changed: Any) -> Scanner:
    request = Request(
        python="python", framework="torch", device="cpu", patterns=patterns, dtypes=("float32",), repeats=10, **changed
    )
    return Scanner(request, out, "mark", fake, {"HOME": "/home/user"}, 2)


def test_only_what_differs_is_repeated_again(tmp_path: Path) -> None:
    fake = Fake(["add", "put_", "mul"], differs="put_")
    found = scanner(tmp_path, fake).run()
    assert [len(job.get("items", ())) for job in fake.jobs] == [0, 3, 3, 1]
    assert [one.op for one in found.differing] == ["put_"]
    assert (found.operations, found.cases, found.version, found.threads) == (3, 3, "2.13", 2)


def test_processes_differ_in_memory_and_load_alone(tmp_path: Path) -> None:
    fake = Fake(["add"], differs="add")
    scanner(tmp_path, fake).run()
    _, first, loaded, again = fake.specs
    assert first.env == {"HOME": "/home/user", ENV_MARK: "mark", "PYTHONHASHSEED": "0", "MALLOC_PERTURB_": "85"}
    assert loaded.env == {**first.env, "MALLOC_PERTURB_": "170"}
    assert again.env == first.env
    assert (first.load, loaded.load, again.load) == (0, 2, 0)


def test_later_processes_enlarge_samples_as_the_first_did(tmp_path: Path) -> None:
    fake = Fake(["add"])
    scanner(tmp_path, fake).run()
    assert [job.get("sizes") for job in fake.jobs] == [None, {}, {"add|float32|0": [0, 4]}]


def test_an_operation_that_ends_its_process_is_named_and_not_repeated(tmp_path: Path) -> None:
    fake = Fake(["add", "crash", "mul"], dies="crash")
    found = scanner(tmp_path, fake).run()
    assert [(one.op, one.exit_code) for one in found.crashed] == [("crash", -11)]
    assert found.operations == 2
    assert [[op for op, _ in job.get("items", ())] for job in fake.jobs[1:3]] == [["add", "crash", "mul"], ["mul"]]


def test_an_operation_that_does_not_end_is_named(tmp_path: Path) -> None:
    found = scanner(tmp_path, Fake(["add", "waits"], hangs="waits")).run()
    assert [(one.op, one.exit_code) for one in found.crashed] == [("waits", None)]


def test_an_interrupted_scan_goes_on_where_it_stopped(tmp_path: Path) -> None:
    fake = Fake(["add", "put_", "mul"], differs="put_")
    fake.interrupted_at = "mul"
    first = scanner(tmp_path, fake)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert [one.op for one in first.result(interrupted=True).differing] == ["put_"]
    found = scanner(tmp_path, fake).run()
    assert [[op for op, _ in job.get("items", ())] for job in fake.jobs[2:]] == [
        ["mul"],
        ["add", "put_", "mul"],
        ["put_"],
    ]
    whole = scanner(tmp_path / "whole", Fake(fake.items, differs="put_")).run()
    assert [one.op for one in found.differing] == [one.op for one in whole.differing]


def test_patterns_may_begin_as_in_code(tmp_path: Path) -> None:
    names = ["index_put", "index_put_", "nn.functional.embedding"]
    chosen = {
        ("torch.Tensor.index_put_",): ["index_put_"],
        ("torch.nn.functional.*", "index_put"): ["index_put", "nn.functional.embedding"],
    }
    for number, (patterns, expected) in enumerate(chosen.items()):
        fake = Fake(names)
        scanner(tmp_path / str(number), fake, patterns).run()
        assert [op for op, _ in fake.jobs[1]["items"]] == expected


def test_a_pattern_without_an_operation_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no operation of torch matches nothing"):
        scanner(tmp_path, Fake(["add"]), ("nothing",)).run()


def test_a_framework_that_does_not_load_is_an_error(tmp_path: Path) -> None:
    class Broken(Fake):
        def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
            spec.folder.mkdir(parents=True)
            (spec.folder / "stderr.log").write_text("Traceback\nModuleNotFoundError: No module named 'torch'\n")
            return RunOutcome(1, 0.1)

    with pytest.raises(ScanError, match="cannot list the operations of torch: ModuleNotFoundError"):
        scanner(tmp_path, Broken([])).run()


def test_an_operation_without_a_line_for_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    progress = scan.Progress(tmp_path / "lines", "first", 3, scan.Watcher())
    (tmp_path / "lines").write_text("{}\n")
    progress.tick()
    clock[0] = scan.STALLED_S
    progress.tick()
    (tmp_path / "lines").write_text("{}\n{}\n")
    clock[0] += 1
    progress.tick()
    clock[0] += scan.STALLED_S + 1
    with pytest.raises(EnoughError):
        progress.tick()


def test_the_progress_counts_operations_that_ended_or_crashed(tmp_path: Path) -> None:
    class Noted(scan.Watcher):
        seen: ClassVar[list[int]] = []

        def progress(self, name: str, done: int, of: int) -> None:
            self.seen.append(done)

    progress = scan.Progress(tmp_path / "lines", "first", 3, Noted())
    progress.tick()
    for more in ('{"begin": ["add", "f"]}\n{"end": ["a', 'dd", "f"]}\n', '{"crashed":{}}\n{"case": {}}\n{"end": '):
        with (tmp_path / "lines").open("a") as file:
            file.write(more)
        progress.tick()
    assert Noted.seen == [0, 0, 1, 2]


def test_exit_statuses(tmp_path: Path) -> None:
    def status(found: OpScan) -> int:
        return int(found.exit_code)

    assert status(scanner(tmp_path / "1", Fake(["add"])).run()) == 0
    assert status(scanner(tmp_path / "2", Fake(["add"], differs="add")).run()) == 1
    assert status(scanner(tmp_path / "3", Fake(["add"], dies="add")).run()) == 125
    assert status(scanner(tmp_path / "3", Fake(["add"])).result(interrupted=True)) == 130
