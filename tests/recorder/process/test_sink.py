"""A trace is valid JSON lines, and a recorder that cannot write stays silent."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.evidence import event_records as trace
from detaudit.recorder.process.sink import Sink, encode

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


def test_text_that_is_no_unicode_leaves_the_trace_readable(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write({"k": "trouble", "where": "caf\udce9.py", "error": "é 😀"}, {"k": "bye", "how": "exit"})
    (path,) = tmp_path.iterdir()
    _, trouble, bye = trace.lines(path)
    assert trouble == trace.Trouble("caf\\udce9.py", "é 😀")
    assert isinstance(bye, trace.Bye)


def test_hello_comes_first_and_lines_are_appended(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write({"k": "bye", "how": "exit"})
    assert [line["k"] for line in lines(tmp_path)] == ["hello", "bye"]
    assert lines(tmp_path)[0]["pid"] == os.getpid()


def test_a_process_that_calls_exec_gets_a_second_file(tmp_path: Path) -> None:
    for _ in range(2):
        Sink(str(tmp_path)).hello()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_fork_that_no_hook_saw_leaves_the_parents_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(str(tmp_path))
    sink.hello()
    parent = next(tmp_path.iterdir())
    before = parent.read_text()
    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)
    sink.write({"k": "bye", "how": "exit"})
    assert parent.read_text() == before
    assert {line["pid"] for line in lines(tmp_path) if line["k"] == "hello"} > {4_000_000}


def test_what_the_recorder_gets_wrong_is_recorded_and_bounded(tmp_path: Path) -> None:
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


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path / "gone"))
    sink.write({"k": "bye", "how": "exit"})
    assert not sink.started
