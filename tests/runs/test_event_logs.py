"""An event log is read as far as it got, whatever cut it off."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit import redact
from detaudit.model import Stage
from detaudit.runs.live_log import Growing, Tail
from detaudit.runs.log import matching, read_run, trainings

HELLO: dict[str, Any] = {
    "k": "hello",
    "schema": 1,
    "pid": 7,
    "ppid": 1,
    "argv": ["python", "train.py"],
    "python": "3.11",
    "rank": None,
    "identity": [],
}
LINES: list[dict[str, Any]] = [
    HELLO,
    {"k": "framework", "name": "torch", "version": "2"},
    {"k": "event", "fw": "torch", "step": 1, "stage": "forward", "digest": "a", "value": "0x1p+1"},
    {"k": "event", "fw": "torch", "step": 1, "stage": "update", "digest": "b", "value": None},
    {
        "k": "final",
        "fw": "torch",
        "steps": 1,
        "digest": "b",
        "sum": "0x1p+0",
        "loss": "0x1p+1",
        "params": 2,
        "sparse": False,
        "devices": [],
    },
    {"k": "bye", "how": "exit"},
]
WHOLE = "".join(json.dumps(line) + "\n" for line in LINES).encode()


def write(folder: Path, data: bytes, name: str = "7.0.jsonl") -> None:
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / name).write_bytes(data)


def test_a_training_without_weights_has_no_sum(tmp_path: Path) -> None:
    write(tmp_path, lines(*LINES[:4], {**LINES[4], "sum": "", "params": 0}, LINES[5]))
    (process,) = read_run(tmp_path)
    assert (process.torn, process.ended) == (False, True)


def test_a_whole_event_log(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    (process,) = read_run(tmp_path)
    training = process.trainings[0]
    assert (training.steps, training.last_loss, process.ended) == (1, 2.0, True)
    assert training.digests == {Stage.FORWARD: {1: ("a",)}, Stage.UPDATE: {1: ("b",)}}


CALL = {"k": "event", "fw": "torch inference", "step": 9, "stage": "output", "digest": "a", "value": None}


def lines(*found: Any) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in found).encode()


def test_calls_count_if_no_process_trained(tmp_path: Path) -> None:
    end: Any = LINES[4]
    end = {**end, "fw": "torch inference"}
    write(tmp_path, lines(HELLO, CALL, LINES[-1]))
    assert read_run(tmp_path)[0].trained == [], "a backward pass followed, and nothing was trained"
    write(tmp_path, lines(HELLO, CALL, end, LINES[-1]))
    assert [(one.framework, one.steps) for one in read_run(tmp_path)[0].trained] == [("torch inference", 9)]
    write(tmp_path, WHOLE, "8.0.jsonl")
    assert [[one.framework for one in process.trained] for process in read_run(tmp_path)] == [[], ["torch"]]


def test_calls_before_a_training_are_no_steps_of_it() -> None:
    tail = Tail()
    tail.take([json.dumps(CALL).encode()])
    assert (tail.step, tail.calls) == (0, 9)


def test_what_was_imported_is_known_from_either_line(tmp_path: Path) -> None:
    recorded = {"k": "settings", "values": {}, "environ": {}, "files": [], "versions": {"torch": "", "numpy": "2.4.6"}}
    old = {key: value for key, value in recorded.items() if key != "versions"}
    for number, (line, expected) in enumerate(((recorded, {"torch": "2", "numpy": "2.4.6"}), (old, {"torch": "2"}))):
        (tmp_path / str(number)).mkdir()
        write(tmp_path / str(number), "".join(json.dumps(each) + "\n" for each in (*LINES[:-1], line)).encode())
        (process,) = read_run(tmp_path / str(number))
        assert process.versions == expected


@given(cut=st.integers(0, len(WHOLE) - 1))
def test_an_event_log_cut_off_anywhere_is_read_and_never_looks_whole(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), WHOLE[:cut])
        processes = read_run(Path(folder))
        assert not any(process.ended for process in processes) or cut == len(WHOLE) - 1


def test_of_garbage_only_the_process_id_is_known(tmp_path: Path) -> None:
    for garbage in (b"", b"\x00\xff\n" + WHOLE, WHOLE.replace(b'"schema": 1', b'"schema": 2')):
        write(tmp_path, garbage)
        (process,) = read_run(tmp_path)
        assert (process.hello.pid, process.torn, process.trained) == (7, True, [])


@pytest.mark.parametrize(
    "line",
    [
        b'{"k":"trouble","where":"\xff","error":""}',
        b'{"k":"bye","how":"exit","more":' + b"[" * 100_000,
        lines({**LINES[2], "value": "1.5"}),
        lines({**LINES[2], "value": "0x1p+1024"}),
        lines({**LINES[2], "step": -1}),
        lines({**LINES[4], "sum": "a"}),
        lines({**LINES[4], "weights": [["f4", [1], "d", ""]]}),
        lines({"k": "flag", "id": "x", "state": "new", "detail": ""}),
        lines({"k": "source", "kind": "new", "what": "f", "file": "a.py", "line": 1, "value": ""}),
        lines(LINES[1]).rstrip(),
    ],
)
def test_a_log_is_torn_where_it_cannot_be_read(line: bytes, tmp_path: Path) -> None:
    write(tmp_path, lines(HELLO) + line)
    (process,) = read_run(tmp_path)
    assert (process.hello.pid, process.torn, process.ended) == (7, True, False)
    Tail().take([line])


def test_what_is_no_file_is_no_event_log(tmp_path: Path) -> None:
    (tmp_path / "logs" / "7.0.jsonl").mkdir(parents=True)
    os.mkfifo(tmp_path / "logs" / "8.0.jsonl")
    assert read_run(tmp_path) == []
    assert list(Growing(tmp_path).new()) == []


def test_processes_come_in_the_order_of_their_identity_not_of_their_pid(tmp_path: Path) -> None:
    for pid, identity in ((3, [2]), (9, [1]), (5, [])):
        write(tmp_path, json.dumps({**HELLO, "pid": pid, "identity": identity}).encode() + b"\n", f"{pid}.0.jsonl")
    assert [process.hello.pid for process in read_run(tmp_path)] == [5, 9, 3]


def test_matching_wants_the_argument_itself(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    processes = read_run(tmp_path)
    assert matching(processes, "train.py") == processes == matching(processes, "")
    assert matching(processes, "other.py") == []


def test_a_script_whose_path_looks_like_a_secret_matches(tmp_path: Path) -> None:
    script = "runs/token=5/train.py"
    write(tmp_path, lines({**HELLO, "argv": redact.command(["python", script])}))
    assert [process.hello.pid for process in matching(read_run(tmp_path), script)] == [7]


def test_the_tail_follows_a_growing_file(tmp_path: Path) -> None:
    growing, tail, lines = Growing(tmp_path), Tail(), []
    for end in (0, len(WHOLE) * 2 // 3, len(WHOLE)):
        write(tmp_path, WHOLE[:end])
        for _, new in growing.new():
            tail.take(new)
            lines += new
    assert (tail.step, tail.loss) == (1, 2.0)
    assert lines == WHOLE.splitlines()


def in_lane(lane: int, digest: str) -> list[dict[str, Any]]:
    return [{**line, "lane": lane, "digest": digest} for line in LINES[3:5]]


def as_log(*lines: dict[str, Any]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def test_tasks_of_pools_come_in_the_order_of_what_they_trained(tmp_path: Path) -> None:
    bye = {"k": "bye", "how": "task"}
    found = []
    for name, taken in (("a", ("x", "yz")), ("b", ("zy", "x"))):
        (tmp_path / name).mkdir()
        for worker, digests in enumerate(taken):
            tasks = [line for lane, digest in enumerate(digests, 1) for line in (*in_lane(lane, digest), bye)]
            write(tmp_path / name, as_log({**HELLO, "identity": [worker + 1]}, *tasks), f"{worker}.0.jsonl")
        processes = read_run(tmp_path / name)
        assert all(process.ended for process in processes)
        found.append([training for _, training in trainings(processes)])
    assert found[0] == found[1]
    assert [training.final.digest for training in found[0] if training.final] == ["x", "y", "z"]
    assert all(training.unplaced for training in found[0])


def test_a_task_after_the_last_end_is_not_whole(tmp_path: Path) -> None:
    write(tmp_path, as_log(HELLO, *in_lane(1, "a"), {"k": "bye", "how": "task"}, *in_lane(2, "b")))
    (process,) = read_run(tmp_path)
    assert not process.ended


def test_models_of_threads_belong_to_the_same_training_in_every_run(tmp_path: Path) -> None:
    state = {"k": "state", "fw": "torch", "live": True, "tensors": [["Linear", "bias", False, "f4", [1], "0"]]}
    state["outputs"] = "o"
    found = []
    for name, digests in (("a", "xy"), ("b", "yx")):
        (tmp_path / name).mkdir()
        threads = [line for lane, digest in enumerate(digests, 1) for line in in_lane(lane, digest)]
        write(tmp_path / name, as_log(HELLO, *threads, state, {"k": "bye", "how": "exit"}))
        found.append([training for _, training in trainings(read_run(tmp_path / name))])
    assert found[0] == found[1]
    assert sum(len(training.final.state) for training in found[0] if training.final) == 1
    assert [training.final.outputs for training in found[0] if training.final] == ["o", None]


def test_several_processes_without_a_number_have_no_place_and_one_has(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    assert [training.unplaced for _, training in trainings(read_run(tmp_path))] == [False]
    write(tmp_path, as_log({**HELLO, "pid": 8}, *LINES[1:]), "8.0.jsonl")
    assert [training.unplaced for _, training in trainings(read_run(tmp_path))] == [True, True]


def attempts(folder: Path, *found: tuple[int, int, bool]) -> list[Any]:
    """Return the processes of ranks, each with its rank, its attempt, and whether it ended in order."""
    for pid, (rank, attempt, whole) in enumerate(found, 10):
        hello = {**HELLO, "pid": pid, "rank": rank, "world": 2, "attempt": attempt}
        lines = [hello, *(LINES[1:] if whole else LINES[1:4])]
        write(folder, "".join(json.dumps(line) + "\n" for line in lines).encode(), f"{pid}.0.jsonl")
    return read_run(folder)


def test_of_ranks_that_were_started_again_the_last_attempt_counts(tmp_path: Path) -> None:
    processes = attempts(tmp_path, (0, 0, False), (1, 0, True), (1, 1, True), (0, 1, True))
    found = [
        (process.hello.rank, process.hello.attempt, training.attempt) for process, training in trainings(processes)
    ]
    assert found == [(0, 1, 1), (1, 1, 1)]
    assert [process.replaced for process in processes] == [True, False, True, False]


def test_ranks_that_were_never_started_again_all_count(tmp_path: Path) -> None:
    processes = attempts(tmp_path, (1, 0, True), (0, 0, True))
    assert [(process.hello.rank, process.replaced) for process in processes] == [(0, False), (1, False)]
    assert len(trainings(processes)) == 2
