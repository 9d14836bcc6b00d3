"""An event log is valid JSON lines, and a recorder that cannot write stays silent."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit import wire
from detaudit.recorder.process import log
from detaudit.recorder.process.log import Sink, encode
from detaudit.runs import log_records
from detaudit.runs.log_records import lines_of
from detaudit.runs.log_rows import rows_of
from detaudit.runs.log_text import entries

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_encoding_is_json(value: Any) -> None:
    assert json.loads(encode(value)) == value


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def test_text_that_is_not_unicode_keeps_the_log_readable(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write({"k": "trouble", "where": "caf\udce9.py", "error": "é 😀"}, {"k": "bye", "how": "exit"})
    (path,) = tmp_path.iterdir()
    _, trouble, bye = lines_of(path)
    assert trouble == log_records.Trouble("caf\\udce9.py", "é 😀")
    assert isinstance(bye, log_records.Bye)


def test_hello_comes_first_and_lines_are_appended(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write({"k": "bye", "how": "exit"})
    assert [line["k"] for line in lines(tmp_path)] == ["hello", "bye"]
    assert lines(tmp_path)[0]["pid"] == os.getpid()


def test_a_process_that_calls_exec_gets_a_second_log(tmp_path: Path) -> None:
    for _ in range(2):
        Sink(str(tmp_path)).hello()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_fork_without_hooks_does_not_write_to_the_parents_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink(str(tmp_path))
    sink.hello()
    parent = next(tmp_path.iterdir())
    before = parent.read_text()
    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)
    sink.write({"k": "bye", "how": "exit"})
    assert parent.read_text() == before
    assert {line["pid"] for line in lines(tmp_path) if line["k"] == "hello"} > {4_000_000}


def test_failures_of_the_recorder_are_recorded_up_to_a_maximum(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    for _ in range(100):
        sink.guarded("here", lambda: 1 // 0)
    troubles = [line for line in lines(tmp_path) if line["k"] == "trouble"]
    assert troubles[0] == {
        "k": "trouble",
        "where": "here",
        "error": "ZeroDivisionError: integer division or modulo by zero",
    }
    assert len(troubles) == 20


def test_a_missing_folder_is_not_an_error(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path / "gone"))
    sink.write({"k": "bye", "how": "exit"})
    assert not sink.started


A, B, C = (f"{number:032x}" for number in range(3))


def shown(path: str | Path) -> list[tuple[Any, ...]]:
    """Return the rows of an event log."""
    rows = [line for line in entries(Path(path)) if line["k"] == "row"]
    return [
        (line["fw"], line["lane"], line["step"], line["digest"], line.get("name"), line.get("value")) for line in rows
    ]


def test_rows_point_to_lines_that_are_written_before_them(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write_rows("torch", [(1, 0, "forward", A, -0.0), (1, 0, "update", B + " one", None)])
    sink.write_rows("torch", [(2, 3, "update", C + " one", None), (2, 0, "update", A + " two", float("nan"))])
    assert [line["k"] for line in lines(tmp_path)] == ["hello", "training", "name", "training", "name"]
    assert shown(sink.path) == [
        ("torch", 0, 1, A, None, "-0x0.0p+0"),
        ("torch", 0, 1, B, "one", None),
        ("torch", 3, 2, C, "one", None),
        ("torch", 0, 2, A, "two", "nan"),
    ]
    sink.bye("exit", 2)
    assert lines(tmp_path)[-1] == {"k": "bye", "how": "exit", "started": 2, "rows": 4}


def test_names_that_do_not_come_back_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_NAMES", 2)
    sink = Sink(str(tmp_path))
    for step in range(1, 8):
        sink.write_rows("torch", [(step, 0, "hyperparameters", f"{A} lr={step % 5}", None)])
        assert len(sink._names) <= 2
    assert [name for *_, name, _ in shown(sink.path)] == [f"lr={step % 5}" for step in range(1, 8)]


def test_a_fork_without_hooks_has_rows_and_numbers_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(str(tmp_path))
    sink.write_rows("torch", [(1, 0, "update", A, None)])
    parent = sink.path
    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)
    sink.write_rows("torch", [(2, 0, "update", B, None)])
    assert [shown(path) for path in (parent, sink.path)] == [
        [("torch", 0, 1, A, None, None)],
        [("torch", 0, 2, B, None, None)],
    ]


def test_closed_descriptors_are_opened_again_and_never_those_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    sink = Sink(str(tmp_path / "logs"))
    sink.write_rows("torch", [(1, 0, "update", A, None)])
    assert sink._rows is not None
    number = sink._rows._descriptor
    os.close(number)
    own = os.open(tmp_path / "own", os.O_WRONLY | os.O_CREAT)
    assert own == number
    sink.write_rows("torch", [(2, 0, "update", B, None)])
    assert [step for _, _, step, *_ in shown(sink.path)] == [1, 2]
    os.close(own)
    assert (tmp_path / "own").read_bytes() == b""


@pytest.mark.parametrize("suffix", [wire.LOG_SUFFIX, wire.ROWS_SUFFIX])
def test_after_a_file_was_cut_nothing_is_written_any_more(tmp_path: Path, suffix: str) -> None:
    sink = Sink(str(tmp_path))
    sink.write_rows("torch", [(1, 0, "update", A, None), (2, 0, "update", A, None)])
    path = Path(sink.path)
    os.truncate(path.with_suffix(suffix), wire.ROW.size)
    sink.write_rows("torch", [(3, 0, "update", B + " new", None)])
    sink.bye("exit", 0)
    assert (sink.started, rows_of(path).stat().st_size) == (False, wire.ROW.size * (1 if suffix == ".rows" else 2))


def test_a_disk_that_is_full_ends_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, write = Sink(str(tmp_path)), os.write
    sink.write_rows("torch", [(1, 0, "update", A, None)])
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
    sink.write_rows("torch", [(2, 0, "update", A, None)])
    monkeypatch.setattr(os, "write", write)
    sink.write_rows("torch", [(3, 0, "update", A, None)])
    sink.bye("exit", 0)
    (path,) = tmp_path.glob("*.rows")
    assert (path.stat().st_size, [line["k"] for line in lines(tmp_path)]) == (wire.ROW.size + 20, ["hello", "training"])
