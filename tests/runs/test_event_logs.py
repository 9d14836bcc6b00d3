"""An event log is read as far as it got, whatever cut it off."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit import redact, wire
from detaudit.model import Stage
from detaudit.runs.live_log import Event, Growing, Tail
from detaudit.runs.log import matching, read_run, trainings
from detaudit.runs.log_rows import rows_of
from detaudit.runs.log_text import entries
from tests.logs import hexed, news, row, write_log

HELLO: dict[str, Any] = {
    "k": "hello",
    "schema": wire.SCHEMA,
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
    row(1, "forward", "a", 2.0),
    row(1, "update", "b"),
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


def write(folder: Path, *found: dict[str, Any], name: str = "7.0.jsonl") -> Path:
    return write_log(folder / "logs" / name, found)


def test_what_is_shown_of_a_log_is_what_was_written(tmp_path: Path) -> None:
    shown = [{**line, "digest": hexed(line["digest"])} if line["k"] == "row" else line for line in LINES]
    shown[3].pop("value")
    shown[2]["value"], shown[-1] = "0x1.0000000000000p+1", {**LINES[-1], "rows": 2}
    assert list(entries(write(tmp_path, *LINES))) == shown


def test_a_training_without_weights_has_no_sum(tmp_path: Path) -> None:
    write(tmp_path, *LINES[:4], {**LINES[4], "sum": "", "params": 0}, LINES[5])
    (process,) = read_run(tmp_path)
    assert (process.torn, process.ended) == (False, True)


def test_a_whole_event_log(tmp_path: Path) -> None:
    write(tmp_path, *LINES)
    (process,) = read_run(tmp_path)
    training = process.trainings[0]
    assert (training.steps, training.last_loss, process.ended) == (1, 2.0, True)
    assert training.digests == {Stage.FORWARD: {1: (hexed("a"),)}, Stage.UPDATE: {1: (hexed("b"),)}}


CALL = row(9, "output", "a", fw="torch inference")


def text(*lines: Any) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def test_calls_count_if_no_process_trained(tmp_path: Path) -> None:
    end: Any = LINES[4]
    end = {**end, "fw": "torch inference"}
    write(tmp_path, HELLO, CALL, LINES[-1])
    assert read_run(tmp_path)[0].trained == [], "a backward pass followed, and nothing was trained"
    write(tmp_path, HELLO, CALL, end, LINES[-1])
    assert [(one.framework, one.steps) for one in read_run(tmp_path)[0].trained] == [("torch inference", 9)]
    write(tmp_path, *LINES, name="8.0.jsonl")
    assert [[one.framework for one in process.trained] for process in read_run(tmp_path)] == [[], ["torch"]]


def test_calls_before_a_training_are_no_steps_of_it(tmp_path: Path) -> None:
    tail = Tail()
    tail.take(news(tmp_path, HELLO, CALL))
    assert (tail.step, tail.calls) == (0, 9)


def test_what_was_imported_is_known_from_either_line(tmp_path: Path) -> None:
    recorded = {"k": "settings", "values": {}, "environ": {}, "files": [], "versions": {"torch": "", "numpy": "2.4.6"}}
    old = {key: value for key, value in recorded.items() if key != "versions"}
    for number, (line, expected) in enumerate(((recorded, {"torch": "2", "numpy": "2.4.6"}), (old, {"torch": "2"}))):
        write(tmp_path / str(number), *LINES[:-1], line)
        (process,) = read_run(tmp_path / str(number))
        assert process.versions == expected


@pytest.mark.parametrize("rows", [False, True])
@given(data=st.data())
def test_an_event_log_cut_off_anywhere_is_read_and_never_looks_whole(rows: bool, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = write(Path(folder), *LINES)
        path = rows_of(log) if rows else log
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole) - 1))
        path.write_bytes(whole[:cut])
        (process,) = read_run(Path(folder))
        assert process.torn or not process.ended


@pytest.mark.parametrize("more", [bytes(48), b"\xff" * 48, wire.ROW.pack(2, 9, 0, 3, 0, bytes(16), 0.0), b"x"])
def test_rows_that_cannot_be_read_are_torn(more: bytes, tmp_path: Path) -> None:
    rows = rows_of(write(tmp_path, *LINES))
    rows.write_bytes(rows.read_bytes() + more)
    (process,) = read_run(tmp_path)
    assert (process.torn, process.trained[0].steps) == (True, 1)


def test_rows_after_the_end_are_of_something_that_did_not_end(tmp_path: Path) -> None:
    rows = rows_of(write(tmp_path, *LINES))
    rows.write_bytes(rows.read_bytes() * 2)
    (process,) = read_run(tmp_path)
    assert (process.torn, process.ended) == (False, False)
    rows.unlink()
    (process,) = read_run(tmp_path)
    assert (process.torn, process.trained) == (True, [])


def test_of_garbage_only_the_process_id_is_known(tmp_path: Path) -> None:
    log = write(tmp_path, *LINES)
    whole = log.read_bytes()
    for garbage in (b"", b"\x00\xff\n" + whole, whole.replace(b'"schema":2', b'"schema":3')):
        log.write_bytes(garbage)
        (process,) = read_run(tmp_path)
        assert (process.hello.pid, process.torn, process.trained) == (7, True, [])


@pytest.mark.parametrize(
    "line",
    [
        b'{"k":"trouble","where":"\xff","error":""}',
        b'{"k":"bye","how":"exit","more":' + b"[" * 100_000,
        text({"k": "training", "n": 0, "fw": "torch", "lane": 0}),
        text({"k": "name", "n": 2**32, "text": ""}),
        text({**LINES[4], "loss": "0x1p+1024"}),
        text({**LINES[4], "sum": "a"}),
        text({**LINES[4], "weights": [["f4", [1], "d", ""]]}),
        text({"k": "flag", "id": "x", "state": "new", "detail": ""}),
        text({"k": "source", "kind": "new", "what": "f", "file": "a.py", "line": 1, "value": ""}),
        text(LINES[1]).rstrip(),
    ],
)
def test_a_log_is_torn_where_it_cannot_be_read(line: bytes, tmp_path: Path) -> None:
    log = write(tmp_path, HELLO)
    log.write_bytes(log.read_bytes() + line)
    (process,) = read_run(tmp_path)
    assert (process.hello.pid, process.torn, process.ended) == (7, True, False)
    ((_, new),) = Growing(tmp_path).new()
    assert len(new.lines) == 1


def test_what_is_no_file_is_no_event_log(tmp_path: Path) -> None:
    (tmp_path / "logs" / "7.0.jsonl").mkdir(parents=True)
    os.mkfifo(tmp_path / "logs" / "8.0.jsonl")
    assert read_run(tmp_path) == []
    assert list(Growing(tmp_path).new()) == []


def test_processes_come_in_the_order_of_their_identity_not_of_their_pid(tmp_path: Path) -> None:
    for pid, identity in ((3, [2]), (9, [1]), (5, [])):
        write(tmp_path, {**HELLO, "pid": pid, "identity": identity}, name=f"{pid}.0.jsonl")
    assert [process.hello.pid for process in read_run(tmp_path)] == [5, 9, 3]


def test_matching_wants_the_argument_itself(tmp_path: Path) -> None:
    write(tmp_path, *LINES)
    processes = read_run(tmp_path)
    assert matching(processes, "train.py") == processes == matching(processes, "")
    assert matching(processes, "other.py") == []


def test_a_script_whose_path_looks_like_a_secret_matches(tmp_path: Path) -> None:
    script = "runs/token=5/train.py"
    write(tmp_path, {**HELLO, "argv": redact.command(["python", script])})
    assert [process.hello.pid for process in matching(read_run(tmp_path), script)] == [7]


def test_the_tail_follows_a_growing_file(tmp_path: Path) -> None:
    log = write(tmp_path, *LINES)
    whole, rows = log.read_bytes(), rows_of(log).read_bytes()
    growing, tail, lines, events = Growing(tmp_path), Tail(), 0, list[Event]()
    for share in (0, 0.4, 0.7, 1):
        log.write_bytes(whole[: int(len(whole) * share)])
        rows_of(log).write_bytes(rows[: int(len(rows) * share)])
        for _, new in growing.new():
            tail.take(new)
            lines += len(new.lines)
            events += new.events()
    assert (tail.step, tail.loss, lines) == (1, 2.0, len(whole.splitlines()))
    assert [(event.stage, event.digest, event.value) for event in events] == [
        (Stage.FORWARD, hexed("a"), 2.0),
        (Stage.UPDATE, hexed("b"), None),
    ]


def in_lane(lane: int, digest: str) -> list[dict[str, Any]]:
    return [{**line, "lane": lane, "digest": digest} for line in LINES[3:5]]


def test_tasks_of_pools_come_in_the_order_of_what_they_trained(tmp_path: Path) -> None:
    bye = {"k": "bye", "how": "task"}
    found = []
    for name, taken in (("a", ("x", "yz")), ("b", ("zy", "x"))):
        for worker, digests in enumerate(taken):
            tasks = [line for lane, digest in enumerate(digests, 1) for line in (*in_lane(lane, digest), bye)]
            write(tmp_path / name, {**HELLO, "identity": [worker + 1]}, *tasks, name=f"{worker}.0.jsonl")
        processes = read_run(tmp_path / name)
        assert all(process.ended for process in processes)
        found.append([training for _, training in trainings(processes)])
    assert found[0] == found[1]
    assert [training.final.digest for training in found[0] if training.final] == ["x", "y", "z"]
    assert all(training.unplaced for training in found[0])


def test_a_task_after_the_last_end_is_not_whole(tmp_path: Path) -> None:
    write(tmp_path, HELLO, *in_lane(1, "a"), {"k": "bye", "how": "task"}, *in_lane(2, "b"))
    (process,) = read_run(tmp_path)
    assert not process.ended


def test_models_of_threads_belong_to_the_same_training_in_every_run(tmp_path: Path) -> None:
    state = {"k": "state", "fw": "torch", "live": True, "tensors": [["Linear", "bias", False, "f4", [1], "0"]]}
    state["outputs"] = "o"
    found = []
    for name, digests in (("a", "xy"), ("b", "yx")):
        threads = [line for lane, digest in enumerate(digests, 1) for line in in_lane(lane, digest)]
        write(tmp_path / name, HELLO, *threads, state, {"k": "bye", "how": "exit"})
        found.append([training for _, training in trainings(read_run(tmp_path / name))])
    assert found[0] == found[1]
    assert sum(len(training.final.state) for training in found[0] if training.final) == 1
    assert [training.final.outputs for training in found[0] if training.final] == ["o", None]


def freed(digest: str, early: bool) -> dict[str, Any]:
    tensors = [["Linear", "bias", False, "f4", [1], digest]]
    return {"k": "state", "fw": "torch", "live": False, "tensors": tensors, **({"early": True} if early else {})}


@pytest.mark.parametrize("early", [False, True])
def test_a_model_that_was_freed_counts_unless_it_ran_before_the_training_only(tmp_path: Path, early: bool) -> None:
    write(tmp_path, *LINES, freed("x", early), {"k": "bye", "how": "exit"})
    ((_, training),) = trainings(read_run(tmp_path))
    assert training.final is not None
    assert len(training.final.state) == (0 if early else 1)


def test_where_only_threads_trained_it_is_not_known_what_ran_before(tmp_path: Path) -> None:
    write(tmp_path, HELLO, *in_lane(1, "a"), freed("x", early=True), {"k": "bye", "how": "exit"})
    ((_, training),) = trainings(read_run(tmp_path))
    assert training.final is not None
    assert len(training.final.state) == 1


def test_several_processes_without_a_number_have_no_place_and_one_has(tmp_path: Path) -> None:
    write(tmp_path, *LINES)
    assert [training.unplaced for _, training in trainings(read_run(tmp_path))] == [False]
    write(tmp_path, {**HELLO, "pid": 8}, *LINES[1:], name="8.0.jsonl")
    assert [training.unplaced for _, training in trainings(read_run(tmp_path))] == [True, True]


def attempts(folder: Path, *found: tuple[int, int, bool]) -> list[Any]:
    """Return the processes of ranks, each with its rank, its attempt, and whether it ended in order."""
    for pid, (rank, attempt, whole) in enumerate(found, 10):
        hello = {**HELLO, "pid": pid, "rank": rank, "world": 2, "attempt": attempt}
        lines = [hello, *(LINES[1:] if whole else LINES[1:4])]
        write(folder, *lines, name=f"{pid}.0.jsonl")
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
